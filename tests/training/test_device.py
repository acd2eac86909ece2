"""Replay on a device, which is a CPU here: the numbers that numpy looks up, bit by bit."""

import dataclasses
import os

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.fields import with_fields
from music_tf.config.settings import NormalizerConfig, ReplayConfig
from music_tf.config.world import DISCOUNT
from music_tf.envs.distance import DistanceReward, distance_reward
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.toys import PointReach
from music_tf.errors import NumbersFault
from music_tf.networks.acting import Moments, NetworkInputs
from music_tf.recipes.controls import RandomRewardConfig
from music_tf.recipes.skills import DadsConfig
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.training.device import DeviceReplay
from music_tf.training.feeding import DeviceFeeding
from tests.kit import small
from tests.kit.cases import cases
from tests.kit.episodes import SPEC, make_episodes
from tests.kit.guessing import GuessConfig
from tests.kit.started import ROOT, python

pytestmark = pytest.mark.thorough

DADS = DadsConfig(hidden_sizes=(8,), omit=0)
TERMINATING = "music_tf/PointPushTerminating-v0"
CONFIGS = {
    **small.ALL,
    "learned_prior": small.LEARNED_PRIOR,
    "dads": small.paying(small.BASE, DADS, skills=3),
    "random": small.paying(small.BASE, RandomRewardConfig()),
    "feeds_itself": small.paying(small.BASE, GuessConfig(), small.SMALL_SKILL, skills=3),
    "final_goals": with_fields(small.HER, {"replay.strategy": "final"}),
    "priorities": with_fields(small.MUSIC, {"replay.priority": "music", "goals": "environment"}),
    "overwritten": with_fields(small.BASE, {"replay.capacity": 90}),
    "reaching": with_fields(small.HER, {"env_id": TERMINATING, "replay.reach": 0.3}),
    "terminating": with_fields(small.HER, {"env_id": TERMINATING}),
}
NEAR = DistanceReward(0.5, 0.0, -1.0)
INPUTS = NetworkInputs(
    Moments(np.full(4, 0.3, np.float32), np.full(4, 7.0, np.float32)),
    Moments(np.zeros(2, np.float32), np.ones(2, np.float32)),
    NormalizerConfig(),
    condition=2,
)


def trainers(config, **changes):  # two alike but for where updates look up replay
    host, device = (small.trainer_of(config, **changes) for _ in range(2))
    assert device.copy_replay() == "replay has a copy on the device, 0.00 GiB"
    return host, device


def play(*each, cycles=2):
    for trainer in each:
        for _ in range(cycles):
            trainer.collect()
            trainer.counters.cycle += 1


def looked_up(function, drawn, xla=None):
    """What all updates of a cycle see, [U, ...], where each looks up its own."""
    graph = tf.function(function, autograph=False, jit_compile=xla)
    found = []
    for index in range(len(tf.nest.flatten(drawn)[0])):
        row = tf.nest.map_structure(lambda rows, at=index: tf.convert_to_tensor(rows[at]), drawn)
        found.append(tf.nest.map_structure(lambda each: each.numpy(), graph(row)))
    return tf.nest.map_structure(lambda *rows: np.stack(rows), *found)


def assert_same_bits(found, expected):
    tf.nest.assert_same_structure(found, expected)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()


def assert_same_feed(host, device, xla=None):
    assert_same_bits(looked_up(device.update.look_up, device.feed(), xla), host.feed())


@cases(
    ("name", "xla"),
    *((name, None) for name in CONFIGS),
    ("her", True),
    ("everything", True),
    ("dads", True),
)
def test_every_number_is_the_one_that_numpy_looks_up(name, xla):
    host, device = trainers(CONFIGS[name])
    for _ in range(2):  # what is overwritten is sent anew
        play(host, device)
        assert_same_feed(host, device, xla)


def test_goals_are_relabelled_and_episodes_of_all_kinds_are_looked_up():
    spec = dataclasses.replace(SPEC, extras={DISCOUNT: 1, "other": 2})
    config = ReplayConfig(capacity=60, batch_size=500, relabel_k=4.0)
    shards = {}
    for worker in (2, 5):
        shards[worker] = Shard(spec, 3, config)
        episodes = make_episodes(
            10 * worker,
            8,
            lengths=[1, 2, 3, 4, 5, 5, 3, 2],
            terminated=[True, False] * 4,
            lost=[False, True, False, False] * 2,
            skills=3,
            other=lambda rows: rows[..., 1:3],
            **{DISCOUNT: lambda rows: rows[..., :1] % 7.0 / 7.0},
        )
        shards[worker].add(episodes, np.random.default_rng(worker))
    replay = ReplayBuffer(shards, config, lambda a, b, _: NEAR(a, b), 0.9, seed=1)
    device = DeviceReplay(replay, NEAR, INPUTS)
    device.refresh()
    picks = replay.pick(3, 0)
    expected = replay.transitions(picks)
    assert (picks.goal >= 0).mean() == pytest.approx(0.8, abs=0.05)
    assert expected.lost.any()
    assert expected.truncated.any()
    assert len(np.unique(expected.reward)) == 2
    assert_same_bits(looked_up(device.transitions, picks), expected)
    rows = expected.observation[0], expected.desired_goal[0], expected.skill[0]
    joined = INPUTS(*rows)  # of three numbers in a condition networks read two
    assert joined.shape[-1] == 4 + 2 + 2
    moments = (INPUTS.observation, INPUTS.goal)
    np.testing.assert_allclose(device.inputs(moments, *rows), joined, rtol=1e-6)
    slots, _ = replay.pick_trajectories(3, 50, 0)
    found = looked_up(lambda own: device.trajectories(own, [3, 0, -1]), slots)
    kept = np.stack([s._states["observation"][:, :, [3, 0, 3]] for s in shards.values()])
    assert_same_bits(found, np.stack([kept[w][slots[:, w]] for w in range(2)], axis=1))


