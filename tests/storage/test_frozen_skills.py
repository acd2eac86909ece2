"""Another run that starts from one of several skills, each of which has an actor of its own."""

import contextlib
import dataclasses

import gymnasium
import numpy as np
import pytest

from music_tf.config.conditioning import IncrementalConfig
from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.distributed import Communicator
from music_tf.envs.toys import Square
from music_tf.errors import UsageError
from music_tf.reading.stored import read_run
from music_tf.recipes import resolve
from music_tf.storage.checkpoint import newest_weights, save_weights
from music_tf.storage.loading import load_policy
from music_tf.storage.warm_start import export_weights, start_line
from music_tf.training.build import build_trainer
from tests.kit import small
from tests.kit.cases import cases
from tests.kit.one_by_one import TINY, trainer_of
from tests.kit.saved_run import save_checkpoint, write_config
from tests.kit.warm import followed, try_skills, try_warm_start

pytestmark = pytest.mark.thorough

SEEN = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
ACTING = ("actor", "normalizer")


def saved(path, epochs):  # a run of three skills in turn after some epochs, two of each skill
    trainer = trainer_of()
    for _ in range(epochs):
        trainer.run_epoch(small.go_on)
    write_config(path, trainer.config, "sac_disk")
    save_checkpoint(path, trainer, epochs)
    return trainer


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("skills")
    saved(path, 6)
    return path


def held_to(skill, skills=3):
    """A run for the task of the same place, held to a skill, or that learns all skills at once."""
    return dataclasses.replace(
        TINY,
        rewards={"task": TaskConfig()},
        incremental=IncrementalConfig(),
        skills=skills,
        pinned_skill=skill,
        epochs=1,
    )


@contextlib.contextmanager
def started(skill, path, parts=ACTING):  # a trainer that has taken over parts of a run
    warm_start = try_warm_start(held_to(skill), path, parts)
    trainer = small.trainer_of(held_to(skill), seed=7)
    trainer.start_from(warm_start.arrays)
    yield trainer, warm_start
    trainer.envs.close()


@pytest.mark.parametrize("skill", [0, 1, 2])
def test_a_run_pinned_to_a_skill_begins_with_that_skills_actor(source, skill):
    policy = load_policy(source)
    expected = policy.act(SEEN, skill=skill)
    with started(skill, source / "checkpoints") as (trainer, warm_start):
        for condition in np.eye(3, dtype=np.float32):
            rows = np.broadcast_to(condition, (5, 3))
            acted = trainer.snapshot().act(SEEN, np.zeros([5, 0], np.float32), rows, None)
            np.testing.assert_allclose(acted, expected, rtol=1e-5, atol=1e-6)
        moments = trainer.inputs.now.observation
        counted = newest_weights(source / "checkpoints").arrays["normalizer/observation"]
        assert trainer.shared()["normalizer/observation"][-1] == counted[-1]
        assert start_line(warm_start.record).endswith(f"epoch 6, skill {skill}: actor, normalizer")
    np.testing.assert_array_equal(moments, policy.snapshot.each[skill].inputs.observation)
    assert not np.allclose(expected, policy.act(SEEN, skill=(skill + 1) % 3), atol=1e-3)


@cases(
    ("skill", "parts", "said"),
    (1, ("critic",), r"critic: skill 1 of \S+ has none; its parts are actor,normalizer\Z"),
    (1, ("actor", "targets"), r"targets: skill 1 of \S+ has none; its parts are actor,norm"),
    (None, ACTING, r"expected one of 0\.\.2 as --pinned-skill, got None\n.*--skills 3 --pin"),
)
def test_parts_that_a_finished_skill_lacks_are_refused(source, skill, parts, said):
    with pytest.raises(UsageError, match=said):
        try_warm_start(held_to(skill), source / "checkpoints", parts)


@cases(
    ("epochs", "skill", "told", "follows"),
    (5, 2, r"expected one of 0\.\.1 as --pinned-skill, got 2", None),
    (1, 0, "no skill is learned yet, expected at least one", r"is learned yet.* with epoch 2"),
)
def test_a_run_in_training_offers_only_its_finished_skills(tmp_path, epochs, skill, told, follows):
    saved(tmp_path, epochs)
    with pytest.raises(UsageError, match=told):
        try_warm_start(held_to(skill), tmp_path / "checkpoints", ACTING)
    if follows is None:
        assert followed(held_to(0, skills=5), tmp_path).skills == 2
        return
    with pytest.raises(UsageError, match=follows):
        followed(held_to(0, skills=5), tmp_path)


