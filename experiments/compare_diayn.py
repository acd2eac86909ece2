"""Updates a second of DIAYN beside plain PyTorch: `python experiments/compare_diayn.py`.

One update of everything, as the PyTorch code of DIAYN does it: two critics, a state value with its
slow copy, actor and discriminator. All have 300-300 units, and a batch has 256 rows. All losses
precede the first step, and rewards are those of the discriminator as it was.

Ours is the preset `diayn_torch` of `sac_diayn`, from sampling to slow copies; the other is written
below, as plainly as PyTorch allows. Sizes are those of Hopper-v5 with 20 skills. Replay holds 100
thousand random steps, and both have one thread.

The two take turns, each time in a process of its own; the first updates are not timed. Needs torch.
"""

import argparse
import importlib
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_DONE, EnvironmentFault

OBSERVED, ACTIONS, SKILLS, UNITS, BATCH = 11, 3, 20, 300, 256
STORED, TURN = 100_000, 50
RATE, GAMMA, TAU, ALPHA = 3e-4, 0.99, 0.005, 0.1


def ours(updates: int) -> float:
    """Returns updates a second of ours, sampling and normalising included."""
    process = importlib.import_module("music_tf.process")
    process.prepare_tensorflow()
    process.limit_threads(1)
    recipes = importlib.import_module("music_tf.recipes")
    fields = importlib.import_module("music_tf.config.fields")
    build = importlib.import_module("music_tf.training.build")
    distributed = importlib.import_module("music_tf.distributed")
    sizes = {"skills": SKILLS, "updates": TURN, "threads": 1, "collect.steps": 1000}
    sizes["collect.random_steps"] = STORED
    config = fields.with_fields(recipes.resolve("sac_diayn", "diayn_torch", "Hopper-v5"), sizes)
    trainer = build.build_trainer(config, distributed.Communicator(alone=True))
    while trainer.counters.env_steps < STORED:
        trainer.run_cycle()
    seconds = 0.0
    for turn in range(updates // TURN + 1):
        start = time.perf_counter()
        trainer.update.run(trainer.feed(turn), trainer.schedules())
        seconds += time.perf_counter() - start if turn else 0.0  # the first turn compiles
    trainer.envs.close()
    return updates // TURN * TURN / seconds


def plain(updates: int) -> float:
    """Returns updates a second of plain PyTorch.

    Raises:
        EnvironmentFault: PyTorch cannot be imported.
    """
    try:
        torch: Any = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise EnvironmentFault(f"torch cannot be imported ({error})") from error
    torch.set_num_threads(1)
    nn, functional = torch.nn, torch.nn.functional

    def network(inputs: int, outputs: int) -> Any:
        hidden = [nn.Linear(inputs, UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS), nn.ReLU()]
        return nn.Sequential(*hidden, nn.Linear(UNITS, outputs))

    seen = OBSERVED + SKILLS
    actor, discriminator = network(seen, 2 * ACTIONS), network(OBSERVED, SKILLS)
    critics = [network(seen + ACTIONS, 1) for _ in range(2)]
    value, slow = network(seen, 1), network(seen, 1)
    slow.load_state_dict(value.state_dict())
    learning = [actor, value, *critics, discriminator]
    optimisers = [torch.optim.Adam(one.parameters(), RATE) for one in learning]
    generator = np.random.default_rng(0)

    def drawn(*shape: int) -> npt.NDArray[np.float32]:
        return generator.standard_normal((STORED, *shape), np.float32)

    states, following, taken = drawn(OBSERVED), drawn(OBSERVED), np.tanh(drawn(ACTIONS))
    skills, ended = generator.integers(SKILLS, size=STORED), np.zeros([STORED, 1], np.float32)

    def update() -> None:
        rows = generator.integers(STORED, size=BATCH)
        here, after, action, done = (
            torch.from_numpy(array[rows]) for array in (states, following, taken, ended)
        )
        skill = torch.from_numpy(skills[rows])
        one_hot = functional.one_hot(skill, SKILLS).float()
        inputs, next_inputs = torch.cat([here, one_hot], 1), torch.cat([after, one_hot], 1)
        mean, log_deviation = actor(inputs).chunk(2, 1)
        log_deviation = log_deviation.clamp(-20.0, 2.0)
        noise = torch.randn_like(mean)
        chosen = torch.tanh(mean + log_deviation.exp() * noise)
        each = -0.5 * (noise**2 + 2.0 * log_deviation + math.log(2.0 * math.pi))
        log_pi = (each - torch.log(1.0 - chosen**2 + 1e-6)).sum(1, keepdim=True)
        proposed = torch.cat([inputs, chosen], 1)
        lowest = torch.min(*(critic(proposed) for critic in critics))
        with torch.no_grad():
            named = functional.log_softmax(discriminator(after), 1)
            reward = named.gather(1, skill[:, None]) + math.log(SKILLS)
            target = reward + GAMMA * (1.0 - done) * slow(next_inputs)
            soft = lowest - ALPHA * log_pi
        stored = torch.cat([inputs, action], 1)
        losses = [
            (ALPHA * log_pi - lowest).mean(),
            functional.mse_loss(value(inputs), soft),
            *(functional.mse_loss(critic(stored), target) for critic in critics),
            functional.cross_entropy(discriminator(here), skill),
        ]
        # a loss gives gradients to its own network alone
        gradients = [
            torch.autograd.grad(loss, list(one.parameters()), retain_graph=True)
            for loss, one in zip(losses, learning, strict=True)
        ]
        for one, optimiser, found in zip(learning, optimisers, gradients, strict=True):
            for weight, gradient in zip(one.parameters(), found, strict=True):
                weight.grad = gradient
            optimiser.step()
        with torch.no_grad():
            for late, now in zip(slow.parameters(), value.parameters(), strict=True):
                late.lerp_(now, TAU)

    for _ in range(TURN):
        update()
    start = time.perf_counter()
    for _ in range(updates):
        update()
    return updates / (time.perf_counter() - start)


SIDES = {"ours": ours, "plain": plain}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints updates a second of both in each round, and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--side", choices=SIDES, help="measures one of them in this process")
    given = parser.parse_args(arguments)
    if given.side:
        sys.stdout.write(f"{SIDES[given.side](given.updates)}\n")
        return EXIT_DONE
    ratios = []
    for number in range(given.rounds):
        rates = {}
        for side in SIDES:
            words = [sys.executable, __file__, "--side", side, "--updates", str(given.updates)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise EnvironmentFault(f"{side}: {done.stderr.strip()[-500:]}")
            rates[side] = float(done.stdout.splitlines()[-1])
        ratios.append(rates["ours"] / rates["plain"])
        sys.stdout.write(
            f"round {number + 1}: ours {rates['ours']:.0f}, PyTorch {rates['plain']:.0f} updates "
            f"a second, ratio {ratios[-1]:.2f}\n"
        )
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    sys.stdout.write(f"median ratio {middle:.2f}, from {low:.2f} to {high:.2f}\n")
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
