import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from music_tf import gate, recipes
from music_tf.config.agents import SacConfig
from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.config.world import World
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.normalizer import InputMoments
from music_tf.reading.command import parse_train
from music_tf.reading.stored import StoredRun
from music_tf.recipes.distance import DistanceConfig
from music_tf.runs.loaded_run import learned_arrays
from music_tf.storage.checkpoint import StoredWeights, save_weights
from music_tf.storage.results import COUNTED
from music_tf.storage.warm_start import (
    WarmStartTarget,
    digest_of,
    export_weights,
    initial_arrays,
    load_warm_start,
    parts_taken,
    record_of,
    start_line,
    taken_before,
)
from tests.kit.cases import cases
from tests.kit.drawn import sample_transitions
from tests.kit.guessing import GuessConfig
from tests.kit.saved_run import load_weights, save_checkpoint, save_run, small_config, write_config
from tests.kit.small import (
    BASE,
    EVERYTHING,
    HER,
    MUSIC,
    NETWORK,
    SMALL_MUSIC,
    SMALL_SKILL,
    go_on,
    paying,
    trainer_of,
)
from tests.kit.warm import try_warm_start

POLICY = ("actor", "critic", "targets", "normalizer")
FROZEN = with_fields(paying(HER, TaskConfig(), SMALL_MUSIC), {"music.train": False})


def trained(path, config, epochs=1):
    """Trains a run for a moment, saves it under `path`, and returns its trainer."""
    trainer = trainer_of(dataclasses.replace(config, workers=1, seed=5))
    for _ in range(epochs):
        trainer.run_epoch(go_on)
    save_checkpoint(path, trainer, trainer.counters.epoch)
    return trainer


@pytest.fixture(scope="module")
def music_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("music")
    return path / "checkpoints", trained(path, MUSIC)


@pytest.fixture(scope="module")
def task_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("task")
    return path / "checkpoints", trained(path, HER)


def started(config, source, parts):  # a trainer of another seed that starts from parts of a source
    warm_start = try_warm_start(dataclasses.replace(config, seed=9), source, parts)
    trainer = trainer_of(config, seed=9)
    trainer.start_from(warm_start.arrays)
    return trainer


def group(trainer, *prefixes):
    return {name: a for name, a in trainer.shared().items() if name.startswith(prefixes)}


@pytest.mark.thorough
def test_parts_asked_for_are_those_of_the_source_and_targets_follow_their_networks(music_run):
    source, before = music_run
    after = started(FROZEN, source, ("actor", "statistics"))
    taken = ("parameters/actor/", "parameters/statistics/")
    np.testing.assert_equal(group(after, *taken), group(before, *taken))
    untouched = ("parameters/critic_0/", "normalizer/", "adam_")
    np.testing.assert_equal(group(after, *untouched), group(trainer_of(FROZEN, seed=9), *untouched))
    assert (after.counters.epoch, after.counters.env_steps) == (0, 0)
    targets, main = (group(before, prefix) for prefix in ("targets/actor", "parameters/actor"))
    assert any((a != b).any() for a, b in zip(targets.values(), main.values(), strict=True))
    after = started(HER, music_run[0], ("actor", "critic"))
    for name, target in group(after, "targets/").items():
        np.testing.assert_array_equal(target, after.shared()[name.replace("targets", "parameters")])


def normalized_goals(trainer):  # what the networks of a trainer make of goals of the environment
    goals = trainer.envs.reset([0, 1], [3, 4]).desired_goal
    observation = np.zeros([len(goals), trainer.envs.spec.observation_dim], np.float32)
    inputs = trainer.inputs.now(observation, goals, np.zeros([len(goals), 1], np.float32))
    return inputs[:, -goals.shape[1] :]


