import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "experiments"))
import seed_table

from music_tf.training.results import read_result

LINES = """# music-tf launch -n 2 train ddpg_music
epoch,time/env_steps,time/elapsed_s,eval/object_on_support_rate,eval/object_comotion_m,eval/success_rate
1,1000,60,0.9,0.1,
2,2000,120,0.9,0.3,
3,3000,180,0.5,0.3,
4,4000,240,1.0,0.25,
"""
CONTROL = {"eval/object_on_support_rate": 0.8, "eval/object_comotion_m": 0.2}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seed3.csv").write_text(LINES)
    return tmp_path


def test_the_first_time_is_a_row_with_how_often_it_held_after(folder):
    columns = read_result(folder / "seed3.csv").columns
    # Epoch 2, in row 1, is the first to meet both; of epochs 3 and 4 the second does.
    assert seed_table.first_time(columns, CONTROL) == (1, 0.5)
    assert seed_table.first_time(columns, {"eval/object_comotion_m": 0.4}) == (None, 0.0)


def test_a_table_shows_the_last_evaluation_and_leaves_blank_columns_out(folder):
    line = "| 3 | 4.0 | 4,000 | 2.0 min | 50% | 1.00 | 0.25 |"
    assert seed_table.table(folder, CONTROL).splitlines()[-1] == line


def test_blank_cells_meet_no_condition(folder):
    columns = read_result(folder / "seed3.csv").columns
    assert not seed_table.meets(columns, {"eval/success_rate": 0.0}).any()
    assert not seed_table.meets(columns, {"eval/object_lift_rate": 0.0}).any()  # no such column
