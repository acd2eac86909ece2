"""Measures this machine's throughput, and how far training is from its limits.

Every number is a time, or a ratio to another measurement of the same repetition. A repetition takes
all measurements one after the other, each in its own process. Median, lowest and highest over
repetitions go to a table and to a JSON file. For numbers to publish, use an idle machine and at
least 5 repetitions.

Stable-Baselines3 is compared with if it is installed: pip install stable-baselines3 torch
"""

import argparse
import dataclasses
import datetime
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from music_tf.cli.exits import guarded, leave
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, EnvironmentFault, UsageError
from music_tf.process.children import run_command
from music_tf.process.machine import available_cores
from music_tf.process.mpirun import (
    ask_version,
    find_mpirun,
    flavour,
    needed,
    own_sessions,
    rank_words,
)
from music_tf.process.tensorflow_start import NO_GPU
from music_tf.storage.provenance import commit, processor
from music_tf.tools.doctor import installed

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "benchmark.json"
WIDEST_SPREAD = 0.2
"""Largest range over repetitions, relative to the median, of a number to quote."""
RANKS = 2
OBSERVED, ACTIONS = 29, 4
"""Inputs and outputs of the actor on FetchPush-v4: observation 25, condition 1 and goal 3."""
ENV_STEPS_PER_CYCLE = 100
"""Two episodes of 50 steps."""
_SECONDS = 900.0
_KIB_PER_MB = 1024.0
_PACKAGES = (
    *("tensorflow", "keras", "numpy", "mujoco", "gymnasium", "gymnasium-robotics", "mpi4py"),
    *("stable-baselines3", "torch"),
)
_RANKED = frozenset({"ranks", "guards"})
_THREADS = {"update_2t": 2, "our_sac": 2, "our_ddpg": 2}
"""Threads of measurements with more than one."""
_FIRST_STEP = """
import os, sys, time
from music_tf.cli import main
from music_tf.envs.lockstep import LockstepEnvs
def step(*_):
    with open(sys.argv[1], "w") as out:
        out.write(repr(time.monotonic()))
    os._exit(0)
LockstepEnvs.step = step
main(["train", "ddpg_her", "--env-id", "FetchPush-v4", "--run-dir", sys.argv[1] + ".run"])
"""
"""Program that trains and, at the first environment step, writes the time and ends."""
_EXAMPLES = """\
examples:
  make bench                                            everything, about 15 minutes
  python experiments/benchmark.py --only env_fetch_vs_gymnasium env_fetch_vs_mjstep
  python experiments/benchmark.py --quick               does it run? the numbers mean nothing
  python experiments/benchmark.py --table               shows the stored results

keys:
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
    """Counts of one repetition."""

    env_episodes: int = 20
    """Episodes of 50 steps, of each of the three ways to step."""
    stored_episodes: int = 40
    """Episodes of a worker in replay before updates are timed."""
    rounds: int = 8
    """Timed calls of all updates of a cycle, each after a measurement of the matrix peak."""
    updates: int = 40
    """Updates per call, and in a cycle of two ranks."""
    trajectories: int = 256
    """Episodes in a batch of the statistics network."""
    matrices: tuple[int, ...] = (512, 1024, 2048)
    """Sizes of the square matrices whose fastest product is the peak."""
    warm_cycles: int = 3
    """Cycles of two ranks before the timed ones."""
    cycles: int = 10
    """Timed cycles of two ranks."""
    memory_env: str = "FetchPush-v4"
    memory_cycles: int = 4
    """Cycles of the run whose memory is measured."""
    hidden: tuple[int, ...] = (256, 256, 256)
    batch: int = 256
    meta_rows: int = 1024
    """Steps of an update of PEARL, of all its tasks."""
    skill_epochs: tuple[int, ...] = (4, 4, 4, 4)
    """Epochs of skills that are learned one after the other."""
    compared_threads: int = 2
    """Threads of both sides in a comparison with another library."""


FULL = Sizes()
QUICK = Sizes(
    env_episodes=1,
    stored_episodes=4,
    rounds=1,
    updates=2,
    trajectories=4,
    matrices=(64,),
    warm_cycles=1,
    cycles=1,
    memory_env="music_tf/PointPush-v0",
    memory_cycles=1,
    skill_epochs=(1, 1),
)


def ddpg_update_flop(
    inputs: int = OBSERVED,
    actions: int = ACTIONS,
    hidden: Sequence[int] = FULL.hidden,
    batch: int = FULL.batch,
) -> int:
    """Returns the floating-point operations of matrix products in a DDPG update with one critic.

    The gradients of weights and of inputs of a dense layer each cost as much as the layer itself;
    the first layer needs no gradient of its inputs. In the actor's loss, gradients go through all
    layers of the critic to the actions, but not to its weights. A multiply-add counts twice;
    biases, activations, Adam and target updates have no products and are left out.
    """
    actor, actor_behind = _multiply_adds(inputs, *hidden, actions)
    critic, critic_behind = _multiply_adds(inputs + actions, *hidden, 1)
    target = actor + critic
    value_loss = 2 * critic + critic_behind
    policy_loss = actor + critic + critic_behind + actions * hidden[0]
    policy_gradient = actor + actor_behind
    return 2 * batch * (target + value_loss + policy_loss + policy_gradient)


def meta_update_flop(
    observed: int = 17,
    actions: int = 6,
    latent: int = 5,
    hidden: Sequence[int] = (128, 128),
    rows: int = FULL.meta_rows,
    context: int = 400,
) -> int:
    """Returns the same for an update of PEARL, by default for four tasks of HalfCheetah.

    Twin critics and the encoder step first, with the target of the state value; then the state
    value, with an action of the policy and the critics; then the policy. The encoder's gradient
    comes from the critics' inputs.
    """
    state = observed + latent
    actor, actor_behind = _multiply_adds(state, *hidden, 2 * actions)
    critic, critic_behind = _multiply_adds(state + actions, *hidden, 1)
    value, value_behind = _multiply_adds(state, *hidden, 1)
    encoder, encoder_behind = _multiply_adds(observed + actions + 1, *hidden, 2 * latent)
    inferring = value + 2 * (2 * critic + critic_behind + latent * hidden[0])
    valuing = actor + 2 * critic + 2 * value + value_behind
    through_critics = 2 * (critic_behind + actions * hidden[0])
    acting = actor + 2 * critic + through_critics + actor + actor_behind
    contexts = context * (2 * encoder + encoder_behind)
    return 2 * (rows * (inferring + valuing + acting) + contexts)


def _multiply_adds(*sizes: int) -> tuple[int, int]:
    """Returns the multiply-adds of dense layers for a row, and those behind the first layer."""
    each = [before * after for before, after in itertools.pairwise(sizes)]
    return sum(each), sum(each[1:])


def cycle_limit_s(mj_step_per_s: float, peak_flop_per_s: float) -> float:
    """Returns the seconds of a cycle of one worker if only physics and matrix products took time.

    Args:
        mj_step_per_s: Calls of mj_step(nstep=20) per second, one for each environment step.
        peak_flop_per_s: Of matrix products, on one core.
    """
    learning = FULL.updates * ddpg_update_flop() / peak_flop_per_s
    return ENV_STEPS_PER_CYCLE / mj_step_per_s + learning


Measured = Mapping[str, Mapping[str, Any]]
"""Results of one repetition, by measurement and quantity."""


class Key(NamedTuple):
    """One reported number."""

    unit: str
    better: str  # higher or lower
    needs: tuple[str, ...]  # measurements; the first may be impossible on this machine
    value: Callable[..., float]
    """Computes the number from the results of these measurements, in their order."""
    meaning: str

    def of(self, measured: Measured) -> float:
        """Returns the number of one repetition."""
        return float(self.value(*(measured[need] for need in self.needs)))


def _of_peak(flop: int) -> Callable[[Mapping[str, float]], float]:
    return lambda measured: measured["updates_per_s"] * flop / measured["peak_flop_per_s"]


def _rates(theirs: Mapping[str, float], ours: Mapping[str, float]) -> float:
    return ours["updates_per_s"] / theirs["updates_per_s"]


def _cycle_over_limit(
    simulation: Mapping[str, float], update: Mapping[str, float], ranks: Mapping[str, float]
) -> float:
    return ranks["cycle_s"] / cycle_limit_s(simulation["mj_step_per_s"], update["peak_flop_per_s"])


KEYS: dict[str, Key] = {
    "env_fetch_vs_gymnasium": Key(
        *("x", "higher", ("simulation",)),
        lambda measured: measured["env_steps_per_s"] / measured["gymnasium_steps_per_s"],
        "our environment steps/s over gymnasium.make's, FetchPush-v4, resets included",
    ),
    "env_fetch_vs_mjstep": Key(
        *("x", "higher", ("simulation",)),
        lambda measured: measured["env_steps_per_s"] / measured["mj_step_per_s"],
        "our environment steps/s over those of mj_step(nstep=20) alone, from the same states",
    ),
    "update_vs_peak_1t": Key(
        *("x", "higher", ("update_1t",), _of_peak(ddpg_update_flop())),
        "multiply-adds/s of DDPG updates over the matrix-multiply peak, 1 thread",
    ),
    "update_vs_peak_2t": Key(
        *("x", "higher", ("update_2t",), _of_peak(ddpg_update_flop())),
        "the same with 2 threads, also for the peak",
    ),
    "meta_update_vs_peak_1t": Key(
        *("x", "higher", ("meta",), _of_peak(meta_update_flop())),
        "the same of updates of PEARL on HalfCheetah with 1,024 rows, in processor time, 1 thread; "
        "at least 0.5",
    ),
    "layer_norm_vs_two_1t": Key(
        *(
            "x",
            "lower",
            ("critics",),
            lambda measured: measured["normalized_ms"] / measured["two_ms"],
        ),
        "time of an update with layer norm in two critics over that without, processor time, 1 "
        "thread; limit 1.3",
    ),
    "five_critics_vs_two_1t": Key(
        *("x", "lower", ("critics",), lambda measured: measured["five_ms"] / measured["two_ms"]),
        "the same of five critics, of which a target takes a random pair; limit 2",
    ),
    "update_vs_sb3_sac": Key(
        *("x", "higher", ("their_sac", "our_sac"), _rates),
        "our SAC updates/s over Stable-Baselines3's, 2 threads each",
    ),
    "update_vs_sb3_ddpg": Key(
        *("x", "higher", ("their_ddpg", "our_ddpg"), _rates),
        "our DDPG updates/s over Stable-Baselines3's, 2 threads each",
    ),
    "mi_update_ms_1t": Key(
        *("ms", "lower", ("music",), itemgetter("mi_update_ms")),
        "one update of the statistics network, 256 trajectories of 51 states, 1 thread",
    ),
    "pair_update_ms_1t": Key(
        *("ms", "lower", ("music",), itemgetter("pair_update_ms")),
        "policy and statistics network updated together, 1 thread; limit 18 ms",
    ),
    "feed_her_ms_1t": Key(
        *("ms", "lower", ("feeding",), itemgetter("ddpg_her_ms")),
        "what 40 updates of hindsight see, drawn, relabelled and handed over; limit 4 ms",
    ),
    "feed_music_ms_1t": Key(
        *("ms", "lower", ("feeding",), itemgetter("ddpg_music_ms")),
        "the same for MUSIC with 256 trajectories; limit 10 ms",
    ),
    "nearest_k3_ms_1t": Key(
        *("ms", "lower", ("neighbours",), itemgetter("k3_ms")),
        "distances of 256 transitions to the 3rd nearest of two times 512 rows, 3 columns, 1 "
        "thread; limit 1.5 ms",
    ),
    "nearest_k5_ms_1t": Key(
        *("ms", "lower", ("neighbours",), itemgetter("k5_ms")),
        "the same to the 5th nearest; limit 2 ms",
    ),
    "square_s_1t": Key(
        *("s", "lower", ("one_by_one",), itemgetter("seconds")),
        "a run of sac_disk on Square, four skills of 4,000 steps, in processor time, 1 thread; 30 "
        "to 60 s",
    ),
    "cycle_vs_limit_np2": Key(
        *("x", "lower", ("simulation", "update_1t", "ranks"), _cycle_over_limit),
        "time of a cycle on 2 ranks over that of its physics and matrix products alone",
    ),
    "mpi_overhead_np2": Key(
        *("share", "lower", ("ranks",), itemgetter("mpi_share")),
        "share of that cycle spent in MPI or waiting for it",
    ),
    "guarded_cycle_np2": Key(
        *("x", "lower", ("guards",), itemgetter("ratio")),
        "time of a cycle on 2 ranks with all guards (finite numbers, equal ranks, watchdog) over "
        "one without; limit 1.02",
    ),
    "startup_help_s": Key("s", "lower", ("help",), itemgetter("seconds"), "music-tf --help"),
    "startup_first_step_s": Key(
        *("s", "lower", ("first_step",), itemgetter("seconds")),
        "from the start of music-tf train to its first environment step",
    ),
    "memory_mb_per_rank": Key(
        *("MB", "lower", ("memory",), itemgetter("mb")),
        "peak resident memory of a rank, ddpg_music with the laptop preset on 2 ranks",
    ),
}


def sizes_of(quick: bool) -> Sizes:
    return QUICK if quick else FULL


def why_not(probe: str) -> str:
    """Returns why a measurement cannot be taken on this machine; empty if it can."""
    if probe in _RANKED | {"memory"} and find_mpirun() is None:
        return "needs mpirun, and it was not found; pip install 'music_tf[mpi]'"
    if probe == "update_2t" and available_cores() < RANKS:
        return "needs two cores"
    return ""


def take(probe: str, quick: bool) -> dict[str, Any]:
    """Takes one measurement."""
    sizes = sizes_of(quick)
    if probe in _PROGRAMS:
        return _PROGRAMS[probe](sizes)
    with tempfile.TemporaryDirectory() as folder, own_sessions(os.environ) as sessions:
        out = Path(folder) / "measured.json"
        start: list[str] = [sys.executable]
        if probe in _RANKED:
            mpirun = find_mpirun() or "mpirun"
            library = flavour(ask_version(mpirun, 60.0).output)
            start = [*rank_words(mpirun, library, RANKS), sys.executable, "-m", "mpi4py"]
        counts = json.dumps(dataclasses.asdict(sizes))
        _run(
            [*start, str(HERE / "measure.py"), probe, str(out), counts],
            {
                "OMP_NUM_THREADS": str(_THREADS.get(probe, 1)),
                "CUDA_VISIBLE_DEVICES": NO_GPU,
                **needed(os.environ),
                **sessions,
            },
        )
        values: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if probe in _RANKED and values["ranks"] != RANKS:
        raise EnvironmentFault(f"mpirun started {values['ranks']} ranks, expected {RANKS}")
    return values


def _run(words: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    done = run_command(words, seconds=_SECONDS, environment=environment)
    if done.code == EXIT_ENVIRONMENT and done.errors:
        raise EnvironmentFault(done.errors.removeprefix("music-tf: "))
    if not done.ok:
        raise EnvironmentFault(f"{' '.join(words)[:200]}\nfailed, code {done.code}: {done.reason}")


def _program(*words: str) -> list[str]:
    """Returns `music-tf WORDS`: the script beside this interpreter, else the module."""
    script = Path(sys.executable).parent / "music-tf"
    start = [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-m", "music_tf"]
    return [*start, *words]


def _help(sizes: Sizes) -> dict[str, float]:
    """Times `music-tf --help` from start to end."""
    del sizes
    start = time.monotonic()
    _run(_program("--help"))
    return {"seconds": time.monotonic() - start}


def _first_step(sizes: Sizes) -> dict[str, float]:
    del sizes
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "clock"
        start = time.monotonic()
        _run([sys.executable, "-c", _FIRST_STEP, str(out)])
        return {"seconds": float(out.read_text()) - start}


def _memory(sizes: Sizes) -> dict[str, float]:
    """Trains on two ranks and returns the peak resident memory of the larger one, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        words = _program(
            *("launch", "-n", "2", "train", "ddpg_music", "--env-id", sizes.memory_env),
            *("--epochs", "1", "--cycles", str(sizes.memory_cycles)),
            *("--evaluation.episodes", "2", "--run-dir", f"{folder}/run"),
        )
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet)
        _, status, used = os.wait4(process.pid, 0)  # also of the launcher's children
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise EnvironmentFault(f"{' '.join(words)}\nfailed with code {process.returncode}")
    return {"mb": used.ru_maxrss / _KIB_PER_MB}