def test_goals_seen_after_zero_goals_are_not_saturated_and_statistics_of_real_ones_come_along(
    music_run, task_run
):
    source, before = music_run
    assert np.abs(normalized_goals(before)).max() == 5.0  # what must not be taken over
    after = started(HER, source, POLICY)
    goals = after.envs.reset([0, 1], [3, 4]).desired_goal
    np.testing.assert_allclose(normalized_goals(after), goals, atol=1e-6)
    after.run_epoch(go_on)
    assert 0.1 < np.abs(normalized_goals(after)).max() < 3.0
    source, before = task_run
    after = started(HER, source, ("normalizer",))
    np.testing.assert_equal(group(after, "normalizer/"), group(before, "normalizer/"))


@pytest.mark.thorough
def test_a_frozen_network_from_elsewhere_stays_and_pays_the_same(music_run):
    source, before = music_run
    after = started(FROZEN, source, ("statistics",))
    batch = sample_transitions(before.replay, 1, 0)
    fields = [name for name in batch._fields if isinstance(getattr(batch, name), np.ndarray)]
    now = batch._replace(**{name: getattr(batch, name)[0] for name in fields})

    def rewards(trainer):
        (term,) = [term for term in trainer.terms if term.name == "music"]
        weights = trainer.update.layout.split(trainer.update.parameters)
        return term.reward(weights, now, {"swapped": np.array([True])}).numpy()

    expected = rewards(before)
    assert np.std(expected) > 0.0
    np.testing.assert_array_equal(rewards(after), expected)
    after.run_epoch(go_on)
    np.testing.assert_array_equal(rewards(after), expected)


@cases(
    ("changes", "parts", "text"),
    (
        {"agent": dataclasses.replace(HER.agent, hidden_sizes=(8, 16))},
        ("normalizer", "actor"),
        r"--parts actor: actor/hidden_0/kernel does not fit\n"
        r"expected float32 \(12, 8\), found float32 \(12, 16\) in \S*epoch_000001\n"
        r"for example: --agent.hidden-sizes 16 16\Z",
    ),
    (
        {"agent": dataclasses.replace(HER.agent, critics=2)},
        ("critic",),
        r"--parts critic: critic_1/.*\nexpected float32 .*, found no such weight",
    ),
    (
        {"agent": SacConfig(**NETWORK)},
        ("actor", "targets"),
        r"--parts actor,targets: sac takes no critics of ddpg, expected an actor alone\n"
        r"for example: --parts actor,normalizer\Z",
    ),
    (
        {"env_id": "music_tf/PointReach-v0"},
        ("normalizer",),
        r"--parts normalizer: observation does not fit\nexpected float64 .*, found float64",
    ),
    ({}, ("discriminator",), "--parts discriminator: this run has none; its parts are actor,"),
    (
        {"replay": dataclasses.replace(HER.replay, reach=0.3)},
        ("actor",),
        r"actor: actor/\S+ does not fit\n.*\nboth runs need replay.reach",
    ),
)
def test_what_does_not_fit_is_named_with_both_shapes(music_run, changes, parts, text):
    with pytest.raises(UsageError, match=text):
        try_warm_start(dataclasses.replace(HER, **changes), music_run[0], parts)


@cases(
    ("saves", "step", "text"),
    (False, 1, r"--parts actor: reach does not fit\n.*\nboth runs need replay.reach"),
    (True, -1, r"normalizer/reach: expected columns .*, found"),
)
def test_an_actor_alone_brings_the_columns_of_its_offsets(tmp_path, monkeypatch, saves, step, text):
    def moments_alone(inputs):
        return {name: owner.state for name, owner in inputs._owners.items()}

    with monkeypatch.context() as patch:
        if not saves:  # as runs did whose networks saw absolute goals
            patch.setattr(InputMoments, "shared", moments_alone)
        before = save_run(tmp_path, "ddpg_rher").envs.spec.reach
    config = small_config(
        "ddpg_rher", world=World(gripper=before.hand, object=before.object[::step])
    )
    with pytest.raises(UsageError, match=text):
        try_warm_start(config, tmp_path / "checkpoints", ("actor",))


