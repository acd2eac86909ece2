"""How many floating-point operations an update cannot do without, counted from layer sizes."""

import itertools
from collections.abc import Sequence

DDPG_INPUTS = 29
"""Observation 25, condition 1 and goal 3 of FetchPush-v4, as actor and critic see them."""
DDPG_ACTIONS = 4
DDPG_HIDDEN = (256, 256, 256)
DDPG_BATCH = 256
ENV_STEPS_PER_CYCLE = 100
"""Two episodes of 50 steps."""
UPDATES_PER_CYCLE = 40
COMPARED_THREADS = 2
"""Of either side where we compare ourselves with another library."""


def multiply_adds(sizes: Sequence[int]) -> int:
    """Returns the multiply-adds of one row through dense layers, sizes from input to output."""
    return sum(rows * columns for rows, columns in itertools.pairwise(sizes))


def ddpg_update_flop(
    inputs: int = DDPG_INPUTS,
    actions: int = DDPG_ACTIONS,
    hidden: Sequence[int] = DDPG_HIDDEN,
    batch: int = DDPG_BATCH,
) -> int:
    """Returns the floating-point operations of the products in one DDPG update with one critic.

    Of a dense layer, gradients of weights and of inputs cost as much as the layer itself; the
    first layer needs none of its inputs. Where the critic judges the policy's actions, gradients
    go through all its layers down to the actions, and its weights get none. A multiply-add
    counts twice; biases, activations, Adam and targets are left out: they multiply no matrices.
    """
    actor = multiply_adds([inputs, *hidden, actions])
    actor_behind_first = actor - inputs * hidden[0]
    critic = multiply_adds([inputs + actions, *hidden, 1])
    critic_behind_first = critic - (inputs + actions) * hidden[0]
    target = actor + critic
    value_loss = 2 * critic + critic_behind_first
    policy_loss = actor + critic + critic_behind_first + actions * hidden[0]
    policy_gradient = actor + actor_behind_first
    return 2 * batch * (target + value_loss + policy_loss + policy_gradient)


def cycle_limit_s(mj_step_per_s: float, peak_flop_per_s: float) -> float:
    """Returns the seconds that a cycle of one worker takes where only physics and products do.

    Args:
        mj_step_per_s: Calls of mj_step(nstep=20) a second, one for each environment step.
        peak_flop_per_s: Of matrix products, on one core.
    """
    learning = UPDATES_PER_CYCLE * ddpg_update_flop() / peak_flop_per_s
    return ENV_STEPS_PER_CYCLE / mj_step_per_s + learning
