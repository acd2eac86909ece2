"""An environment of one's own on MuJoCo that sets a marker and a switch when it is made."""

import gymnasium
import mujoco
import numpy as np
import pytest

from tests.kit.boxed import Boxed

PLACED = "Placed-v0"
_MODEL = """
<mujoco>
  <size nuserdata="1"/>
  <worldbody>
    <body name="marker" mocap="true" pos="5 5 9"><geom size=".05"/></body>
    <body name="ball"><joint name="x" type="slide" axis="1 0 0"/><geom size=".05" mass="1"/></body>
  </worldbody>
  <equality><joint joint1="x" polycoef="2 0 0 0 0"/></equality>
  <actuator><motor joint="x" gear="5"/></actuator>
</mujoco>
"""


class Placed(Boxed):
    """A ball on a rail; `reset` sets its joint alone, and a step takes the marker along."""

    def __init__(self, target=0.25):
        super().__init__(4, actions=1)
        self.model = mujoco.MjModel.from_xml_string(_MODEL)
        self.data = mujoco.MjData(self.model)
        self.data.mocap_pos[0] = target
        self.data.eq_active[0] = 0
        self.data.userdata[0] = 7.0

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other):
        return type(other) is Placed

    def begin(self):
        self.data.qpos[:], self.data.qvel[:] = self.np_random.uniform(-0.1, 0.1), 0.0
        mujoco.mj_forward(self.model, self.data)

    def step(self, action):
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, 5)
        self.data.mocap_pos[0, 0] += 0.125
        return self.seen(), 0.0, False, False, {"cost": 1.0}

    def seen(self):
        data = self.data
        parts = data.qpos[0], data.mocap_pos[0, 0], float(data.eq_active[0]), data.userdata[0]
        return np.array(parts)


@pytest.fixture
def placed():
    """Makes it known to Gymnasium, and returns its id."""
    gymnasium.register(PLACED, Placed, max_episode_steps=20)
    yield PLACED
    del gymnasium.registry[PLACED]
