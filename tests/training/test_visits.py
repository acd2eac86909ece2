import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.point_robot import PointRobot
from music_tf.errors import UsageError
from music_tf.networks.belief import Encoder
from music_tf.training import tasks as tasks_module
from music_tf.training.build import build_trainer
from music_tf.training.collect import Order
from music_tf.training.parts import TaskFamily
from music_tf.training.tasks import TaskCollector, TaskSets, context_of, recorded_tasks, task_sets
from tests.kit.cases import cases
from tests.kit.pearl import small

CONFIG = small(rollouts=2)


def collector_of(config=CONFIG, workers=(0, 1)):
    envs = LockstepEnvs(config.env_id, len(workers) * config.rollouts, config.env)
    return TaskCollector(config, envs, workers, Communicator(alone=True))


def snapshot_of(config=CONFIG):
    return build_trainer(config, Communicator(alone=True)).snapshot()


def collect(collector, snapshot, cycle=3, initial=False):
    collector.order(Order(cycle, snapshot, False, initial=initial))
    return collector.collect()


def test_a_visit_plays_prior_posterior_and_extra_episodes_of_one_task_of_each_worker():
    config = small(tasks__prior=3, tasks__posterior=1, tasks__extra=2, rollouts=2)
    found = collect(collector_of(config), snapshot_of(config))
    # three, one and two episodes are two, one and one rounds of two environments
    assert list(found.parts) == [8, 8]
    played = found.played
    assert len(played.length) == len(found.succeeded) == 16
    by_worker = played.task.reshape(2, 8)
    assert (by_worker == by_worker[:, :1]).all()
    assert (by_worker[:, 0] % 2).tolist() == [0, 1]
    np.testing.assert_array_equal(played.context.reshape(2, 8), [[True] * 6 + [False] * 2] * 2)
    assert (played.visit == 3).all()
    assert config.rounds() * config.rollouts == 8


def test_the_first_cycle_visits_every_task_under_the_prior():
    config = small(tasks__initial=3, rollouts=2)
    found = collect(collector_of(config), snapshot_of(config), cycle=0, initial=True)
    assert list(found.parts) == [12, 12]
    tasks = np.repeat([[0, 2, 4], [1, 3, 5]], 4, axis=1)
    np.testing.assert_array_equal(found.played.task.reshape(2, 12), tasks)
    assert found.played.context.all()
    assert config.rounds(initial=True) * config.rollouts == 12


def test_the_visits_of_a_cycle_follow_a_pool_of_all_tasks_and_are_told_apart():
    config = small(tasks__visits=3, rollouts=2)
    first, later = (
        collect(collector_of(config), snapshot_of(config), cycle, cycle == 0) for cycle in (0, 1)
    )
    for found, initial in ((first, True), (later, False)):
        assert list(found.parts) == [config.rounds(initial) * config.rollouts] * 2
    visits = first.played.visit.reshape(2, 24)
    np.testing.assert_array_equal(visits, [[0] * 6 + [1] * 6 + [2] * 6 + [3] * 6] * 2)
    pool = first.played.task.reshape(2, 24)[:, :6]
    np.testing.assert_array_equal(pool, [[0, 0, 2, 2, 4, 4], [1, 1, 3, 3, 5, 5]])
    assert later.played.visit.min() == 5
    by_visit = later.played.task.reshape(6, 6)
    assert (by_visit == by_visit[:, :1]).all()
    assert len(np.unique(by_visit)) > 2  # each visit draws its task


def test_updates_follow_all_visits_of_a_cycle_in_turns_of_their_own(monkeypatch):
    config = small(tasks__visits=3, agent__context_rows=50)  # longer than a visit, as in oyster
    trainer = build_trainer(config, Communicator(alone=True))
    turns = []
    monkeypatch.setattr(trainer, "_learn", lambda turn, early: turns.append(turn) or {})
    trainer.run_cycle()
    assert turns == [0, 1, 2]
    assert trainer.counters.updates == 3 * config.updates
    assert not np.array_equal(*(trainer.feed(turn).noise["context"] for turn in (0, 1)))


@cases(
    "changes",
    {},
    {"tasks__resample_belief": "step"},
    {"agent__encoder": "gru", "agent__posterior": "full"},
    ids=["published", "step", "gru"],
)
def test_the_same_visits_are_played_on_any_number_of_ranks(changes):
    config = small(rollouts=2, **changes)
    snapshot = snapshot_of(config)
    together = collect(collector_of(config), snapshot).played.named()
    apart = [collect(collector_of(config, [worker]), snapshot).played for worker in (0, 1)]
    for name, values in together.items():
        joined = np.concatenate([one.named()[name] for one in apart])
        np.testing.assert_array_equal(values, joined, err_msg=name)


def test_rewards_are_those_of_the_task_that_an_episode_says():
    collector = collector_of()
    played = collect(collector, snapshot_of()).played
    places = task_sets(CONFIG, collector.envs).train[played.task]
    distance = np.linalg.norm(played.observation[:, 1:] - places[:, None], axis=-1)
    np.testing.assert_allclose(played.reward, -distance, rtol=1e-5)


