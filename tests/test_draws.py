"""What numpy alone decides stays as it is: who draws what, in which order, from which stream.

Only integers, booleans and uniform draws are hashed, which every processor makes alike.
"""

import hashlib

import numpy as np
import pytest

from music_tf.config.settings import Config, ExplorationConfig, ReplayConfig
from music_tf.intrinsic.music import Music
from music_tf.randomness import reset_seeds, stream
from music_tf.recipes.music import MusicConfig
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.replay.hindsight import choose_goals, draw_probabilities
from music_tf.rollout import ConditionSampler, perturbation
from music_tf.training.evaluation import evaluation_conditions
from music_tf.types import SplitSpec
from tests.kit.drawn import sample_trajectories, sample_transitions
from tests.kit.episodes import SPEC, goal_reward, make_episodes, places
from tests.kit.terms import context

SEED = 11


def digest(*arrays):  # a hash of the bits and shapes of arrays
    total = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        assert values.dtype.kind in "biuf"
        total.update(f"{values.dtype.str} {values.shape}".encode() + values.tobytes())
    return total.hexdigest()[:16]


def replay(**config):  # a full store of two workers, after more episodes than it has room for
    settings = ReplayConfig(**{"capacity": 30, "batch_size": 16, "relabel_k": 4.0, **config})
    shards = {worker: Shard(SPEC, 2, settings, [0, 3]) for worker in (0, 3)}
    store = ReplayBuffer(shards, settings, goal_reward, 0.98, SEED)
    for cycle in range(5):
        lengths = [1 + (cycle + number) % 5 for number in range(4)]
        episodes = {
            worker: make_episodes(100 * worker + 4 * cycle, 4, lengths, skills=2)
            for worker in shards
        }
        priorities = {worker: own.observation[:, 0, 0] % 7 for worker, own in episodes.items()}
        store.add(episodes, cycle, priorities if settings.priority == "music" else None)
    return store


def contents(store):  # which made-up episodes lie in the slots of each worker
    return [shard.arrays["desired_goal"][: shard.size, 0] for shard in store.shards.values()]


def music(**config):
    split = SplitSpec(agent=(0,), surrounding=(3,))
    return Music(MusicConfig(hidden_size=4, gain=1.0, **config), context(split, seed=SEED))


def streams():
    purposes = ("rollout/conditions", "replay/transitions", "agent/noise")
    return [
        stream(seed, purpose, worker, counter).integers(2**63, size=3)
        for purpose in purposes
        for seed, worker, counter in ((0, 0, 0), (2**32 - 1, 4095, 10**9), (7, 1, 0), (7, 0, 1))
    ]


def conditions():
    sampler = ConditionSampler(Config(skills=5), 3)
    drawn = sampler.begin_episodes(stream(SEED, "rollout/conditions", 2, 9), np.arange(20))
    return [drawn.seeds, drawn.skills]


def exploration():
    generators = [stream(SEED, "rollout/exploration", worker, 4) for worker in (0, 1)]
    drawn = perturbation(ExplorationConfig(random_probability=0.3), generators, (6, 2, 3))
    return [drawn.replaced, drawn.uniform]


def evaluation():
    drawn = evaluation_conditions(range(12), Config(goals="zero", skills=5), 3)
    return [drawn.seeds, drawn.goals, drawn.skills]


def relabelled(strategy):
    generator = stream(SEED, "relabel")
    length = np.array([5, 3, 1, 50] * 20)
    time = (generator.random(80) * length).astype(np.int64)
    config = ReplayConfig(strategy=strategy, relabel_k=4.0)
    return [*choose_goals(time, length, config, generator), generator.integers(2**63, size=1)]


def batch(**config):
    store = replay(**config)
    drawn = sample_transitions(store, 3, 8)
    numbers, time = places(drawn)
    slots = np.empty_like(numbers)
    for worker, stored in enumerate(contents(store)):
        slots[:, worker] = np.argmax(-stored == numbers[:, worker, :, None], axis=-1)
    return [
        *(slots, time, drawn.desired_goal, drawn.reward, drawn.discount, drawn.lost),
        *(drawn.observation, drawn.next_observation[..., :2], drawn.action, drawn.skill),
    ]


def of_skills():
    drawn = sample_transitions(replay(), 2, 8, "skill/transitions")
    return [drawn.observation, drawn.observation[..., :2], drawn.desired_goal]


def fresh():
    episodes = make_episodes(0, 4, [2, 5, 1, 4])
    (observations,), (goals,) = replay().sample_fresh({3: episodes}, 8)
    return [*np.divmod(np.round(observations[:, 0]).astype(int), 100), goals]


def negatives(**config):
    fed = music(trajectories=6, **config).feed(replay(), 3, 8)
    states = fed["trajectories"]
    surrounding = states[..., 1:]
    valid = np.arange(states.shape[-2]) <= fed["lengths"][..., None]
    shuffled = np.take_along_axis(surrounding, fed["order"][..., None].astype(np.int64), axis=-2)
    return [shuffled, fed["swapped"], states, valid.astype(np.float32)]


CASES = {
    "streams": (streams, "dd66bb32d171f5a5"),
    "reset seeds": (lambda: [reset_seeds(stream(SEED, "resets"), 10)], "b0c3dce507b6c23b"),
    "conditions of episodes": (conditions, "5f4071b1f6216e77"),
    "exploration": (exploration, "44667567cf6bc14c"),
    "conditions of evaluation": (evaluation, "8f9bd9939df1874d"),
    "hindsight, future": (lambda: relabelled("future"), "ca050bcc85d7621d"),
    "hindsight, final": (lambda: relabelled("final"), "d879a513f226bee7"),
    "hindsight, none": (lambda: relabelled("none"), "7db9d29f410baea4"),
    "order of replay, random": (lambda: contents(replay(overwrite="random")), "576ae4debc04660c"),
    "order of replay, oldest": (lambda: contents(replay(overwrite="oldest")), "fba88580dff531be"),
    "batch": (batch, "0f380a24498878b0"),
    "batch, final": (lambda: batch(strategy="final"), "4774695f4b762adb"),
    "batch by priority": (lambda: batch(priority="music"), "46c5a86f8590ac5e"),
    "chances by priority": (
        lambda: [draw_probabilities(np.array([0.5, 2.0, 0.5, 1.0]))],
        "6bbcc6b28fe28afc",
    ),
    "transitions of skills": (of_skills, "0344c01a495e693b"),
    "fresh transitions": (fresh, "d2c50b1cc6b5e635"),
    "trajectories": (lambda: list(sample_trajectories(replay(), 3, 7, 8)), "6ccf2dbc55f8596f"),
    "shared negatives": (lambda: negatives(trajectory_negatives="shared"), "84893b2e6a72128d"),
    "independent negatives": (
        lambda: negatives(trajectory_negatives="independent"),
        "cd27e19e69964441",
    ),
    "swapped negatives": (lambda: negatives(pair_negatives="swap"), "8cfd25223d1a0e97"),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_that_numpy_draws_stay_as_they_are(name):
    draw, expected = CASES[name]
    assert digest(*draw()) == expected
