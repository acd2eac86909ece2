import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "experiments"))
import reporting

from music_tf.errors import UsageError
from music_tf.storage.results import read_result

TITLES = "epoch,time/env_steps,time/elapsed_s,eval/object_on_support_rate,eval/object_comotion_m"
SEED = f"""# music-tf launch -n 2 train ddpg_music
{TITLES},eval/success_rate
1,1000,60,0.9,0.1,
2,2000,120,0.9,0.3,
3,3000,180,,0.4,0.5
4,4000,240,0.5,0.3,
5,5000,300,,,
6,6000,360,1.0,0.25,
7,7000,420,,,
"""
SUPPORT, MOTION = "eval/object_on_support_rate", "eval/object_comotion_m"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seed10.csv").write_text(SEED)
    (tmp_path / "seed2.csv").write_text(SEED)
    return tmp_path


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        # Epoch 2, in row 1, is the first to meet both; of epochs 4 and 6, evaluated, one does.
        ({SUPPORT: 0.8, MOTION: 0.2}, (1, 0.5)),
        ({SUPPORT: 0.8, MOTION: 0.1}, (0, 2 / 3)),
        ({SUPPORT: 1.0}, (5, None)),  # nothing was evaluated after
        ({MOTION: 0.4}, (2, 0.0)),
        ({MOTION: 0.5}, (None, None)),
        ({SUPPORT: 0.0, "eval/success_rate": 0.0}, (None, None)),  # never in the same epoch
        ({"eval/object_lift_rate": 0.0}, (None, None)),  # no such column
    ],
)
def test_epochs_without_an_evaluation_count_neither_way(folder, conditions, expected):
    columns = read_result(folder / "seed2.csv").columns
    assert reporting.first_time(columns, conditions) == expected


def test_control_that_nothing_follows_has_no_share_that_held(tmp_path):
    rows = "1,1000,60,{},0.3\n2,2000,120,,\n3,3000,180,0.9,0.3\n"
    for seed, first in ((3, 0.5), (4, 0.9)):
        text = f"# music-tf train\n{TITLES}\n{rows.format(first)}"
        (tmp_path / f"seed{seed}.csv").write_text(text)
    _, _, *rows = reporting.control_table({"": "seed {seed}"}, tmp_path).splitlines()
    assert [row.split(" | ")[2:5] for row in rows] == [
        ["3.0 min", "", "3.0"],
        ["1.0 min", "100%", "3.0"],
    ]


def test_seeds_stand_in_the_order_of_their_numbers(folder):
    assert [seed for seed, _ in reporting.seeds_of(folder)] == [2, 10]
    with pytest.raises(UsageError, match="holds no stored result"):
        reporting.seeds_of(folder / "mistyped")
