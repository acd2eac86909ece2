import itertools

import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.point_robot import PointRobot
from music_tf.networks.belief import Belief, Encoder
from music_tf.rollout import play
from music_tf.runs.adapting import measure_adaptation
from music_tf.training import adaptation as adaptation_module
from music_tf.training.adaptation import Adaptation, MetaEvaluation
from music_tf.training.build import build_trainer
from music_tf.training.tasks import task_sets
from tests.kit.cases import cases
from tests.kit.pearl import small

CONFIG = small(tasks__explore=2, tasks__adapt=2)
SPARSE = {"env__kwargs": '{"layout": "half_circle"}', "world__extras": ("sparse_reward",)}


@pytest.fixture(scope="module")
def trainer():
    return build_trainer(CONFIG, Communicator(alone=True))


def evaluation_of(environments=2, comm=None, config=CONFIG):
    envs = LockstepEnvs(config.env_id, environments, config.env, world=config.world)
    return MetaEvaluation(envs, config, comm or Communicator(alone=True), task_sets(config, envs))


@pytest.fixture
def noted(monkeypatch):  # the episodes of visits, with their conditions and exploration
    seen = []

    def noting(envs, policy, conditions, explore):
        seen.append((play(envs, policy, conditions, explore), conditions, explore))
        return seen[-1][0]

    monkeypatch.setattr(adaptation_module, "play", noting)
    return seen


class Half(Communicator):  # one of two ranks, whose sums are its own
    def __init__(self, rank):
        super().__init__(alone=True)
        self.rank, self.size = rank, 2


def test_it_works_before_training_and_says_what_each_episode_returned(trainer):
    found = evaluation_of().play(trainer.snapshot(), "test", 2)
    assert found.returns.shape == found.success.shape == (3, 2, 4)
    assert found.means.shape == found.variances.shape == (3, 2, 4, 3)
    assert (found.lengths == 5).all()
    assert (found.returns < 0.0).all()
    assert len(np.unique(found.returns)) == found.returns.size
    # the more steps, the surer: each adds its precision
    assert (np.diff(found.variances, axis=2) < 0.0).all()


@pytest.mark.parametrize("environments", [1, 4])
def test_numbers_do_not_depend_on_how_many_are_visited_together(trainer, environments):
    for agent in (trainer.snapshot(), None):
        one, other = (evaluation_of(n).play(agent, "test", 2) for n in (2, environments))
        for name, values in one._asdict().items():
            np.testing.assert_array_equal(values, getattr(other, name), err_msg=name)
    assert not one.means.any()  # random actions know no belief


def test_ranks_share_the_visits_and_add_up_to_the_same(trainer):
    snapshot = trainer.snapshot()
    whole = evaluation_of(2).play(snapshot, "test", 3)  # nine visits, two or four at a time
    shares = [evaluation_of(4, Half(rank)).play(snapshot, "test", 3) for rank in (0, 1)]
    for name, values in whole._asdict().items():
        parts = [getattr(share, name) for share in shares]
        np.testing.assert_array_equal(values, parts[0] + parts[1], err_msg=name)
        assert name == "success" or all(part.any() for part in parts)


def test_the_context_of_a_task_holds_the_exploration_of_this_task_alone(trainer, noted, contexts):
    evaluation_of(3).play(trainer.snapshot(), "test", 1)
    played = [each for each, *_ in noted]
    assert len(played) == 4
    for episode, task in itertools.product(range(4), range(3)):  # three tasks side by side
        context = contexts[3 * episode + task]
        own = [one.observation[task, :-1] for one in played[: episode + 1]]
        np.testing.assert_array_equal(context[:, :2], np.concatenate(own))
        paid = [one.reward[task] for one in played[: episode + 1]]
        np.testing.assert_array_equal(context[:, 4], np.concatenate(paid))


def test_the_error_of_the_last_return_is_that_of_all_visits(trainer):
    found = evaluation_of().compare(trainer.snapshot(), 2)
    ours, random = (evaluation_of().play(who, "test", 2) for who in (trainer.snapshot(), None))
    better = (ours.returns - random.returns)[:, :, -1].ravel()  # of 2 visits to each of 3 tasks
    assert found.errors == {"adapt/return_last": pytest.approx(better.std(ddof=1) / np.sqrt(6))}
    assert (found.number, set(found.policies)) == (2, {"ours", "random"})


