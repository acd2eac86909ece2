"""Families of the user's own: an environment for each task, made once and switched to."""

import gymnasium
import numpy as np
import pytest

import music_tf
from music_tf.envs.lockstep import TEST_TASKS, LockstepEnvs
from music_tf.errors import EnvironmentFault, UsageError
from tests.kit.cases import cases
from tests.kit.placed import Placed

FAMILY = "me/Pendulums-v0"


def pendulum(task):
    return gymnasium.make("Pendulum-v1", g=float(task[0]), max_episode_steps=None)


def draw(count, generator):
    return generator.uniform(5.0, 15.0, (count, 1))


@pytest.fixture
def register():
    """Registers FAMILY for a test, by default as pendulums under another gravity each."""

    def registered(make=pendulum, draw=draw, max_episode_steps=9, draw_test=None):
        told = {"draw_test": draw_test, "max_episode_steps": max_episode_steps}
        music_tf.register_tasks(FAMILY, make=make, draw=draw, **told)

    yield registered
    gymnasium.registry.pop(FAMILY, None)


def played(environment, seed=3, steps=9):
    states = [environment.reset(seed=seed)[0]]
    return [*states, *(environment.step(np.float32([0.5]))[0] for _ in range(steps))]


def test_each_task_is_played_in_the_environment_that_is_made_for_it(register):
    register()
    envs = LockstepEnvs(FAMILY, 2)
    tasks = envs.sample_tasks(2, np.random.default_rng(0))
    states = [envs.reset([0, 1], [3, 3], tasks=tasks).observation]
    for _ in range(9):
        steps = envs.step(np.full((2, 1), 0.25, np.float32), [0, 1])  # half a newton metre
        states.append(steps.observation)
    assert steps.truncated.tolist() == [True, True]
    for task, found in zip(tasks, np.swapaxes(states, 0, 1), strict=True):
        np.testing.assert_array_equal(found, played(pendulum(task)))


def test_tasks_of_evaluation_may_have_a_draw_of_their_own(register):
    register()
    assert not LockstepEnvs(FAMILY, 1).environment.has_wrapper_attr(TEST_TASKS)
    register(draw_test=lambda count, generator: generator.uniform(20.0, 30.0, (count, 1)))
    envs = LockstepEnvs(FAMILY, 1)
    assert envs.environment.has_wrapper_attr(TEST_TASKS)
    assert envs.sample_tasks(3, np.random.default_rng(0), TEST_TASKS).min() >= 20.0
    with pytest.raises(UsageError, match="draw_test: expected a function, got 3"):
        register(draw_test=3)


def test_a_task_that_comes_back_need_not_be_made_anew_and_few_are_kept(register):
    made, closed = [], []

    class Counted(gymnasium.Wrapper):
        def close(self):
            closed.append(self.env.unwrapped.g)

    def make(task):
        made.append(float(task[0]))
        return Counted(pendulum(task))

    register(make)
    environment = gymnasium.make(FAMILY)
    first = made.pop()
    set_task = environment.get_wrapper_attr("set_task")
    expected = {}
    for gravity in (*range(1, 8), 1, 2, *range(8, 11), 1):
        set_task(np.array([float(gravity)]))
        states = played(environment)
        np.testing.assert_array_equal(expected.setdefault(gravity, states), states)
    assert made == list(range(1, 11))
    assert closed == [first, 3.0, 4.0]  # those that were left longest ago
    environment.close()
    assert sorted(closed[3:]) == [1.0, 2.0, *range(5, 11)]


def test_what_the_environment_of_a_task_has_placed_stays_there(register):
    register(lambda task: Placed(float(task[0])))
    envs = LockstepEnvs(FAMILY, 1)
    for place in (0.5, 0.75, 0.5):
        seen = envs.reset([0], [3], tasks=np.array([[place]])).observation
        assert seen[0, 1:].tolist() == [place, 0.0, 7.0]
        envs.step(np.ones((1, 1), np.float32), [0])


def of_other_actions(task):
    return gymnasium.wrappers.RescaleAction(pendulum(task), np.float32([-1]), np.float32([2]))


ONE = pendulum([8.0])
EXPECTED = "register_tasks: make: expected"


@cases(
    ("make", "kind", "text"),
    (
        lambda task: gymnasium.make("MountainCarContinuous-v0"),
        *(UsageError, rf"^{EXPECTED} the same observation_space .* Box.*got Box.*task \[9.5\]"),
    ),
    (of_other_actions, UsageError, rf"^{EXPECTED} the same action_space for .* \[9.5\]"),
    (lambda task: None, UsageError, rf"^{EXPECTED} a gym.* environment, got None .* \[9.5\]"),
    (lambda task: ONE, UsageError, f"^{EXPECTED} an environment of its own .* got the same"),
    (lambda task: {}["no such world"], EnvironmentFault, "KeyError: 'no such world'"),
)
def test_a_task_that_is_no_environment_of_its_own_and_of_the_same_sizes_is_refused(
    register, make, kind, text
):
    register(
        lambda task: make(task) if task[0] > 9 else ONE, lambda count, _: np.full((count, 1), 8.0)
    )
    envs = LockstepEnvs(FAMILY, 1)
    envs.reset([0], [0], tasks=np.array([[8.0]]))
    assert envs.render(0).shape == (500, 500, 3)
    with pytest.raises(kind, match=text):
        envs.reset([0], [0], tasks=np.array([[9.5]]))


def test_registering_refuses_what_is_no_function_no_id_or_somebody_elses(register):
    register()
    register()  # a module that is imported again
    for change, text in (
        ({"make": "pendulum"}, "make: expected a function, got 'pendulum'"),
        ({"draw": None}, "draw: expected a function, got None"),
        ({"env_id": "Pendulum-v1"}, "Pendulum-v1 is the id of another environment"),
        ({"env_id": "me/No version?"}, "expected an id such as me/Family-v0, got 'me/No version?'"),
    ):
        given = {"env_id": FAMILY, "make": pendulum, "draw": draw, **change}
        with pytest.raises(UsageError, match=f"^register_tasks: {text}".replace("?", r"\?")):
            music_tf.register_tasks(given.pop("env_id"), **given)
    assert gymnasium.spec("Pendulum-v1").max_episode_steps == 200


def test_a_family_that_does_not_say_how_long_an_episode_is_is_refused(register):
    register(max_episode_steps=None)
    with pytest.raises(UsageError, match=r"how long an episode is(.|\n)*env.max-episode-steps"):
        LockstepEnvs(FAMILY, 1)