@pytest.mark.parametrize("name", ["parameters/actor/hidden_0/bias", "normalizer/observation"])
def test_numbers_that_are_not_finite_are_refused(tmp_path, monkeypatch, task_run, name):
    trainer = task_run[1]
    arrays = trainer.shared()
    arrays[name] = np.full_like(arrays[name], np.nan)
    monkeypatch.setattr(gate, "instead_of_numbers", lambda *_: "")  # else it is not written
    save_weights(tmp_path / "bad", arrays, trainer.meta())
    with pytest.raises(UsageError, match=rf"--init-from: .*bad: {name}: expected finite numbers"):
        try_warm_start(trainer.config, tmp_path / "bad", ("actor", "normalizer"))


def test_a_part_that_is_absent_or_of_another_type_is_refused(task_run):
    source, trainer = task_run
    with pytest.raises(UsageError, match=r"epoch_000001 has none; its parts are actor,critic,targ"):
        try_warm_start(FROZEN, source, ("statistics",))
    own = {name: array.astype(np.float64) for name, array in trainer.shared().items()}
    target = WarmStartTarget(own, {}, trainer.envs.declared, FROZEN)
    loaded = load_warm_start(FROZEN, source, ("actor",))
    with pytest.raises(UsageError, match=r"expected float64 .*, found float32"):
        initial_arrays(loaded, target)


@pytest.mark.thorough
def test_the_network_of_ones_own_reward_is_a_part_by_its_name(tmp_path, monkeypatch, music_run):
    monkeypatch.setattr(recipes, "_TRUSTED", set())
    recipe = "tests.kit.guessing:guessing"
    config = paying(BASE, GuessConfig())
    before = trained(tmp_path, config)
    words = [recipe, "--init-from", str(tmp_path), "--parts", "actor,guesser"]
    parts = parse_train(words).start.parts
    after = started(config, tmp_path / "checkpoints", parts)
    np.testing.assert_equal(
        group(after, "parameters/guesser/"), group(before, "parameters/guesser/")
    )
    warm_start = try_warm_start(config, tmp_path / "checkpoints", parts)
    assert start_line(warm_start.record).endswith("epoch 1: actor, guesser")
    with pytest.raises(UsageError, match="did you mean guesser"):
        parse_train([*words[:-1], "guess"])
    with pytest.raises(UsageError, match=r"guesser: \S+ has none; its parts are actor,"):
        try_warm_start(config, music_run[0], ("guesser",))
    with pytest.raises(UsageError, match="guesser: this run has none"):
        try_warm_start(HER, tmp_path / "checkpoints", ("guesser",))
    export_weights(tmp_path / "checkpoints", tmp_path / "weights", ("guesser",))
    assert set(load_weights(tmp_path / "weights")[0]) == set(group(before, "parameters/guesser/"))


