import json
import random

import numpy as np
import pytest

from music_tf.config.command import parse_train
from music_tf.config.stored import StoredRun, run_to_json
from music_tf.errors import UsageError
from music_tf.storage.results import NoEpochError
from music_tf.tools.grouping import Run, load, load_begun
from music_tf.tools.lines import by_settings, how_many, in_groups, without_repeats

HEADER = "epoch,time/env_steps,time/elapsed_s,eval/success_rate,train/mean_q\n"
OLD = {"run": "/a/checkpoints", "checkpoint": "epoch_000003", "sha256": "12", "parts": ["actor"]}
"""What a version wrote of a start that counted nothing."""
START = OLD | {"epoch": 3, "before": {"time/env_steps": 500.0, "time/elapsed_s": 30.0}}


def write(path, rows=("1,1000,60,0.25,1",)):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# a comment\n" + HEADER + "".join(f"{row}\n" for row in rows))
    return path


def run_directory(path, *words, preset="laptop", start=None):
    command = parse_train(["ddpg_her", "--env-id", "music_tf/PointPush-v0", *words])
    stored = StoredRun("ddpg_her", preset, command.arguments, command.config, start)
    write(path / "metrics.csv")
    (path / "config.json").write_text(json.dumps(run_to_json(stored)))
    return path


def of(**settings):
    """A run of a group `g` with some settings."""
    return Run("run", "g", {}, settings)


def labels(*runs):
    return [run.group for run in by_settings(runs)]


def test_a_line_that_is_still_being_written_is_left_out(tmp_path):
    path = write(tmp_path / "seed0.csv", ["1,1000,60,0.25,1"])
    path.write_text(path.read_text() + "2,20")
    assert load(path).columns["eval/success_rate"].tolist() == [0.25]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no epoch"),
        (HEADER, "no epoch"),
        ("a,b\n1,2\n", "no epoch"),
        (HEADER + "1,2,3,x,4\n", "expected numbers"),
        ("\0\xff", "no epoch"),
    ],
)
def test_a_file_that_holds_no_run_is_refused(tmp_path, content, says):
    path = tmp_path / "seed0.csv"
    path.write_text(content)
    with pytest.raises(UsageError, match=says):
        load(path)


def test_a_run_directory_is_grouped_by_recipe_and_environment(tmp_path):
    run = load(run_directory(tmp_path / "seed3-x", "--seed", "3"))
    assert (run.group, run.name) == ("ddpg_her, PointPush-v0", "ddpg_her, PointPush-v0, seed3-x")
    assert run.columns["eval/success_rate"].tolist() == [0.25]


def test_steps_and_minutes_count_what_a_run_started_from(tmp_path):
    run = load(run_directory(tmp_path / "run", start=START))
    assert run.columns["time/env_steps"].tolist() == [1500.0]
    assert run.columns["time/elapsed_s"].tolist() == [90.0]
    assert run.columns["eval/success_rate"].tolist() == [0.25]
    old = load(run_directory(tmp_path / "old", start=OLD))
    assert old.columns["time/env_steps"].tolist() == [1000.0]


@pytest.mark.parametrize("before", [3, [], None, {"time/env_steps": "many"}])
def test_a_start_that_counts_no_numbers_is_refused(tmp_path, before):
    path = run_directory(tmp_path / "run", start=START | {"before": before})
    with pytest.raises(UsageError, match=r"config\.json: expected numbers by column"):
        load(path)


def test_a_run_that_starts_from_another_has_a_line_of_its_own(tmp_path):
    anew = run_directory(tmp_path / "anew")
    heirs = [
        run_directory(tmp_path / f"{n}", "--seed", f"{n}", start=START | {"sha256": f"{n}"})
        for n in (0, 1)
    ]
    assert labels(*map(load, (anew, *heirs))) == [
        "ddpg_her, PointPush-v0, takes over nothing",
        "ddpg_her, PointPush-v0, takes over actor",
        "ddpg_her, PointPush-v0, takes over actor",
    ]


def test_seeds_are_those_of_the_configuration_or_of_the_name(tmp_path):
    assert load(run_directory(tmp_path / "seed9-x", "--seed", "3")).seed == 3
    assert load(write(tmp_path / "music_seed12.csv")).seed == 12
    assert load(write(tmp_path / "music.csv")).seed is None


def line(name, seed, epochs, **more):
    """A run of a group `g` with a seed and a number of epochs."""
    return Run(name, "g", {"time/env_steps": np.zeros(epochs)}, seed=seed, **more)


def test_of_several_runs_of_a_seed_the_longest_is_drawn():
    runs = [line("a", 0, 2), line("b", 1, 3), line("c", 0, 5), line("d", 0, 5), line("e", 1, 1)]
    kept, repeats = without_repeats(runs)
    assert [run.name for run in kept] == ["b", "c"]
    assert repeats == ["a", "d", "e"]
    assert [how_many(kept), how_many(runs)] == ["2 seeds", "5 runs"]


