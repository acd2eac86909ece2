import types

import gymnasium
import pytest

from music_tf.envs import repeating
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.repeating import check_steps, first_difference, repeats_itself
from music_tf.errors import EnvironmentFault
from tests.kit.counting import HIDING
from tests.kit.odd import ODD


def test_an_environment_repeats_itself_unless_it_leaves_something_or_says_so(odd, monkeypatch):
    envs = LockstepEnvs(ODD, 1)
    assert first_difference(envs) is None
    odd.fault = "leftover"
    assert first_difference(envs) == (0, False)
    assert not repeats_itself(envs)
    odd.fault = ""
    monkeypatch.setattr(gymnasium.registry[ODD], "nondeterministic", True)
    assert not repeats_itself(LockstepEnvs(ODD, 1))


def test_an_episode_beside_that_ends_or_breaks_is_left_there(odd):
    envs = LockstepEnvs(ODD, 2)
    envs.mute_faults()
    envs._members[1].environment.unwrapped.fault = "exception"
    assert repeats_itself(envs)
    assert repeats_itself(LockstepEnvs(HIDING, 2))


@pytest.mark.parametrize("fault", ["exception", "nan", "reset"])
def test_what_breaks_is_left_to_training(odd, fault):
    envs = LockstepEnvs(ODD, 1)
    odd.fault = fault
    assert repeats_itself(envs)


def test_an_environment_that_never_steps_is_refused_and_one_that_breaks_later_is_not(odd):
    envs = LockstepEnvs(ODD, 1)
    check_steps(envs)
    odd.fault = "exception"  # at a later step
    check_steps(envs)
    odd.fault = "four"
    with pytest.raises(EnvironmentFault, match=r"4 episodes failed .* first step.*\n.*step 1:"):
        check_steps(envs)


def test_a_slow_environment_is_not_played_to_the_end(odd, monkeypatch):
    steps, step = [], odd.step

    def slow(self, action):
        steps.append(action)
        return step(self, action)

    clock = types.SimpleNamespace(monotonic=lambda: 0.16 * len(steps))
    monkeypatch.setattr(odd, "step", slow)
    monkeypatch.setattr(repeating, "time", clock)
    assert repeats_itself(LockstepEnvs(ODD, 1))
    assert len(steps) == 6  # two of each episode use the first's 0.3 s
    assert first_difference(LockstepEnvs(ODD, 1)) is None
    assert len(steps) == 6 + 3 * 8