def _theirs(sizes: Sizes, learner: str) -> dict[str, Any]:
    """Measures the updates of a learner of Stable-Baselines3."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        words = [learner, str(out), "--threads", str(sizes.compared_threads), "--rate"]
        words += map(str, (sizes.stored_episodes, sizes.rounds, sizes.updates))
        try:
            _run([sys.executable, str(HERE / "compare_baselines.py"), *words])
        except EnvironmentFault as fault:
            return {"left_out": str(fault).splitlines()[0]}
        values: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return values


_PROGRAMS: Mapping[str, Callable[[Sizes], dict[str, Any]]] = {
    "help": _help,
    "first_step": _first_step,
    "memory": _memory,
    "their_sac": partial(_theirs, learner="SAC"),
    "their_ddpg": partial(_theirs, learner="DDPG"),
}


def header(command: str, repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns software, machine and settings of the measurements; called before the first one."""
    return {
        "command": command,
        "commit": commit(HERE.parent),
        "versions": {"python": platform.python_version()}
        | {package: installed(package) for package in _PACKAGES},
        "machine": {
            "cpu": processor(),
            "cores": available_cores(),
            "load_at_start": round(os.getloadavg()[0], 2),
        },
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "repetitions": repetitions,
        "quick": quick,
        "sizes": dataclasses.asdict(sizes_of(quick)),
        "ddpg_update_flop": ddpg_update_flop(),
        "meta_update_flop": meta_update_flop(),
    }


