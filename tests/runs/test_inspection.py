import dataclasses
import json
import sys

import numpy as np
import pytest

from music_tf.errors import EnvironmentFault, UsageError
from music_tf.runs.evaluation_file import brake_distance
from music_tf.runs.inspection import ExtraMeasures, evaluate_run, measure
from music_tf.runs.loaded_run import load_run
from music_tf.storage.loading import load_policy
from music_tf.training.evaluation import wilson_interval
from tests.kit.cases import cases
from tests.kit.saved_run import damage, save_checkpoint, save_run
from tests.tools.test_film import alone


def evaluation(run, episodes, **options):
    evaluate_run(load_run(run), episodes, **options)
    return json.loads((run / "evaluation.json").read_text())


def test_a_damaged_checkpoint_gives_way_to_the_one_before_and_without_one_is_a_fault(tmp_path):
    save_checkpoint(tmp_path, save_run(tmp_path), 2)
    for label, expected in (("epoch_000002", 1), ("epoch_000001", None)):
        damage(tmp_path, label)
        if expected is not None:
            loaded = load_run(tmp_path)
            assert (loaded.saved.epoch, loaded.saved.env_steps) == (expected, 100)
    with pytest.raises(EnvironmentFault, match=r"state\.npz"):
        load_run(tmp_path)


@cases(
    ("name", "value", "text"),
    ("normalizer/goal", np.ones(4), r"expected float64 \(5,\), found float64 \(4,\)"),
    ("normalizer/goal", np.ones(7, np.float32), r"expected float64 \(7,\), found float32"),
    ("normalizer/goal", np.ones(2**20 + 1), "expected at most 1048576 numbers"),
    ("normalizer/goal", None, "missing"),
    ("counters", None, "expected"),
    ("counters", {"epoch": 2**62, "env_steps": 1}, "expected"),
    ("environment", {"low": [0.0]}, "expected as many bounds low as"),
)
def test_what_no_run_saves_is_named(tmp_path, name, value, text):
    trainer = save_run(tmp_path)
    arrays, meta = trainer.shared(), trainer.meta()
    changed = arrays if name in arrays else meta
    changed[name] = meta[name] | value if name == "environment" else value
    trainer.shared = lambda: {name: array for name, array in arrays.items() if array is not None}
    trainer.meta = lambda: meta
    save_checkpoint(tmp_path, trainer, epoch=2)
    told = f"{name}: {text}".removeprefix("environment: ")
    for load in (load_run, load_policy):
        with pytest.raises(UsageError, match=rf"does not fit config\.json\n{told}"):
            load(tmp_path)


def test_a_run_of_an_older_version_is_loaded_and_its_new_settings_are_named(tmp_path, caplog):
    save_run(tmp_path)
    path = tmp_path / "config.json"
    record = json.loads(path.read_text())
    del record["config"]["hang_after"]
    path.write_text(json.dumps(record))
    assert load_run(tmp_path).config.hang_after == 300.0
    assert [text for text in caplog.messages if "older version" in text and "hang_after" in text]


def test_one_process_is_enough_whatever_a_launcher_says(tmp_path, monkeypatch):
    save_run(tmp_path)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    assert measure(load_run(tmp_path), 2)["success"]["successes"] <= 2
    assert "mpi4py.MPI" not in sys.modules


def test_success_has_its_interval_and_a_random_policy_beside_it_always_the_same(tmp_path, capsys):
    save_run(tmp_path, "sac")
    result = evaluation(tmp_path, 6)
    first = (tmp_path / "evaluation.json").read_bytes()
    shown = capsys.readouterr().out
    assert "success rate" in shown
    assert str(tmp_path / "evaluation.json") in shown
    success = result["success"]
    assert success["successes"] == round(6 * result["policies"]["ours"]["eval/success_rate"])
    assert success["interval_95"] == list(wilson_interval(success["successes"], 6))
    assert result["policies"]["random"]["eval/object_on_support_rate"] > 0
    assert (result["episodes"], result["checkpoint"]) == (6, {"epoch": 1, "env_steps": 100})
    assert result["versions"]["music_tf"]
    assert result["skills"] == []  # one skill needs no table
    evaluation(tmp_path, 6)
    assert (tmp_path / "evaluation.json").read_bytes() == first


def test_each_skill_is_measured_on_the_same_episodes(tmp_path):
    trainer = save_run(tmp_path, skills=3)
    trainer.update.parameters.assign(20.0 * trainer.update.parameters)  # so that skills differ
    save_checkpoint(tmp_path, trainer, 2)
    loaded = load_run(tmp_path)
    one = measure(loaded, 1)
    assert [row["skill"] for row in one["skills"]] == [0, 1, 2]
    # Skills take turns by episode index, so the first episode of all is the first skill's.
    assert one["skills"][0]["metrics"].items() <= one["policies"]["ours"].items()
    where, policy = trainer.evaluation, trainer.policy()
    expected = [where.behaviour(where.play(policy, 8, skill)) for skill in range(3)]
    assert [row["metrics"] for row in measure(loaded, 8)["skills"]] == expected
    assert expected[0] != expected[1] != expected[2] != expected[0]