@cases(
    ("visits", "part"),
    (lambda evaluation, agent: evaluation.play(agent, "test", 1), "test"),
    (lambda evaluation, agent: evaluation.play(agent, "train", 1), "train"),
    (lambda evaluation, agent: evaluation.play(None, "test", 1), "test"),
    (lambda evaluation, agent: evaluation.compare(agent, 1), "test"),
    (lambda evaluation, agent: evaluation.first_visits(agent, 3), "test"),
    (lambda evaluation, agent: evaluation.starts(agent, range(3)), "test"),
    ids=["test", "train", "random", "compare", "first visits", "starts"],
)
def test_visits_are_paid_by_the_tasks_that_they_are_said_to_be_of(trainer, visits, part, noted):
    evaluation = evaluation_of(3)
    assert not set(map(tuple, evaluation.tasks.test)) & set(map(tuple, evaluation.tasks.train))
    visits(evaluation, trainer.snapshot())
    paid_by = set()
    for played, conditions, _ in noted:
        paid_by |= set(map(tuple, conditions.tasks))
        apart = np.linalg.norm(played.observation[:, 1:] - conditions.tasks[:, None], axis=-1)
        np.testing.assert_allclose(played.reward, -apart, rtol=1e-5)
    assert paid_by == set(map(tuple, getattr(evaluation.tasks, part)))


def test_a_run_says_of_new_tasks_what_was_measured_on_them(trainer, monkeypatch):
    asked, of = [], {"test": made_up(3)[1], "train": made_up(6)[1]}
    train = of["train"]._replace(
        returns=of["train"].returns + 10.0, variances=of["train"].variances + 1.0
    )

    def play(self, agent, part, repeats):
        asked.append((agent is not None, part))
        return {**of, "train": train}[part]

    monkeypatch.setattr(MetaEvaluation, "play", play)
    metrics = trainer.evaluate()
    assert asked == [(True, "test"), (True, "train"), (False, "test")]
    shown = ("eval/return", "adapt/train_return", "adapt/random_return", "adapt/variance")
    assert [metrics[name] for name in shown] == [3.0, 13.0, 3.0, 0.25]


def test_success_is_left_out_where_no_info_tells_it(trainer, monkeypatch):
    step = PointRobot.step
    monkeypatch.setattr(PointRobot, "step", lambda self, action: (*step(self, action)[:4], {}))
    found, policies = measure_adaptation(evaluation_of(), trainer.snapshot(), 1)
    assert not [name for metrics in policies.values() for name in metrics if "success" in name]
    assert found["test"]["success"] == found["train"]["tasks"][0]["success"] == []


def test_a_leak_is_looked_for_beside_another_task(trainer, noted):
    evaluation = evaluation_of(2)
    found, _ = measure_adaptation(evaluation, trainer.snapshot(), 1, full=True)
    assert found["leak"] == 0.0
    beside = {tuple(place) for _, conditions, _ in noted[-4:] for place in conditions.tasks}
    assert beside == {tuple(part[0]) for part in evaluation.tasks}


def test_visits_begin_alike_in_every_run(noted):
    for seed in (0, 1):
        evaluation_of(3, config=small(seed=seed, tasks__seed=7)).play(None, "train", 1)
    begun = [played.observation[:, 0] for played, *_ in noted]
    half = len(begun) // 2
    np.testing.assert_array_equal(begun[:half], begun[half:])
    assert len(np.unique(begun, axis=None)) == np.size(begun) // 2


def test_exploring_episodes_act_on_the_prior_and_later_ones_on_all_seen(
    trainer, noted, monkeypatch
):
    seen = []

    def inferred(self, rows):
        seen.append(len(rows))
        return Belief(np.full(3, 7.0, np.float32), np.zeros(3, np.float32))

    monkeypatch.setattr(Encoder, "__call__", inferred)
    evaluation_of(1).play(trainer.snapshot(), "test", 1)
    assert seen == [5, 10, 15, 20] * 3
    assert {explore for *_, explore in noted} == {None}
    latents = np.concatenate([conditions.skills for _, conditions, _ in noted]).reshape(3, 4, 3)
    assert (latents[:, 2:] == 7.0).all()
    assert len(np.unique(latents[:, :2])) == 3 * 2 * 3  # one drawn for each episode


