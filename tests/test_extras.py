"""Named extras arrive from an environment's `info` at rewards and targets."""

import dataclasses
import itertools
import re

import gymnasium
import numpy as np
import pytest

from music_tf.config import world as config_world
from music_tf.config.settings import ReplayConfig
from music_tf.config.world import DISCOUNT, World
from music_tf.envs.extras import InfoEntry, RecordingInfo
from music_tf.envs.fetch import FetchMember
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.member import PlainMember
from music_tf.envs.toys import PointPush
from music_tf.errors import UsageError
from music_tf.replay.buffer import ReplayBuffer, Shard, all_transitions
from music_tf.rollout import Conditions, padded, play
from tests.kit.cases import cases, every
from tests.kit.drawn import sample_transitions
from tests.kit.small import EVERYTHING, TIMES, go_on, trainer_of

DESCRIBED = "Described-v0"
STEPS = 30
EXTRAS = {"descriptor": 2, DISCOUNT: 1}
GAMMA = 0.98
FAULTS = {
    "missing": {"descriptor": None},
    "nan": {"descriptor": [0.0, np.nan]},
    "far": {DISCOUNT: 3.0},
}


class Described(PointPush):
    """Says ten times where point and disc are in x, and halves the discount of every third step."""

    fault = ""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        self.steps = 0
        return observation, info | self.describe(observation)

    def step(self, action):
        self.steps += 1
        observation, reward, _, truncated, info = super().step(action)
        over = self.steps > 20 + 10 * observation["desired_goal"][0]
        described = self.describe(observation) | {DISCOUNT: 0.5 if self.steps % 3 == 0 else 1.0}
        if self.fault and self.steps == 4:
            described |= FAULTS[self.fault]
        return observation, reward, over, truncated, info | described

    def describe(self, observation):
        return {"descriptor": descriptor(observation["observation"])}


def descriptor(observation):
    return 10.0 * observation[..., [0, 3]]


@pytest.fixture
def described(monkeypatch):  # the class behind `Described-v0`, of which all extras are known
    gymnasium.register(id=DESCRIBED, entry_point=Described, max_episode_steps=STEPS)
    declare(monkeypatch, EXTRAS)
    monkeypatch.setattr(Described, "fault", "")
    yield Described
    del gymnasium.registry[DESCRIBED]


def declare(monkeypatch, extras, env_id=DESCRIBED):
    split = {"agent": (0, 1, 2), "surrounding": (3, 4, 5)}
    monkeypatch.setattr(config_world, "_REGISTERED", {env_id: World(**split, extras=tuple(extras))})


def played(count=4):
    envs = LockstepEnvs(DESCRIBED, count)
    start = Conditions(np.arange(count), None, np.ones([count, 1], np.float32))
    return envs.spec, play(envs, lambda seen, *_: np.sin(37.0 * seen[:, :3]), start, None)


def assert_described(batch):
    for extras, state in ((batch.extras, "observation"), (batch.next_extras, "next_observation")):
        expected = descriptor(np.asarray(getattr(batch, state)))
        np.testing.assert_allclose(extras["descriptor"], expected, rtol=1e-5)


def test_extras_arrive_in_minibatches_after_a_cut_and_from_a_checkpoint_too(described):
    spec, whole = played()
    assert spec.extras == EXTRAS
    assert len(set(whole.length.tolist())) > 1  # some terminate early
    np.testing.assert_allclose(whole.extras["descriptor"], descriptor(whole.observation), rtol=1e-5)
    cut = padded(whole._replace(length=np.minimum(whole.length, 7)))
    shard, again = (Shard(spec, 1, ReplayConfig(capacity=8 * STEPS)) for _ in range(2))
    for episodes in (whole, cut):
        shard.add(episodes, np.random.default_rng(0))
    again.restore([shard.rows(np.arange(8))])
    for store in (shard, again):
        buffer = ReplayBuffer({0: store}, ReplayConfig(), None, GAMMA, seed=1)
        batch = sample_transitions(buffer, 3, 0)
        assert_described(batch)
        halved = np.float32(GAMMA) * np.float32([0.0, 0.5, 1.0])
        np.testing.assert_allclose(np.unique(batch.discount), halved, rtol=1e-6)


def test_extras_of_every_step_of_whole_episodes_are_theirs(described):
    _, episodes = played(2)
    steps = all_transitions(episodes)
    assert_described(steps)
    taken = np.arange(STEPS) < episodes.length[:, None]
    third = np.arange(1, STEPS + 1) % 3 == 0
    expected = np.broadcast_to(np.where(third, 0.5, 1.0), taken.shape)
    np.testing.assert_array_equal(steps.next_extras[DISCOUNT][..., 0][taken], expected[taken])
    assert not steps.extras[DISCOUNT][:, 0].any()  # a reset brings none


@pytest.mark.thorough
def test_extras_that_nobody_reads_change_nothing(described, monkeypatch):
    config = dataclasses.replace(EVERYTHING, env_id=DESCRIBED)
    found = []
    for extras in ({"descriptor": 2}, {}):
        declare(monkeypatch, extras)
        trainer = trainer_of(config)
        metrics = trainer.run_epoch(go_on)
        kept = {name: value for name, value in metrics.items() if name not in TIMES}
        found.append((trainer.weights(), kept))
    np.testing.assert_equal(found[1], found[0])


