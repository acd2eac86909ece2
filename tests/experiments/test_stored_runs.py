import math

import pytest

from experiments import stored
from music_tf.errors import UsageError
from music_tf.storage.results import FINAL, StoredResult, header, read_result
from music_tf.tools.study import Task
from tests.kit.cases import cases

SUPPORT, MOTION, LIFT = (
    *("eval/object_on_support_rate", "eval/object_comotion_m"),
    "eval/object_lift_rate",
)
SEED = f"""# music-tf launch -n 2 train ddpg_music --seed 2
epoch,time/env_steps,time/elapsed_s,{SUPPORT},{MOTION},eval/success_rate
1,1000,60,0.9,0.1,
2,2000,120,0.9,0.3,
3,3000,180,,0.4,0.5
4,4000,240,0.5,0.3,
5,5000,300,,,
6,6000,360,1.0,0.25,
7,7000,420,,,
"""


def measured(tmp_path, text, level=()):
    path = tmp_path / "seed2.csv"
    path.write_text(text)
    task = Task(env_id="FetchPush-v4", seeds=(2,), level=dict(level))
    return stored.measures_of(read_result(path), task)


@cases(
    ("level", "expected"),
    # Epoch 2 is the first to meet both; of epochs 4 and 6, evaluated later, one does; of 1, 2, 4
    # and 6 the second and the last.
    ({SUPPORT: 0.8, MOTION: 0.2}, (2.0, 2.0, 0.5, 0.5)),
    ({SUPPORT: 0.8, MOTION: 0.1}, (1.0, 1.0, 2 / 3, 0.75)),
    ({SUPPORT: 1.0}, (6.0, 6.0, None, 0.25)),  # nothing was evaluated after
    ({MOTION: 0.5}, (math.inf, math.inf, None, 0.0)),
    ({SUPPORT: 0.0, "eval/success_rate": 0.0}, (None,) * 4),  # never in one epoch
    ({LIFT: 0.0}, (None,) * 4),  # no such column
)
def test_epochs_without_an_evaluation_count_neither_way(tmp_path, level, expected):
    found = measured(tmp_path, SEED, level)
    names = (stored.FIRST, stored.MINUTES, stored.HELD, "level/share")
    assert tuple(map(found.get, names)) == expected


@cases(("level", "expected"), (0.9, 4.4), (0.8, 4.0), (0.95, math.inf))
def test_windows_of_evaluations_between_epochs_meet_a_level_as_epochs_do(tmp_path, level, expected):
    rows = ",".join(["cycle", "time/env_steps", "eval/success_rate_of_4"]) + "\n3,2000,\n"
    details = {
        "evaluations": rows + "6,3000,0.8\n7,3400,0.925\n",
        "before": {"time/env_steps": 1000},
    }
    text = header("music-tf train sac", "1", details) + SEED.partition("\n")[2]
    assert measured(tmp_path, text, {"eval/success_rate": level})[stored.WINDOW] == expected
    assert stored.WINDOW not in measured(tmp_path, text, {SUPPORT: 0.8})


def test_minutes_are_those_since_the_launch_where_they_are_known(tmp_path):
    launched = "time/env_steps,time/elapsed_s,time/wall_s,eval/return\n1000,60,90,1\n"
    text = header("music-tf train sac", "1", {"before": {"time/wall_s": 30.0}}) + launched
    found = measured(tmp_path, text, {"eval/return": 1.0})
    assert (found[stored.MINUTES], found["spent/minutes"]) == (2.0, 2.0)
    assert measured(tmp_path, SEED)["spent/minutes"] == 7.0


def test_what_a_run_started_from_is_counted_but_for_its_speed(tmp_path):
    # 3000 steps, of which 1000 at 100 and 2000 at 50 a second: 50 seconds of training
    rows = "time/env_steps,time/elapsed_s,time/fps\n1000,70,100\n3000,200,50\n"
    comments = header("music-tf train sac", "1", {"before": {"time/env_steps": 5000.0}})
    found = measured(tmp_path, comments + rows)
    assert (found["spent/thousand_steps"], found["spent/steps_a_minute"]) == (8.0, 3600.0)
    other_library = "time/env_steps,time/elapsed_s\n1000,20\n3000,60\n"  # its clock is training's
    assert measured(tmp_path, other_library)["spent/steps_a_minute"] == 3000.0


def test_what_was_measured_at_the_end_of_a_run_comes_before_its_last_epoch(tmp_path):
    details = {
        FINAL: {"ours": {MOTION: 0.9, SUPPORT: None}, "random": {MOTION: 0.1}},
        "control": {"ours": {"control/information": 2.0}},
        "adaptation": {"ours": {"adapt/return_last": -9.0}},
    }
    path = tmp_path / "seed2.csv"
    path.write_text(header("music-tf train sac", "1", details) + SEED.partition("\n")[2])
    run = read_result(path)
    task = Task(env_id="FetchPush-v4", seeds=(2,))
    group = stored.Group("s", None, task, {2: path}, {2: run}, [stored.measures_of(run, task)])
    assert [group.final(name) for name in (MOTION, SUPPORT, LIFT)] == [[0.9], [1.0], [None]]
    assert group.measured[0]["control/information"] == 2.0
    assert group.measured[0]["adapt/return_last"] == -9.0
    assert (group.beside("random"), stored.policies_beside([run])) == ([{MOTION: 0.1}], ["random"])


def test_runs_are_by_task_and_condition_in_order_and_strays_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "STUDIES", tmp_path)
    head = "from music_tf.tools.study import Condition, Study, Task\nSTUDY = Study(question='?', "
    push = "Task(env_id='FetchPush-v4', seeds=(2, 10))"
    (tmp_path / "mine.py").write_text(
        f"{head}role='looked at', tasks=({push}, Task(env_id='a:FetchSlide-v4', seeds=(1,))), "
        "conditions=(Condition(name='a', recipe='sac'), Condition(name='a_b', recipe='sac', "
        "tasks=('FetchPush-v4',))), beside=('other/c',))\n"
    )
    (tmp_path / "other.py").write_text(
        f"{head}role='looked at', tasks=({push},), conditions=(Condition(name='c', recipe='sac'), "
        "Condition(name='d', recipe='sac')))\n"
    )
    names = [
        "mine/a_FetchPush-v4_seed10",
        "mine/a_FetchPush-v4_seed2",
        "mine/a_FetchSlide-v4_seed1",
    ]
    for name in (*names, "mine/a_b_FetchPush-v4_seed2", "other/c_FetchPush-v4_seed2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.csv").write_text(SEED)
    groups = stored.groups_of("mine", tmp_path)
    assert [(group.study, group.name, list(group.runs)) for group in groups] == [
        ("other", "c_FetchPush-v4", [2]),
        ("mine", "a_FetchPush-v4", [2, 10]),
        ("mine", "a_b_FetchPush-v4", [2]),
        ("mine", "a_FetchSlide-v4", [1]),
    ]
    assert [group.place for group in groups] == ["FetchPush"] * 3 + ["FetchSlide"]
    assert isinstance(groups[0].runs[2], StoredResult)
    (tmp_path / "mine/a_FetchPush-v4_seed3.csv").write_text(SEED)
    with pytest.raises(UsageError, match=r"seed3.csv: is no run of experiments/studies/mine.py"):
        stored.groups_of("mine", tmp_path)
    with pytest.raises(UsageError, match=r"no study .mnie.\ndid you mean mine\?"):
        stored.planned("mnie")
