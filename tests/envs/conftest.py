import gymnasium
import pytest

from tests.kit.odd import ODD, Odd


@pytest.fixture
def odd(monkeypatch):
    """The class behind `Odd-v0`; set its attribute `fault` to make it misbehave."""
    gymnasium.register(id=ODD, entry_point=Odd, max_episode_steps=8)
    for name in ("built", "fault", "at_step", "low", "high"):
        monkeypatch.setattr(Odd, name, getattr(Odd, name))
    Odd.built = 0
    yield Odd
    del gymnasium.registry[ODD]