@cases(
    ("fault", "says"),
    ("missing", r"step 4: .*extras\['descriptor'\]: expected shape \(2,\), got nothing"),
    ("nan", r"step 4: extras\['descriptor'\]\[1\]: expected a finite number, got nan"),
    ("far", rf"step 4: info\['{DISCOUNT}'\]: expected 0 to 1, got 3.0"),
)
def test_an_extra_that_is_missing_or_no_number_is_reported(described, monkeypatch, fault, says):
    declare(monkeypatch, [*EXTRAS, "clock=time"])
    envs = LockstepEnvs(DESCRIBED, 1)
    envs.reset([0], [0])
    described.fault = fault
    taken = [envs.step(np.zeros([1, 3], np.float32), [0]) for _ in range(4)]
    assert [one.faults for one in taken[:3]] == [[None]] * 3
    assert re.search(says, taken[3].faults[0])
    assert [one.extras["clock"].tolist() for one in taken] == [[[1.0]], [[2.0]], [[3.0]], [[3.0]]]


def test_the_fast_path_of_fetch_gives_way_where_extras_are_asked_for(monkeypatch):
    assert type(LockstepEnvs("FetchPush-v4", 1)._members[0]) is FetchMember
    declare(monkeypatch, ["is_success"], "FetchPush-v4")
    envs = LockstepEnvs("FetchPush-v4", 1)
    assert type(envs._members[0]) is PlainMember
    envs.reset([0], [0], envs.reset([0], [0]).achieved_goal)
    taken = envs.step(np.zeros([1, 4], np.float32), [0])
    np.testing.assert_array_equal(taken.extras["is_success"], [[1.0]])


@cases(("env_id", "kind"), ("FetchPush-v4", FetchMember), ("music_tf/Square-v0", PlainMember))
def test_an_extra_that_is_the_time_counts_steps_of_the_episode_on_the_fast_path_too(env_id, kind):
    envs = LockstepEnvs(env_id, 2, world=World(extras=("clock=time",)))
    assert [type(member) for member in envs._members] == [kind, kind]
    still = np.zeros([2, envs.spec.action_dim], np.float32)

    def clock(observed):
        return observed.extras["clock"].tolist()

    assert clock(envs.reset([0, 1], [3, 4])) == [[0.0], [0.0]]
    assert clock(envs.step(still, [0, 1])) == [[1.0], [1.0]]
    assert (clock(envs.step(still[:1], [1])), clock(envs.reset([0], [5]))) == ([[2.0]], [[0.0]])
    assert clock(envs.step(still, [1, 0])) == [[3.0], [1.0]]


VALUES = (
    *(True, np.bool_(False), 3, np.int16(-2), 0.5, np.float32(0.25), np.float64(1.5)),
    *([1, 2], (0.5, 2.0), np.array([True, False]), np.array([1.5]), np.array(2)),
)


@every(("value", "always"), [*itertools.product(VALUES, (True, False))])
def test_an_entry_of_info_comes_back_with_its_type(value, always):
    entry = InfoEntry(value, always)
    kept = np.asarray(entry.numbers({"name": value}, "name"), np.float32)
    assert kept.shape == (entry.size,)
    assert entry.was_given(kept)
    back = entry.value(kept)
    assert type(back) is type(value)
    np.testing.assert_array_equal(back, value)
    assert np.asarray(back).dtype == np.asarray(value).dtype


def test_an_entry_of_info_that_is_missing_stays_missing():
    entry = InfoEntry(2.0, always=False)
    assert not entry.was_given(entry.numbers({}, "name"))
    assert InfoEntry(2.0).numbers({}, "name") is None


def test_what_reads_info_is_noticed_whichever_way_it_does():
    ways = {
        "index": lambda info: info["cost"],
        "get": lambda info: info.get("cost"),
        "pop": lambda info: info.pop("cost"),
        "in": lambda info: "cost" in info,
        "for": lambda info: [name for name in info],
        "items": lambda info: dict(info.items()),
        "values": lambda info: sum(info.values()),
        "keys": lambda info: list(info.keys()),
        "stars": lambda info: {**info},
        "dict": dict,
        "copy": lambda info: info.copy(),
        "or": lambda info: info | {"name": ""},
        "setdefault": lambda info: info.setdefault("cost", 0.0),
    }
    for way, read in ways.items():
        asked = RecordingInfo({"cost": 2.0})
        read(asked)
        assert list(asked.names) == ["cost"], way


@pytest.mark.parametrize("descriptor", [(), (f"{__name__}:read_point",)], ids=["columns", "own"])
def test_a_stride_is_the_way_over_the_last_steps_or_since_the_start(descriptor):
    config_world.trust(descriptor)
    world = World(descriptor=descriptor, extras=("stride=stride:2", "clock=time"))
    envs = LockstepEnvs("music_tf/Square-v0", 2, world=world)

    def stride(observed):
        return observed.extras["stride"].tolist()

    right = np.float32([[1.0, 0.5], [1.0, 0.5]])
    assert stride(envs.reset([0, 1], [3, 4])) == [[0.0, 0.0]] * 2
    assert stride(envs.step(right, [0, 1])) == [[0.5, 0.25]] * 2
    assert stride(envs.step(right, [0, 1])) == [[1.0, 0.5]] * 2
    assert stride(envs.step(-right, [1, 0])) == [[0.0, 0.0]] * 2  # forth and back
    assert stride(envs.reset([0], [5])) == [[0.0, 0.0]]
    assert stride(envs.step(right, [0, 1])) == [[0.5, 0.25], [0.0, 0.0]]
    assert stride(envs.step(right[:1], [1])) == [[1.0, 0.5]]


def read_point(environment):  # where the point of Square is
    return environment._point


@pytest.mark.parametrize("word", ["stride=stride", "stride=stride:0", "stride=stride:1.5"])
def test_a_stride_needs_a_whole_number_of_steps(word):
    with pytest.raises(UsageError, match=r"world\.extras: expected .*NAME=stride:STEPS"):
        World(extras=(word,))