def test_a_full_store_is_sent_in_parts(monkeypatch):
    monkeypatch.setattr("music_tf.training.device._AT_ONCE", 3)
    host, device = trainers(small.HER)
    play(host, device, cycles=4)
    assert_same_feed(host, device)


@pytest.mark.parametrize("from_device", [True, False])
def test_a_run_goes_on_from_the_other_ones_checkpoint(from_device):
    host, device = trainers(small.EVERYTHING)
    first, second = (device, host) if from_device else (host, device)
    first.run_epoch(small.go_on)
    second.load(first.shared(), first.meta())
    second.load_workers({worker: [rows] for worker, rows in first.of_workers().items()})
    small.assert_same_state(first, second)
    assert_same_feed(host, device)
    second.forget()
    first.forget()
    play(first, second)
    assert_same_feed(host, device)


def test_bad_numbers_come_with_all_that_was_drawn():
    _, device = trainers(small.EVERYTHING)
    play(device)
    drawn = device.feed()
    bad = [moments._replace(mean=moments.mean * np.nan) for moments in drawn.moments]
    with pytest.raises(NumbersFault, match="non-finite") as fault:
        device.update.run(drawn._replace(moments=bad), device.schedules())
    evidence = fault.value.evidence
    assert np.isnan(evidence["goal.mean"]).all()
    for name, picks in {
        "transitions": drawn.transitions,
        "skill.picks": drawn.terms["skill"]["picks"],
    }.items():
        np.testing.assert_array_equal(evidence[f"{name}.time"], picks.time)
    assert evidence["music.slots"].shape == (3, 2, 8)
    assert all(isinstance(array, np.ndarray) for array in evidence.values())


class EnvOverrides(PointReach):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.abs(np.subtract(achieved_goal, desired_goal)).sum(axis=-1)


def test_replay_stays_on_the_host_for_a_reward_in_python_that_counts_or_a_ring_of_steps(
    monkeypatch,
):
    name = "EnvOverrides-v0"
    spec = gymnasium.envs.registration.EnvSpec(name, EnvOverrides, max_episode_steps=10)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    trainer = small.trainer_of(small.HER, env_id=name)
    message = trainer.copy_replay()
    assert message.endswith("on the host: compute_reward is Python, which a device cannot call")
    trainer.run_cycle()
    assert not isinstance(trainer.feeding, DeviceFeeding)
    config = small.paying(small.BASE, small.SMALL_SKILL, skills=2, env_id=name)
    assert small.trainer_of(config).copy_replay().startswith("replay has a copy")
    trainer = small.trainer_of(small.BASE, replay=ReplayConfig(draw="steps", **small.BATCHES))
    assert trainer.copy_replay() == "replay stays on the host: it is a ring of steps"


@cases(
    ("env_id", "known"),
    (small.PUSH, (0.1, 0.0, -1.0)),
    ("FetchPush-v4", (0.05, -0.0, -1.0)),
    ("FetchPushDense-v4", None),
    ("FetchReach-v4", (0.05, -0.0, -1.0)),
    ("PointMaze_UMaze-v3", (0.45, 1.0, 0.0)),
    ("HandManipulateBlock-v1", None),
)
def test_rewards_of_a_distance_are_known_and_no_others(env_id, known):
    envs = LockstepEnvs(env_id, 1)
    assert envs.distance_reward() == (known and DistanceReward(*known))
    envs.close()


def test_what_is_known_of_a_reward_is_compared_with_what_it_is(monkeypatch):
    envs = LockstepEnvs(small.PUSH, 1)
    monkeypatch.setattr("music_tf.envs.toys.REACHED", 0.2)
    assert distance_reward(envs._some_member().environment) is not None
    assert envs.distance_reward() is None


PLACED = """
import sys
from music_tf.process.tensorflow_start import prepare_tensorflow
prepare_tensorflow()
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.set_soft_device_placement(False)
from tests.kit.small import ALL, trainer_of
with tf.device("CPU:1"):
    trainer = trainer_of(ALL[sys.argv[1]])
    trainer.update.use_xla()
    trainer.copy_replay()
    trainer.run_cycle()
held = [*trainer.feeding.device.tables, trainer.update.parameters, trainer.update.targets]
print({each.device.rpartition("/")[2] for each in held})
"""


@pytest.mark.parametrize("name", ["her", "everything"])
def test_all_that_learns_follows_one_device(name):
    search = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = python(PLACED, name, env=search, timeout=200, exits=0)
    assert done.stdout.strip() == "{'device:CPU:1'}"


def test_a_device_that_is_too_small_says_what_would_fit(monkeypatch):
    def full(*shape, **more):
        raise tf.errors.ResourceExhaustedError(None, None, "out of memory")

    trainer = small.trainer_of(small.HER)
    monkeypatch.setattr(tf, "zeros", full)
    with pytest.raises(MemoryError, match=r"0\.0 GiB of replay do not fit on the device"):
        trainer.copy_replay()