@cases(("first", "known"), (True, (2, 3, 4, 4)), (False, (3, 4)))
def test_posterior_rounds_act_on_what_the_visit_has_shown(contexts, first, known):
    config = small(
        **{"workers": 1, "agent__meta_batch": 4, "agent__deterministic_latent": True},
        **{"tasks__prior": 2, "tasks__posterior": 2, "tasks__extra": 2},
        tasks__posterior_first=first,
    )
    collector, snapshot = collector_of(config, (0,)), snapshot_of(config)
    played = collect(collector, snapshot).played
    acted = [bool(latent.any()) for latent in played.skill]
    assert acted == [False, False, first, True, first, True]  # latents of the prior are 0
    inference = config.agent.inference
    lived = np.concatenate([context_of(snapshot, inference, played, row) for row in range(4)])
    places = []
    for context, episodes in zip(contexts, known, strict=True):
        assert context.shape == (config.agent.context_rows, 5)
        drawn = [np.flatnonzero((lived[: 5 * episodes] == row).all(axis=1)) for row in context]
        assert all(len(steps) == 1 for steps in drawn)
        places.append(np.ravel(drawn).tolist())
        latest = list(range(5 * episodes - len(drawn), 5 * episodes))
        assert sorted(places[-1]) != latest  # random steps, not the last ones
    assert min(map(min, places)) < 5  # of the first episode, too
    believed = Encoder(snapshot.encoder, inference)(contexts[-1])
    np.testing.assert_array_equal(played.skill[-1], believed.mean)


def test_the_posterior_is_inferred_again_as_often_as_asked():
    config = small(
        **{"workers": 1, "agent__meta_batch": 4, "agent__deterministic_latent": True},
        **{"tasks__posterior": 4, "tasks__extra": 0, "tasks__resample_posterior": 2},
    )
    latents = collect(collector_of(config, (0,)), snapshot_of(config)).played.skill
    assert (latents[1:] == latents[:-1]).all(axis=1).tolist() == [False, True, False, True]


def test_a_context_holds_observation_action_reward_and_what_was_asked_for():
    config = small(rollouts=2, agent__context_next_observation=True)
    played = collect(collector_of(config), snapshot_of(config)).played
    played = played._replace(
        length=np.full_like(played.length, 3),
        extras={"sparse_reward": np.arange(6.0, dtype=np.float32)[None, :, None]},
    )
    inference = config.agent.inference._replace(reward="sparse_reward")
    rows = context_of(snapshot_of(config), inference, played, 0)
    expected = [
        played.observation[0, :3],
        played.action[0, :3],
        [[1.0], [2.0], [3.0]],
        played.observation[0, 1:4],
    ]
    np.testing.assert_array_equal(rows, np.concatenate(expected, axis=-1))


def test_tasks_follow_from_the_seed_and_test_tasks_are_others():
    envs = LockstepEnvs(CONFIG.env_id, 1)
    sets = task_sets(CONFIG, envs)
    assert [len(tasks) for tasks in sets] == [6, 3]
    assert not set(map(tuple, sets.train)) & set(map(tuple, sets.test))
    again, other = (task_sets(small(seed=seed), envs) for seed in (0, 1))
    np.testing.assert_array_equal(again.train, sets.train)
    assert not np.array_equal(other.train, sets.train)
    fixed = [task_sets(small(seed=seed, tasks__seed=1337), envs).test for seed in (0, 1)]
    np.testing.assert_array_equal(*fixed)
    np.testing.assert_array_equal(fixed[0], sets.test)  # 1337 + the seed 0


def test_evaluation_tasks_may_be_of_another_distribution(monkeypatch):
    envs, sizes = LockstepEnvs(CONFIG.env_id, 1), [2]
    inside = task_sets(CONFIG, envs)

    def beyond(own, count, generator):
        return generator.uniform(4.0, 5.0, (count, sizes[-1]))

    monkeypatch.setattr(PointRobot, "sample_test_tasks", beyond, raising=False)
    sets = task_sets(CONFIG, envs)
    assert (sets.test.min(), len(sets.test)) >= (4.0, 3)
    np.testing.assert_array_equal(sets.train, inside.train)
    sizes.append(3)
    with pytest.raises(UsageError, match=r"sample_test_tasks of .*expected tasks of 2 numbers"):
        task_sets(CONFIG, envs)


def test_recorded_tasks_are_read_as_they_were_drawn_or_refused():
    sets = task_sets(CONFIG, LockstepEnvs(CONFIG.env_id, 1))
    read = recorded_tasks(sets.record(), CONFIG)
    np.testing.assert_array_equal(read.train, sets.train)
    np.testing.assert_array_equal(read.test, sets.test)
    whole = sets.record()
    for bad in (
        {},
        whole | {"test": whole["test"][:2]},
        whole | {"test": [[1.0]] * 3},
        whole | {"train": [["a", "b"]] * 6},
        whole | {"train": [[float("nan"), 0.0]] * 6},
        whole | {"train": [[1.0], [1.0, 2.0]]},
    ):
        with pytest.raises(UsageError, match="tasks: expected 6 tasks under 'train' and 3 under"):
            recorded_tasks(bad, CONFIG)