def test_runs_are_no_repeats_of_each_other_where_more_than_the_seed_tells_them_apart():
    runs = [
        line("a", 0, 2),
        line("a", 0, 2, source="12"),
        line("a", 0, 2)._replace(group="h"),
        line("a", None, 2),
        line("a", None, 2),
    ]
    assert without_repeats(runs) == (runs, [])
    assert how_many(runs[3:]) == "2 runs"


def test_a_run_of_a_start_of_its_own_is_no_repeat(tmp_path):
    heirs = [run_directory(tmp_path / n, start=START | {"sha256": n}) for n in "ab"]
    again = run_directory(tmp_path / "c", start=START | {"sha256": "a"})
    _, repeats = without_repeats(by_settings(list(map(load, (*heirs, again)))))
    assert repeats == ["ddpg_her, PointPush-v0, c"]


def test_runs_of_other_settings_have_a_line_of_their_own(tmp_path):
    plain = [
        run_directory(tmp_path / f"{n}", "--seed", str(n), "--epochs", f"{n + 5}") for n in (0, 1)
    ]
    other = run_directory(tmp_path / "other", "--agent.polyak", "0.9")
    copy = write(tmp_path / "copies" / "seed0.csv")
    first, second, third, last = labels(*map(load, (*plain, other, copy)))
    assert first == second == "ddpg_her, PointPush-v0, agent.polyak 0.98"
    assert third == "ddpg_her, PointPush-v0, agent.polyak 0.9"
    assert last == "copies"
    assert set(labels(*map(load, plain))) == {"ddpg_her, PointPush-v0"}


def test_a_condition_of_two_studies_has_two_lines(tmp_path):
    files = [tmp_path / study / f"music_seed{n}.csv" for study in ("skills", "far") for n in (0, 1)]
    runs = [load(write(path)) for path in files]
    assert labels(*runs) == 2 * ["music, of skills"] + 2 * ["music, of far"]
    assert labels(*runs[:2]) == ["music", "music"]


def test_each_run_has_a_line_whatever_its_name(tmp_path):
    paths = [tmp_path / "a" / "seed0.csv", tmp_path / "b" / "seed0.csv", tmp_path / "b" / "x.csv"]
    runs = [load(write(path)) for path in paths]
    folders = [str(tmp_path / name) for name in "ab"]
    assert in_groups(runs, each=True) == {
        **{f"seed0 ({folder})": [run] for folder, run in zip(folders, runs, strict=False)},
        "x": [runs[2]],
    }


def test_a_preset_comes_first_and_alone_makes_no_line(tmp_path):
    laptop = run_directory(tmp_path / "laptop")
    paper = run_directory(tmp_path / "paper", "--agent.polyak", "0.9", preset="paper")
    same = run_directory(tmp_path / "same", preset="paper")
    assert labels(load(laptop), load(paper)) == [
        "ddpg_her, PointPush-v0, preset laptop, agent.polyak 0.98",
        "ddpg_her, PointPush-v0, preset paper, agent.polyak 0.9",
    ]
    assert len(set(labels(load(laptop), load(same)))) == 1
    three = [of(preset=preset, a=a) for preset, a in (("x", "0"), ("x", "1"), ("y", "2"))]
    assert labels(*three) == ["g, preset x, a 0", "g, preset x, a 1", "g, preset y, a 2"]


def test_a_label_has_few_settings_and_the_most_telling_first():
    usual = dict.fromkeys("abcde", "0")
    runs = [of(**usual), of(**usual | {"c": "1"}), of(**usual | {"e": "2"})]
    alike = of(**{name: "1" for name in "abcde"})
    assert labels(*runs) == ["g, c 0, e 0", "g, c 1, e 0", "g, e 2, c 0"]
    assert labels(runs[0], alike) == ["g, a 0, b 0, c 0 and 2 more", "g, a 1, b 1, c 1 and 2 more"]


def test_other_settings_always_make_another_label():
    generator = random.Random(0)
    for _ in range(50):
        runs = [of(**{name: str(generator.randrange(2)) for name in "abcdef"}) for _ in range(20)]
        different = {tuple(run.settings.items()) for run in runs}
        assert len(set(labels(*runs))) == len(different)


def test_a_run_without_an_epoch_is_left_out(tmp_path):
    begun = run_directory(tmp_path / "begun")
    early = [run_directory(tmp_path / name) for name in ("none", "empty")]
    (early[0] / "metrics.csv").unlink()
    write(early[1] / "metrics.csv", [])
    runs, others, damaged = load_begun([*early, begun])
    assert [run.name for run in runs] == [load(begun).name]
    assert (others, damaged) == ([str(path) for path in early], [])
    with pytest.raises(NoEpochError, match="no epoch of a run yet"):
        load_begun(early)
    write(early[1] / "metrics.csv", ["1,2,3,x,4"])
    runs, others, damaged = load_begun([*early, begun])
    assert [run.name for run in runs] == [load(begun).name]
    assert (others, damaged) == ([str(early[0])], [str(early[1])])
    with pytest.raises(UsageError, match="expected numbers"):
        load_begun(early[1:])