def load(path: Path) -> dict[str, Any]:
    """Returns a stored record."""
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stored["header"]["machine"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"--table: cannot read {path}, or it was not written by this benchmark "
            f"({type(error).__name__}: {error})\nmeasure first with: make bench"
        ) from error
    return stored


def markdown(record: Mapping[str, Any]) -> str:
    """Returns the table for a terminal or a page, with a line about the machine."""
    lines = ["| key | median | min | max | unit | better |", "|---|---|---|---|---|---|"]
    for name, key in KEYS.items():
        if name in record:
            median, low, high = (f"{record[name][of]:.3g}" for of in ("median", "min", "max"))
            lines.append(f"| `{name}` | {median} | {low} | {high} | {key.unit} | {key.better} |")
    about = record["header"]
    machine, versions = about["machine"], about["versions"]
    lines += [
        "",
        f"{'Tiny sizes (--quick), not a measurement. ' if about['quick'] else ''}"
        f"{about['repetitions']} repetitions on {machine['cores']} cores of {machine['cpu']}, load "
        f"{machine['load_at_start']} at the start, {about['date'][:10]}, commit "
        f"{(about['commit'] or 'unknown')[:12]}, Python {versions['python']}, TensorFlow "
        f"{versions['tensorflow']}, MuJoCo {versions['mujoco']}: `{about['command']}`",
    ]
    lines += [f"- `{name}` left out: {reason}" for name, reason in record["left_out"].items()]
    lines += [f"- {warning}" for warning in [spread_warning(record)] if warning]
    return "\n".join(lines) + "\n"