SCALED = {
    "statistics": with_fields(MUSIC, {"music.normalize_inputs": True, "cycles": 1}),
    "discriminator": with_fields(
        EVERYTHING, {"rewards": {"skill": SMALL_SKILL}, "skill.normalize_inputs": True, "cycles": 1}
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("part", "reward"), [("statistics", "music"), ("discriminator", "skill")])
def test_a_network_of_scaled_inputs_brings_its_scale_and_fits_no_raw_ones(tmp_path, part, reward):
    config = SCALED[part]
    other = with_fields(config, {"seed": 7, f"{reward}.train": False})
    source = trained(tmp_path / "scaled", config)
    warm_start = try_warm_start(other, tmp_path / "scaled/checkpoints", (part,))
    heir = trainer_of(other)  # measures another scale for itself
    name = f"scales/{part}"
    own, taken = heir.shared()[name], source.shared()[name]
    assert taken.shape[0] == 2
    assert not np.array_equal(own, taken)
    heir.start_from(warm_start.arrays)
    heir.run_epoch(go_on)  # which changes neither
    its = (name, f"parameters/{part}/")
    np.testing.assert_equal(group(heir, *its), group(source, *its))
    raw = with_fields(config, {f"{reward}.normalize_inputs": False})
    trained(tmp_path / "raw", raw)
    for there, into in (("scaled", raw), ("raw", config)):
        with pytest.raises(UsageError, match=r"(?s)no such weight.*need the same normalize_inputs"):
            try_warm_start(into, tmp_path / there / "checkpoints", (part,))


def test_exported_parts_are_a_small_source_of_their_own(tmp_path, music_run):
    source, before = music_run
    folder = tmp_path / "weights"
    export_weights(source, folder, ("statistics", "normalizer"))
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000
    arrays, meta = load_weights(folder)
    assert {name.split("/")[1] for name in arrays} == {"statistics", "observation", "goal"}
    assert meta["goals"] == "zero"
    after = started(FROZEN, folder, ("statistics", "normalizer"))
    for prefix in ("parameters/statistics/", "normalizer/observation"):
        np.testing.assert_equal(group(after, prefix), group(before, prefix))
    np.testing.assert_array_equal(after.inputs.goals.state, trainer_of(BASE).inputs.goals.state)
    with pytest.raises(UsageError, match="has none; its parts are statistics,normalizer"):
        started(HER, folder, ("actor",))
    export_weights(source, folder, ("actor",))  # replaces it
    assert not any("statistics" in name for name in load_weights(folder)[0])
    (folder / "state.npz").write_bytes(b"PK")
    with pytest.raises(EnvironmentFault, match="damaged"):
        started(FROZEN, folder, ("actor",))


@cases("place", ("--run-dir", "/home/me/run"), ("--run-dir=/home/me/run",), ("--run_dir", "mine"))
def test_an_export_does_not_say_where_its_run_lay(place, tmp_path, music_run):
    source, _ = music_run
    words = ("ddpg_music", "--seed", "3", *place, "--threads", "1")
    run = StoredRun("ddpg_music", "laptop", words, BASE)
    export_weights(source, tmp_path / "weights", ("actor", "normalizer"), run)
    stored = json.loads((tmp_path / "weights/config.json").read_text())
    assert stored["arguments"] == ["ddpg_music", "--seed", "3", "--threads", "1"]


@cases(("parts", "kept"), (("actor", "statistics"), 1), (("actor", "normalizer"), 0))
def test_an_export_keeps_the_gain_of_a_reward_with_its_network(tmp_path, parts, kept):
    config = with_fields(MUSIC, {"music.gain": "auto"})
    trainer = trainer_of(config)
    save_weights(tmp_path / "run", trainer.shared(), trainer.meta())
    export_weights(
        tmp_path / "run", tmp_path / "few", parts, StoredRun("ddpg_music", "", (), config)
    )
    arrays, _ = load_weights(tmp_path / "few")
    assert list(arrays).count("scales/music") == kept
    assert bool(learned_arrays(arrays, config.rewards)) == bool(kept)


def test_steps_are_counted_through_runs_and_exports(tmp_path, music_run):
    source, before = music_run
    taken = try_warm_start(HER, source, ("actor",)).record["before"]

    def counted(trainer):
        return {column: getattr(trainer.counters, name) for column, name in COUNTED.items()}

    assert taken == counted(before)
    assert taken["time/env_steps"] > 0
    heir = save_run(tmp_path / "run", "ddpg")
    weights = tmp_path / "run/checkpoints/best"
    save_weights(weights, heir.shared(), heir.meta() | {"before": taken})
    export_weights(weights, tmp_path / "weights", ("actor",))
    found = try_warm_start(heir.config, tmp_path / "weights", ("actor",)).record
    assert found["epoch"] == 1
    assert found["before"] == {name: taken[name] + n for name, n in counted(heir).items()}


def test_an_export_replaces_an_earlier_one_but_no_file_of_the_user(tmp_path, task_run):
    folder = tmp_path / "weights"
    with pytest.raises(UsageError, match="--parts statistics"):
        export_weights(task_run[0], folder, ("statistics",))
    assert not folder.exists()
    export_weights(task_run[0], folder, ("actor", "critic"))
    (folder / "robot").mkdir()
    for name in ("robot/policy.py", "evaluation.json", "evaluation_stage_0.json", "skills.json"):
        (folder / name).touch()  # of old weights
    export_weights(task_run[0], folder, ("actor",))
    assert not [path for path in folder.iterdir() if path.name.startswith(("robot", "ev", "sk"))]
    (folder / "README.md").write_text("mine")
    (folder / "videos").mkdir()
    for place, text in (
        (folder, r"weights: an export .* got README\.md, videos\nmove that"),
        (tmp_path, "expected a new directory"),
    ):
        before = sorted(place.rglob("*"))
        with pytest.raises(UsageError, match=text):
            export_weights(task_run[0], place, ("actor",))
        assert sorted(place.rglob("*")) == before
    assert (folder / "README.md").read_text() == "mine"


def test_every_part_of_a_run_with_everything_can_be_taken_over(tmp_path):
    before = trained(tmp_path, dataclasses.replace(EVERYTHING, cycles=1))
    parts = ("actor", "critic", "targets", "statistics", "discriminator", "normalizer")
    after = started(EVERYTHING, tmp_path / "checkpoints", parts)
    prefixes = ("parameters/actor", "parameters/critic", "parameters/stat", "parameters/disc")
    taken = (*prefixes, "targets/", "normalizer/")
    np.testing.assert_equal(group(after, *taken), group(before, *taken))


@pytest.mark.parametrize(("agent", "size"), [("ddpg", 3), ("sac", 1)])
def test_networks_of_a_run_without_skills_act_as_before_under_any_condition(tmp_path, agent, size):
    config = MUSIC if agent == "ddpg" else with_fields(MUSIC, {"agent": SacConfig(**NETWORK)})
    before = trained(tmp_path, config)
    conditioned = with_fields(config, {"condition.kind": "sphere", "condition.size": size})
    parts = ("actor", "critic", "targets", "normalizer")
    after = started(conditioned, tmp_path / "checkpoints", parts)
    random = np.random.default_rng(0)
    spec = before.envs.spec
    observation = random.normal(size=(50, spec.observation_dim)).astype(np.float32)
    goal = np.zeros([50, spec.goal_dim], np.float32)
    condition = random.normal(size=(50, size)).astype(np.float32)
    expected = before.snapshot().act(observation, goal, np.ones([50, 1], np.float32), None)
    found = after.snapshot().act(observation, goal, condition, None)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    own, source = (group(t, "parameters/critic_0/hidden_0/") for t in (after, before))
    kernel, earlier = (a["parameters/critic_0/hidden_0/kernel"] for a in (own, source))
    seen = spec.observation_dim
    np.testing.assert_array_equal(kernel[seen : seen + size], 0.0)
    np.testing.assert_array_equal(kernel[seen + size :], earlier[seen + 1 :])


def test_a_single_number_that_varies_is_no_skill_that_moves_into_the_bias(tmp_path):
    single = with_fields(MUSIC, {"condition.kind": "gaussian", "condition.size": 1})
    before = trainer_of(single)
    save_checkpoint(tmp_path, before)
    export_weights(tmp_path / "checkpoints", tmp_path / "weights", ("actor",))
    conditioned = with_fields(single, {"condition.size": 3})
    for source in ("checkpoints", "weights"):
        with pytest.raises(UsageError, match="those of 3 numbers; found gaussian ones of one num"):
            try_warm_start(conditioned, tmp_path / source, ("actor",))
    meta = {name: value for name, value in before.meta().items() if name != "condition"}
    save_weights(tmp_path / "older", before.shared(), meta)  # whose conditions were one-hot
    assert try_warm_start(conditioned, tmp_path / "older", ("actor",)).arrays


METRA = paying(BASE, DistanceConfig(hidden_sizes=(8,), columns=(3, 4)), skills=2)
DENSE = with_fields(METRA, {"distance.distance": "density", "distance.modelled": (0, 1)})


@cases(
    ("config", "part", "changes", "text"),
    (
        MUSIC,
        "statistics",
        {"world.agent": (3, 4, 5), "world.surrounding": (0, 1, 2)},
        r"\[3, 4, 5\].*found.*\[0, 1, 2\]",
    ),
    (MUSIC, "statistics", {"music.activation": "tanh"}, r"tanh.*found \{(?!.*tanh)"),
    (EVERYTHING, "discriminator", {"skill.state": "next"}, "next.*found.*current"),
    (METRA, "phi", {"distance.constraint": "spectral"}, "spectral.*found.*dual"),
    (DENSE, "change_mean", {"distance.modelled": (1, 2)}, r"\[1, 2\].*found.*\[0, 1\]"),
    (DENSE, "change_deviation", {"distance.modelled": (1, 2)}, r"\[1, 2\].*found.*\[0, 1\]"),
)
def test_a_network_that_sees_or_computes_something_else_is_refused(
    tmp_path, config, part, changes, text
):
    save_checkpoint(tmp_path, trainer_of(config))
    source = tmp_path / "checkpoints"
    assert try_warm_start(config, source, (part,)).arrays
    told = rf"(?s){part}: has other inputs than here\nexpected .*{text}"
    with pytest.raises(UsageError, match=told):
        try_warm_start(with_fields(config, changes), source, (part,))


@cases(("source", "speed"), ("inf", 0.5), (2.0, "auto"), (2.0, 0.5), (2.0, "inf"))
def test_an_embedding_comes_without_the_speed_of_its_run(tmp_path, source, speed):
    def at(value):
        value = value if value == "auto" else float(value)
        kind = "sphere" if value == math.inf else "ball"
        vectors = {"condition.kind": kind, "condition.size": 2, "skills": 1}
        return with_fields(METRA, {**vectors, "distance.speed": value})

    save_checkpoint(tmp_path, trainer_of(at(source)))
    arrays = try_warm_start(at(speed), tmp_path / "checkpoints", ("phi",)).arrays
    assert arrays.get("scales/phi/speed") == {"inf": None, "auto": 1.0}.get(speed, speed)


SKILLED = {"skills": 3, "rewards": {"task": TaskConfig()}}
RAW = {"normalizer.running": False, "normalizer.clip": 1e6, "normalizer.input_clip": 1e6}
NO_RUNNING = "--normalizer.running False --normalizer.clip 1e+06 --normalizer.input-clip 1e+06"


@cases(
    ("changes", "parts", "added"),
    (RAW, ("actor",), NO_RUNNING),
    (RAW, ("normalizer",), ""),
    ({"agent.deviation": "clip"}, ("actor", "normalizer"), "--agent.deviation clip"),
    ({"agent.deviation": "clip"}, ("critic", "targets"), ""),
    ({"normalizer.clip": 10.0}, ("targets",), "--normalizer.clip 10"),
    ({"normalizer.epsilon": 0.02}, POLICY, "--normalizer.epsilon 0.02"),
    ({"normalizer.epsilon": 0.02}, ("actor",), ""),
    ({"condition.sampler": "tiled", "rollouts": 6}, ("actor",), ""),
)
def test_networks_that_would_act_differently_are_refused_with_what_to_add(
    changes, parts, added, tmp_path
):
    ours = small_config("sac_diayn", **SKILLED)
    before = with_fields(ours, changes)
    write_config(tmp_path, before, "sac_diayn")
    save_checkpoint(tmp_path, trainer_of(before))
    for source in (tmp_path / "checkpoints", tmp_path / "checkpoints/epoch_000001"):
        if added:
            with pytest.raises(UsageError, match="act differently here") as fault:
                try_warm_start(ours, source, parts)
            assert str(fault.value).endswith(f"\nadd: {added}")
        else:
            assert try_warm_start(ours, source, parts).arrays
        assert try_warm_start(before, source, parts).arrays


def test_settings_of_a_source_are_compared_that_this_version_cannot_read_whole(tmp_path):
    ours = small_config("sac_diayn", **SKILLED)
    before = with_fields(ours, {"normalizer.clip": 10.0})
    write_config(tmp_path, before, "sac_diayn")
    save_checkpoint(tmp_path, trainer_of(before))
    record = json.loads((tmp_path / "config.json").read_text())
    record["config"]["agent"] = {"of_another_version": 3}  # and without what is there today
    (tmp_path / "config.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"here, under \S+clip 5\nadd: \S+clip 10$"):
        try_warm_start(ours, tmp_path / "checkpoints", ("actor",))
    assert try_warm_start(before, tmp_path / "checkpoints", ("actor",)).arrays
    (tmp_path / "config.json").write_text("{")
    assert try_warm_start(ours, tmp_path / "checkpoints", ("actor",)).arrays


@cases(
    ("there", "here", "size", "advice"),
    ("one_hot", "sphere", 3, "one_hot"),
    ("sphere", "one_hot", 3, "sphere --skills 1 --condition.size 3"),
    ("gaussian", "one_hot", 1, "gaussian --skills 1 --condition.size 1"),
    ("gaussian", "sphere", 2, "gaussian"),
)
def test_conditions_of_another_kind_are_refused(there, here, size, advice, tmp_path):
    def of(kind):
        drawn = {"skills": size} if kind == "one_hot" else {"condition.size": size}
        return with_fields(MUSIC, {"condition.kind": kind, **drawn})

    save_checkpoint(tmp_path, trainer_of(of(there)))
    source = tmp_path / "checkpoints"
    with pytest.raises(
        UsageError, match=f"expected a source with {here} conditions.*{there} ones"
    ) as fault:
        try_warm_start(of(here), source, ("actor",))
    assert str(fault.value).endswith(f"\nthis run can have the same: --condition.kind {advice}")
    assert try_warm_start(of(there), source, ("actor",)).arrays
    assert try_warm_start(of(here), source, ("normalizer",)).arrays


def test_a_run_of_skills_is_not_advised_to_have_the_latents_of_an_agent_that_infers(tmp_path):
    config = with_fields(MUSIC, {"skills": 3})
    pinned = with_fields(config, {"pinned_skill": 1})
    trainer = trainer_of(config)
    for kind, advice in (
        ("belief", ""),
        ("box", "\nthis run .* box --skills 1 --condition.size 3 --pinned-skill None"),
    ):
        save_weights(tmp_path / kind, trainer.shared(), trainer.meta() | {"condition": kind})
        with pytest.raises(UsageError, match=rf"found {kind} ones{advice}\Z"):
            try_warm_start(pinned, tmp_path / kind, ("actor",))


@cases(
    ("deviation", "features", "output"),
    # log sigma = -2 = -5 + 3.5 (tanh w + 1): tanh w = -1/7; sigma = 0.135335 = log(1 + e^w) + 0.001
    ("tanh", True, -0.143841),
    ("softplus", False, -1.939497),
    ("clip", True, -2.0),
)
def test_a_deterministic_actor_becomes_a_gaussian_one_of_the_same_mode(
    music_run, tmp_path, deviation, features, output
):
    source, before = music_run
    agent = SacConfig(**NETWORK, deviation=deviation, linear_features=features)
    config = with_fields(MUSIC, {"agent": agent})
    write_config(tmp_path, MUSIC)  # has no deviation that could differ
    export_weights(source, tmp_path / "checkpoints/weights", ("actor", "normalizer"))
    after = started(config, tmp_path / "checkpoints/weights", ("actor", "normalizer"))
    bias = after.shared()["parameters/actor/log_deviation/bias"]
    np.testing.assert_allclose(bias, np.full(3, output), rtol=1e-5)
    drawn, spec = np.random.default_rng(0), before.envs.spec
    observation = drawn.normal(size=(50, spec.observation_dim)).astype(np.float32)
    given = (observation, np.zeros([50, spec.goal_dim], np.float32), np.ones([50, 1], np.float32))
    mode = after.snapshot().act(*given, None)
    np.testing.assert_array_equal(mode, before.snapshot().act(*given, None))
    sampled = after.snapshot().act(*given, np.ones([50, 3], np.float32))
    exact = np.abs(sampled) < 0.9  # where arctanh magnifies no rounding
    drawn = np.arctanh(sampled[exact]) - np.arctanh(mode[exact])
    np.testing.assert_allclose(drawn, np.exp(-2.0), rtol=1e-3)


# --- the record of a start ------------------------------------------------------------------


OLD = {"run": "/a/run/checkpoints", "checkpoint": "epoch_000003", "sha256": "1", "parts": ["actor"]}
"""What a version wrote that counted nothing."""


def record(meta):
    stored = StoredWeights(Path("/a/run/checkpoints/epoch_000007"), "12ab", (), {}, meta)
    return record_of(Path("/a/run/checkpoints"), stored, ("actor", "critic"))


def test_a_record_counts_the_source_and_what_that_one_started_from():
    counters = {"epoch": 7, "cycle": 70, "env_steps": 700, "elapsed_s": 70.5}
    meta = {"counters": counters, "env_id": "FetchPush-v4"}
    found = record({**meta, "before": {"time/env_steps": 300.0}})
    assert json.loads(json.dumps(found)) == {
        "run": "/a/run/checkpoints",
        "checkpoint": "epoch_000007",
        "epoch": 7,
        "env_id": "FetchPush-v4",
        "sha256": "12ab",
        "parts": ["actor", "critic"],
        "before": {"time/env_steps": 1000.0, "time/elapsed_s": 70.5},
    }
    assert taken_before(found, Path()) == found["before"]
    assert start_line(found) == "starts from /a/run, epoch 7: actor, critic"
    assert parts_taken(found) == ["actor", "critic"]


@cases(
    "meta",
    {},
    {"counters": 3},
    *({"counters": {"epoch": epoch}} for epoch in (None, True, -1, 2**70, float("nan"), [7])),
)
def test_weights_without_counters_count_as_zero_steps(meta):
    assert record(meta)["before"] == {}
    assert record(meta)["epoch"] is None
    assert start_line(record(meta)).startswith("starts from /a/run, checkpoint epoch_000007: ")


@cases(
    "meta",
    {"counters": {"env_steps": "many"}},
    {"counters": {"env_steps": float("nan")}},
    {"counters": {"elapsed_s": 10**400}},
    {"counters": {"env_steps": 1}, "before": [1]},
    {"counters": {"env_steps": 1}, "before": {"time/env_steps": None}},
)
def test_counters_that_are_no_numbers_are_refused(meta):
    with pytest.raises(UsageError, match="epoch_000007: expected numbers of steps and seconds"):
        record(meta)


def test_an_older_record_is_shown_counts_nothing_and_no_control_character_is_printed():
    assert start_line(OLD) == "starts from /a/run, checkpoint epoch_000003: actor"
    assert taken_before(OLD, Path()) == taken_before(None, Path()) == {}
    assert (parts_taken(OLD), digest_of(OLD)) == (["actor"], "1")
    assert (parts_taken(None), digest_of(None)) == ([], "")
    parts = [{}, "a\nb", "actor", *(1000 * ["$"])]
    line = start_line({"run": "\x1b[2J" + 1000 * "x", "epoch": True, "parts": parts})
    assert line.isprintable()
    assert line.endswith("xxx, checkpoint ?: ?, ?, actor" + 9 * ", ?")
    assert len(line) < 400
    assert digest_of({"sha256": [1]}) == ""