@pytest.mark.thorough
@cases(("recipe", "loads"), ("ddpg_her", False), ("ddpg_music", True), ("sac_diayn", True))
def test_tensorflow_is_loaded_only_where_networks_are_asked(tmp_path, recipe, loads):
    save_run(tmp_path, recipe, skills=2 if recipe == "sac_diayn" else 1)
    alone("evaluate", tmp_path, "--episodes", "1", "--full", loads=loads)


def test_what_music_pays_and_bounds_stands_beside_random_actions(tmp_path, capsys):
    save_run(tmp_path, "ddpg_music")
    found = evaluation(tmp_path, 4)["policies"]
    for row in found.values():
        assert {"music/paid_heldout", "music/bound_heldout", "eval/information"} <= set(row)
    assert found["ours"]["music/bound_heldout"] != found["random"]["music/bound_heldout"]
    shown = capsys.readouterr().out
    assert "learns if these rise:\n  co-motion  path of the object with the gripper\n" in shown
    assert "\n  pay        mean reward of a step, 0 to 4\n  bound      lower bound of the" in shown


def test_files_about_other_arguments_have_names_of_their_own(tmp_path):
    save_run(tmp_path)
    loaded = load_run(tmp_path)
    long = {"start": [0.125] * 30}
    given = [{"wind": 1}, {"wind": -1}, {"wind": 1.5}, long, {**long, "wind": 1}]
    told = [dataclasses.replace(loaded, env_overrides=json.dumps(one)) for one in given]
    names = [one.file("evaluation.json").name for one in told]
    assert names[:3] == [f"evaluation_wind_{one}.json" for one in ("1", "-1", "1.5")]
    assert len({*names}) == len(names)
    assert max(map(len, names)) == len("evaluation_.json") + 80
    loaded.envs.close()


@cases(("kwargs", "kept"), ({}, True), ({"sparse": False}, False))
def test_earlier_results_are_kept_for_an_environment_with_equal_arguments(tmp_path, kwargs, kept):
    save_run(tmp_path)
    earlier = evaluation(tmp_path, 1) | {"zero_shot": {"ours": {"zero_shot/stop": 0.5}}}
    (tmp_path / "evaluation.json").write_text(json.dumps(earlier | {"env_kwargs": kwargs}))
    assert brake_distance(load_run(tmp_path)) == (0.5 if kept else 0.0)
    assert ("zero_shot" in evaluation(tmp_path, 1)) == kept


FULL, OVERWRITING = ExtraMeasures(full=True), ExtraMeasures(overwrite=True)


@pytest.mark.thorough
@cases(
    ("episodes", "beyond", "stored", "judged"),
    (2, FULL, 3, 2),  # what the file lacks is added
    (2, OVERWRITING, 2, None),
    (3, ExtraMeasures(), 3, None),
    (4, FULL, 4, 4),
)
def test_fewer_episodes_of_a_checkpoint_are_shown_but_not_stored(
    tmp_path, caplog, episodes, beyond, stored, judged
):
    save_run(tmp_path)
    evaluation(tmp_path, 3)
    measured = evaluate_run(load_run(tmp_path), episodes, extras=beyond, shown=False)
    kept = json.loads((tmp_path / "evaluation.json").read_text())
    assert (measured["episodes"], kept["episodes"]) == (episodes, stored)
    assert kept.get("control_episodes") == judged
    texts = [each.getMessage() for each in caplog.records]
    path = tmp_path / "evaluation.json"
    assert texts == (stored > episodes) * [
        f"not stored: {path} holds more of this checkpoint, 3 episodes\n"
        "to replace it: --overwrite, in Python overwrite=True"
    ]
    fewer = evaluation(tmp_path, 1, extras=FULL)  # what was judged outlives its evaluation
    assert fewer["control_episodes"] == (judged or 1)
    assert evaluation(tmp_path, 2, extras=FULL)["control_episodes"] == max(2, judged or 0)


def test_an_evaluation_of_another_checkpoint_takes_the_place_of_a_longer_one(tmp_path, caplog):
    trainer = save_run(tmp_path)
    evaluation(tmp_path, 3, extras=FULL)
    save_checkpoint(tmp_path, trainer, 2)
    later = evaluation(tmp_path, 1)
    assert later["episodes"] == 1
    assert not {"control", "control_episodes", "coverage", "coverage_episodes"} & set(later)
    (tmp_path / "evaluation.json").write_text("[1")
    assert evaluation(tmp_path, 1) == later
    assert caplog.records == []