def made_up(count, returns=None):
    """Adaptation of so many tasks whose belief tells the place by a linear map."""
    tasks = np.random.default_rng(count).uniform(-1.0, 1.0, (count, 2))
    means = np.zeros((count, 2, 4, 3), np.float32)
    means[:, :, 1] = (tasks @ np.array([[2.0, 0.0, 1.0], [1.0, -1.0, 0.0]]) + 0.5)[:, None]
    shape = (count, 2, 4)
    returns = np.arange(4.0) + np.zeros(shape) if returns is None else returns
    zeros = np.zeros(shape)
    return tasks, Adaptation(returns, zeros + 5.0, zeros, returns, means, means * 0.0 + 0.25)


def test_a_probe_reads_what_is_linear_and_nothing_else():
    evaluation = evaluation_of()
    (train, known), (test, told) = made_up(6), made_up(3)
    evaluation = evaluation._replace(tasks=evaluation.tasks._replace(train=train, test=test))
    assert evaluation.probe(known, told) == pytest.approx(1.0, abs=1e-2)
    assert evaluation.probe(known, told, seen=1) < 0.5  # before the belief tells anything
    # fitted on training tasks alone, and judged on others alone
    assert evaluation.probe(known, told._replace(means=-told.means)) < 0.5
    assert evaluation.probe(known._replace(means=-known.means), told) < 0.5


def test_metrics_name_returns_and_successes_by_how_many_episodes_were_seen():
    evaluation = evaluation_of(config=small(tasks__explore=1, tasks__adapt=3))
    (train, known), (test, told) = made_up(6), made_up(3)
    evaluation = evaluation._replace(tasks=evaluation.tasks._replace(train=train, test=test))
    told = told._replace(success=told.returns / 4.0)
    metrics = evaluation.metrics(told, known._replace(returns=known.returns + 10.0))
    named = {name: value for name, value in metrics.items() if "_r2" not in name}
    assert named == {
        **{"eval/return": 3.0, "eval/length": 5.0, "adapt/return_prior": 0.0},
        **{"adapt/return_1": 1.0, "adapt/return_2": 2.0, "adapt/return_last": 3.0},
        **{"adapt/success_prior": 0.0, "adapt/success_1": 0.25, "adapt/success_2": 0.5},
        **{"adapt/success_last": 0.75, "adapt/train_return": 13.0, "adapt/variance": 0.25},
    }
    later = evaluation._replace(config=small(tasks__explore=2, tasks__adapt=2))
    assert "adapt/return_1" not in later.metrics(told, known)  # that episode still explores


def test_the_reward_of_contexts_is_measured_where_it_is_another_one():
    changes = {"tasks__explore": 5, "tasks__adapt": 15, "agent__context_reward": "sparse_reward"}
    evaluation = evaluation_of(config=small(**changes, **SPARSE))
    paid = np.arange(20.0) + np.zeros([3, 2, 20])
    found = Adaptation(*(paid * k for k in (0.0, 1.0, 0.0, 1.0)), *[paid[..., None]] * 2)
    metrics = evaluation.by_episode(found)
    named = {name: value for name, value in metrics.items() if "context_return" in name}
    assert named == {
        "adapt/context_return_prior": 0.0,
        "adapt/context_return_last": 19.0,
        "adapt/context_return_late": (14 + 15 + 16 + 17 + 18 + 19) / 6,  # episodes 15 to 20
    }


def test_returns_of_contexts_count_their_own_reward_and_no_step_after_the_end(trainer, monkeypatch):
    def paying(envs, policy, conditions, explore):
        played = play(envs, policy, conditions, explore)
        paid = np.arange(6.0, dtype=np.float32) + np.zeros([3, 1], np.float32)
        lengths = np.array([5, 5, 2])
        return played._replace(extras={"sparse_reward": paid[..., None]}, length=lengths)

    monkeypatch.setattr(adaptation_module, "play", paying)
    evaluation = evaluation_of(3, config=small(agent__context_reward="sparse_reward", **SPARSE))
    found = evaluation.play(trainer.snapshot(), "test", 1)
    # the reward of a step stands with the state after it
    expected = [1 + 2 + 3 + 4 + 5, 1 + 2 + 3 + 4 + 5, 1 + 2]
    np.testing.assert_array_equal(found.context_returns[:, 0, 0], expected)
    monkeypatch.undo()
    found = evaluation_of().play(trainer.snapshot(), "test", 1)
    np.testing.assert_array_equal(found.context_returns, found.returns)