@cases(
    ("changes", "text"),
    ({"env_id": "music_tf/UnitBox-v0"}, "expected a family of tasks, with the methods"),
    ({"env_id": "music_tf/PointReach-v0"}, "is inferred, not shown, and .* shows goals"),
    ({"env_id": "FetchReach-v4"}, r"shows goals(.|\n)*--env-id music_tf/FetchReachHiddenGoal-v0"),
    ({"agent__context_reward": "sparse_reward"}, r"--world\.extras sparse_reward"),
)
def test_an_environment_that_does_not_fit_is_refused(changes, text):
    config = small(**changes)
    with pytest.raises(UsageError, match=text):
        task_sets(config, LockstepEnvs(config.env_id, 1))


def test_replay_has_room_for_a_visit_to_each_task():
    envs = LockstepEnvs(CONFIG.env_id, 1)
    with pytest.raises(UsageError, match=r"replay\.capacity: a worker keeps") as said:
        task_sets(small(replay__capacity=10), envs)
    nearest = int(str(said.value).rpartition(" ")[2])
    assert task_sets(small(replay__capacity=nearest), envs) is not None
    with pytest.raises(UsageError, match=r"replay\.capacity"):
        task_sets(small(replay__capacity=nearest - 1), envs)


@cases(
    ("answer", "text"),
    (lambda own, count: own.integers(9, size=(count, 2)), "of its generator alone, got others"),
    (lambda own, count: [[0.0], [0.0, 1.0]] * (count // 2), "numbers .* but fails: ValueError"),
    (lambda own, count: 1 / 0, "sample_tasks of .* fails: ZeroDivisionError"),
)
def test_tasks_that_cannot_be_drawn_again_are_refused(monkeypatch, answer, text):
    own = np.random.default_rng(0)
    monkeypatch.setattr(PointRobot, "sample_tasks", lambda _, count, given: answer(own, count))
    with pytest.raises(UsageError, match=text):
        task_sets(CONFIG, LockstepEnvs(CONFIG.env_id, 1))


def test_a_context_longer_than_what_a_visit_plays_is_refused_with_the_longest_there_can_be():
    for changes, most in (
        ({"tasks__initial": 3, "tasks__prior": 1, "tasks__posterior": 1}, 10),
        ({"tasks__initial": 1, "tasks__prior": 4}, 5),
        # episodes that are no context do not count, and a round is one in each environment
        ({"tasks__initial": 9, "tasks__prior": 1, "tasks__posterior": 0, "rollouts": 3}, 15),
    ):
        collector_of(small(agent__context_rows=most, **changes))
        with pytest.raises(UsageError, match=f"expected at most {most} rows, got ") as refused:
            collector_of(small(agent__context_rows=most + 1, **changes))
        assert f"got {most + 1}" in str(refused.value)
        assert f"nearest: --agent.context-rows {most}" in str(refused.value)


def test_evaluation_tasks_among_those_of_training_are_allowed_and_said():
    tasks = np.float64([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    both = TaskSets(train=tasks[:2], test=tasks[1:])
    assert both.notice == "1 of 2 evaluation tasks are training tasks as well"
    assert both._replace(test=tasks[2:]).notice == ""
    trainer = build_trainer(small(), Communicator(alone=True))
    assert trainer.notices == []
    trainer.part(TaskFamily).tasks = both
    assert trainer.notices == [both.notice]


def test_another_latent_acts_at_each_step_where_that_is_asked_for(monkeypatch):
    latents = []
    acting = tasks_module.SnapshotPolicy

    def watched(snapshot, sample, rows):
        policy = acting(snapshot, sample, rows)

        def act(observation, goal, skill, noise):
            latents.append(skill.copy())
            return policy(observation, goal, skill, noise)

        return act

    monkeypatch.setattr(tasks_module, "SnapshotPolicy", watched)
    for asked, different in (("episode", 1), ("step", 5)):
        latents.clear()
        config = small(tasks__resample_belief=asked)
        played = collect(collector_of(config), snapshot_of(config)).played
        first = np.stack(latents[:5])  # of the steps of the first round, [T, E, L]
        assert first.shape == (5, 2, 3)
        for row in range(2):
            assert len(np.unique(first[:, row], axis=0)) == different
        np.testing.assert_array_equal(played.skill[[0, 3]], first[0])


def test_a_recurrent_encoder_infers_from_all_steps_of_a_visit_in_order(contexts):
    config = small(agent__encoder="gru", tasks__prior=2, rollouts=2)
    snapshot = snapshot_of(config)
    played = collect(collector_of(config, [0]), snapshot).played
    inference = config.agent.inference
    own = [context_of(snapshot, inference, played, row) for row in range(4)]
    # a round under the prior, then one under what it has shown, and one that is no context
    np.testing.assert_array_equal(contexts[0], np.concatenate(own[:2]))
    np.testing.assert_array_equal(contexts[1], np.concatenate(own))