def test_finished_skills_are_tried_at_a_task_each_by_its_own_actor(source, monkeypatch):
    step = Square.step

    def paid(self, action):
        seen, _, *rest = step(self, action)
        return seen, float(seen[0]), *rest

    monkeypatch.setattr(Square, "step", paid)
    task = with_fields(held_to(None), {"world.reward": (-9.0, 9.0)})  # the square pays 0
    best, returns = try_skills(task, source, 1)
    policy, point, expected = load_policy(source), gymnasium.make("music_tf/Square-v0"), []
    for skill in range(3):  # the sum of x on its way
        (seen, _), total = point.reset(), 0.0
        for _ in range(10):
            seen, *_ = point.step(policy.act(seen, skill=skill))
            total += seen[0]
        expected.append(total)
    np.testing.assert_allclose(returns, expected, rtol=1e-4)
    assert best == int(np.argmax(expected))


def test_exported_skills_act_and_start_runs_as_the_run_itself_does(source, tmp_path):
    export_weights(source / "checkpoints", tmp_path / "few", ACTING, read_run(source))
    policy, whole = load_policy(tmp_path / "few"), load_policy(source)
    assert policy.skills == 3
    for skill in range(3):
        np.testing.assert_array_equal(policy.act(SEEN, skill=skill), whole.act(SEEN, skill=skill))
    one, other = (
        try_warm_start(held_to(2), place, ACTING).arrays
        for place in (tmp_path / "few", source / "checkpoints")
    )
    np.testing.assert_equal(one, other)


def test_a_run_of_skills_in_turn_goes_on_from_the_newest_networks(source):
    warm_start = try_warm_start(TINY, source / "checkpoints", ("actor", "critic", "normalizer"))
    newest = newest_weights(source / "checkpoints").arrays
    taken = [name for name in newest if name.startswith(("parameters/actor/", "normalizer/obs"))]
    np.testing.assert_equal({n: warm_start.arrays[n] for n in taken}, {n: newest[n] for n in taken})
    assert "skill" not in warm_start.record


@cases(
    ("name", "change"),
    ("skills/actor/mean/kernel", lambda array: array[:1]),
    ("skills/moments/observation", lambda array: array[:, :1]),
    ("skills/actor/hidden_0/kernel", lambda array: array[0, 0, 0]),
    ("skills/actor/hidden_0/kernel", None),
)
def test_skills_that_no_run_saves_are_refused(source, tmp_path, name, change):
    found = newest_weights(source / "checkpoints")
    arrays = dict(found.arrays)
    given = arrays.pop(name)
    if change is not None:
        arrays[name] = change(given)
    save_weights(tmp_path / "few", arrays, found.meta)
    with pytest.raises(UsageError, match=r"skill 1 is not what a run saves|does not fit"):
        try_warm_start(held_to(1), tmp_path / "few", ACTING)


def test_control_that_was_learned_first_acts_as_skill_0_while_later_skills_are_learned(tmp_path):
    config = with_fields(
        resolve("sac_disk_music", env_id=small.PUSH),
        {
            **{"skills": 3, "epochs": 4, "incremental.epochs": (2, 1, 1)},
            **{"incremental.collected": 2, "workers": 1, "rollouts": 2, "cycles": 2, "updates": 3},
            **{"agent.hidden_sizes": (8, 8), "replay.batch_size": 16, "music.hidden_size": 8},
            **{"music.trajectories": 4, "evaluation.episodes": 2},
            **{"disk.weight": ((0.0, 0.0), (1.0, 0.0), (2.0, 1.0))},
        },
    )
    trainer = build_trainer(config, Communicator(alone=True))
    write_config(tmp_path, config, "sac_disk_music")
    seen, acted = np.ones([2, 8], np.float32), []
    for epoch in (1, 2, 3):
        trainer.run_epoch(small.go_on)
        save_checkpoint(tmp_path, trainer, epoch)
        if epoch == 1:
            with pytest.raises(UsageError, match="no skill is learned yet"):
                load_policy(tmp_path)
            continue
        acted.append(load_policy(tmp_path).act(seen, skill=0))
        if epoch == 2:  # the learner rests, and has not begun anew
            now = trainer.snapshot().act(seen, np.zeros([2, 3], np.float32), seen[:, :3], None)
            np.testing.assert_array_equal(acted[0], now)
    policy = load_policy(tmp_path)
    assert policy.skills == 2
    np.testing.assert_array_equal(acted[1], acted[0])
    assert not np.array_equal(policy.act(seen, skill=1), acted[0])
    trainer.envs.close()
