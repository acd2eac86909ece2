"""Carts in MuJoCo as laboratories write them, each with one habit."""

import gymnasium
import mujoco
import numpy as np

from tests.kit.boxed import Boxed

STEPS = 40
XML = """
<mujoco><option timestep="0.005"/>
<worldbody>
 <geom name="floor" type="plane" size="5 5 .1"/>
 <body name="wall" pos="3 0 .1"><geom size=".1"/></body>
 <body name="cart" pos="0 0 .1">
  <joint name="x" type="slide" axis="1 0 0" damping="1"/><geom size=".05" mass="1"/></body>
</worldbody>
<actuator><motor name="pull" joint="x" gear="20"/></actuator>
</mujoco>"""


class Cart(Boxed):
    changeable = ("strength",)

    def __init__(self) -> None:
        super().__init__(2, actions=1)
        self.strength = 1.0
        self.build()

    def build(self):
        self.model = mujoco.MjModel.from_xml_string(XML)
        self.data = mujoco.MjData(self.model)

    def begin(self):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[0] = self.np_random.uniform(-0.1, 0.1)

    def seen(self):
        return np.concatenate([self.data.qpos, self.data.qvel])

    def step(self, action):
        self.data.ctrl[:] = self.strength * action
        mujoco.mj_step(self.model, self.data, 4)
        return self.seen(), float(self.data.qpos[0]), False, False, {}


class Anew(Cart):  # builds its model anew in each reset
    def begin(self):
        super().begin()
        self.build()


class OwnNumbers(Cart):  # writes what it has read once, in each reset
    def __init__(self):
        super().__init__()
        model = self.model
        self.read = [(array, array.copy()) for array in self.arrays(model)]
        self.read_strength = self.strength

    def arrays(self, model):
        names = ("body_mass", "geom_friction", "dof_damping", "actuator_gear", "body_pos")
        return [model.opt.gravity, *(getattr(model, name) for name in names)]

    def begin(self):
        super().begin()
        self.strength = self.read_strength
        for array, values in self.read:
            array[:] = values


class DrawsTheWall(Cart):  # places a body that no stage changes in each reset
    def begin(self):
        super().begin()
        self.model.body_pos[1, 0] = self.np_random.uniform(2.0, 3.0)


class ReadOnce(Cart):  # uses a mass of its own, not the simulator's
    def __init__(self):
        super().__init__()
        self.mass = self.model.body_mass[2]

    def step(self, action):
        self.data.qpos[0] += 0.1 * self.strength * action[0] / self.mass
        return self.seen(), float(self.data.qpos[0]), False, False, {}


class Blows(Cart):
    """Blows up in its third step, where its own handler takes the warning, as dm_control's does."""

    installs = "reset"

    def begin(self):
        super().begin()
        self.taken = 0
        self.install("reset")

    def install(self, where):
        if where == self.installs:
            mujoco.set_mju_user_warning(lambda text: None)

    def step(self, action):
        self.install("step")
        self.taken += 1
        if self.taken == 3:
            self.data.qpos[0] = np.nan
        return super().step(action)


class BlowsHidden(Blows):  # keeps its simulator where nobody looks, as dm_control does
    def build(self):
        super().build()
        self.kept = self.model, self.data

    def reset(self, **options):
        self.model, self.data = self.kept
        return self.hidden(super().reset(**options))

    def step(self, action):
        self.model, self.data = self.kept
        return self.hidden(super().step(action))

    def hidden(self, result):
        self.model = self.data = None
        return result


for kind in (Cart, Anew, OwnNumbers, DrawsTheWall, ReadOnce, Blows, BlowsHidden):
    gymnasium.register(f"{kind.__name__}-v0", kind, max_episode_steps=STEPS)