def spread_warning(record: Mapping[str, Any]) -> str:
    """Returns a warning about keys whose repetitions differ too much; empty without any."""
    wide = [
        name
        for name in KEYS
        if name in record
        and record[name]["max"] - record[name]["min"] > WIDEST_SPREAD * abs(record[name]["median"])
    ]
    if not wide:
        return ""
    return (
        f"do not quote {', '.join(wide)}: the repetitions lie more than {WIDEST_SPREAD:.0%} apart; "
        "measure again while the machine does nothing else"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, or shows stored measurements, and returns 0."""
    width = max(map(len, KEYS))
    listed = "\n".join(f"  {name:{width}}  {key.meaning}" for name, key in KEYS.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=_EXAMPLES + listed,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("--repetitions", type=int, metavar="N", help="how often (default 5; 1 with --quick)")
    option("--only", nargs="+", default=[], metavar="KEY", help="only these keys (all are below)")
    option("--quick", action="store_true", help="tiny sizes, to see that all runs")
    option(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write (default experiments/results/benchmark.json for all keys at full "
        "size; else nowhere)",
    )
    option("--table", action="store_true", help="show the stored results and end")
    options = parser.parse_args(arguments)
    if options.table:
        sys.stdout.write(markdown(load(options.out or RESULTS)))
        return EXIT_DONE
    for name in options.only:
        if name not in KEYS:
            raise UsageError(f"--only: no key {name[:80]!r}{suggestion(name, KEYS)}")
    names = [name for name in KEYS if not options.only or name in options.only]
    repetitions = options.repetitions
    if repetitions is None:
        repetitions = 1 if options.quick else 5
    if repetitions < 1:
        raise UsageError(f"--repetitions: expected at least 1, got {repetitions}")
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python experiments/benchmark.py", *words])
    about = header(command, repetitions, options.quick)
    record = {"header": about} | measure(names, repetitions, options.quick)
    out = options.out or (None if options.only or options.quick else RESULTS)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"{markdown(record)}{out or 'not written: choose a file with --out'}\n")
    return EXIT_DONE


def measure(names: Sequence[str], repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns median, min and max of each key, reasons for those left out, and raw measurements."""
    console = Console(stderr=True, highlight=False)
    left_out: dict[str, str] = {}
    repeated: list[dict[str, Any]] = [{} for _ in range(repetitions)]
    probes = dict.fromkeys(need for name in names for need in KEYS[name].needs)  # each once
    for (number, measured), probe in itertools.product(enumerate(repeated, 1), probes):
        wanted = [name for name in names if probe in KEYS[name].needs and name not in left_out]
        if not wanted:
            continue
        start = time.monotonic()
        reason = why_not(probe)
        answer = {"left_out": reason} if reason else take(probe, quick)
        if "left_out" in answer:
            left_out.update(dict.fromkeys(wanted, str(answer["left_out"])))
            continue
        measured[probe] = answer
        seconds = time.monotonic() - start
        console.print(f"repetition {number}/{repetitions}: {probe}, {seconds:.1f} s")
    record: dict[str, Any] = {"left_out": left_out, "measured": repeated}
    for name in names:
        if name not in left_out:
            values = [KEYS[name].of(measured) for measured in repeated]
            extremes = {"min": min(values), "max": max(values)}
            record[name] = {"median": statistics.median(values), **extremes}
    return record


if __name__ == "__main__":
    leave(guarded(main))
