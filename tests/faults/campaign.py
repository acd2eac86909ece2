"""Long versions of the fault battery: `make faults`, or this file with --help.

Each trial is a line of a CSV; the summary of a campaign goes to standard output.
"""

import argparse
import csv
import dataclasses
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.faults.lost import KILLS, ON_HOSTS, OTHERS, REAL, Losses  # noqa: E402
from tests.faults.trials import (  # noqa: E402
    ALLOWED_S,
    LEARNER,
    Trial,
    ask_to_stop,
    cut_link,
    disturb,
    finish_and_compare,
    judge_stop,
    kill_a_rank,
    kill_daemon,
    kill_launcher,
    kill_mpirun,
    saved_epoch,
    starting_seconds,
)
from tests.kit.hosts import Hosts  # noqa: E402
from tests.kit.jobs import ENDLESS, TINY, Job, rows_of, run, train, until  # noqa: E402
from tests.kit.slurm import Queued, Slurm  # noqa: E402

RANKS = 4
WAYS_OUT = ("sys.exit(3)", "os._exit(7)", "segfault", "memory", "killed")
PHASES = ("rollout", "update", "eval", "save", "log")
SAMPLE_S = 2.0


@dataclasses.dataclass
class Setting:
    """What a campaign runs with."""

    folder: Path
    count: int
    minutes: float
    generator: np.random.Generator

    def moments(self) -> Iterator[float]:
        """Yields seconds after the start of a job: from when Python runs to well after it trains.

        The machine may be busy: how long a start takes is measured.
        """
        latest = 2.0 * starting_seconds(self.folder / "start", RANKS)
        for _ in range(self.count):
            yield float(self.generator.uniform(0.2, latest))


def kills(setting: Setting) -> Iterator[Trial]:
    """F1: kill -9 of one of four ranks at random times."""
    path = setting.folder / "run"
    for moment_s in setting.moments():
        yield disturb(path, RANKS, moment_s, kill_a_rank(setting.generator))
    finish_and_compare(path, setting.folder / "reference", RANKS)


def exits(setting: Setting) -> Iterator[Trial]:
    """F3: a rank leaves, crashes, runs out of memory or is killed, in any phase."""
    for number in range(setting.count):
        path, mark = setting.folder / f"run_{number}", setting.folder / f"mark_{number}"
        how = WAYS_OUT[number % len(WAYS_OUT)]
        phase = str(setting.generator.choice(PHASES))
        rank = int(setting.generator.integers(RANKS))
        fault = {"phase": phase, "how": how, "rank": rank, "after": 2, "mark": str(mark)}
        with Job(train(path, *ENDLESS), path, ranks=RANKS, fault=fault) as job:
            until(mark.exists, "the fault does not strike")
            ended = job.end(limit=3 * ALLOWED_S)
        survived = ended.code != 0 and ended.seconds <= ALLOWED_S
        yield Trial(0.0, ended.code, ended.seconds, 0, survived, f"{how} in {phase}, rank {rank}")


def stops(setting: Setting) -> Iterator[Trial]:
    """F5: SIGUSR1 and Ctrl-C through launch at random times, the start included."""
    path = setting.folder / "run"
    for number, moment_s in enumerate(setting.moments()):
        signal_number = (signal.SIGUSR1, signal.SIGINT)[number % 2]
        yield judge_stop(disturb(path, RANKS, moment_s, ask_to_stop(signal_number)))
    finish_and_compare(path, setting.folder / "reference", RANKS)


def launchers(setting: Setting) -> Iterator[Trial]:
    """F7: kill -9 of mpirun and of the launcher, in turn."""
    path = setting.folder / "run"
    for number, moment_s in enumerate(setting.moments()):
        yield disturb(path, RANKS, moment_s, (kill_mpirun, kill_launcher)[number % 2])
    finish_and_compare(path, setting.folder / "reference", RANKS)


def slow_rank(setting: Setting) -> Iterator[Trial]:
    """F20: a rank that takes 0.2 s longer for every cycle, under a watchdog of 3 s."""
    path = setting.folder / "run"
    fault = {"phase": "update", "how": "slow", "rank": 1}
    ended = run(train(path, "--epochs", 20, "--hang-after", 3), path, code=None, fault=fault)
    wait = max(float(row["mpi/wait_ms_max"]) for row in rows_of(path, without=()))
    survived = ended.code == 0 and wait >= 150.0
    yield Trial(0.0, ended.code, ended.seconds, 0, survived, f"mpi/wait_ms_max {wait:.0f}")


def soak(setting: Setting) -> Iterator[Trial]:
    """F22: memory and open files of two ranks with real networks, after a third of the time."""
    path = setting.folder / "run"
    small = ("--rollouts", 2, "--cycles", 10, "--updates", 10, "--replay.capacity", 30_000)
    samples: list[tuple[float, int, int]] = []
    with Job(train(path, *ENDLESS, *small), path, real=True) as job:
        job.wait_for_epoch(1)
        end = time.monotonic() + 60.0 * setting.minutes
        while time.monotonic() < end and job.process.poll() is None:
            pids = job.rank_pids()
            samples.append((time.monotonic(), sum(map(_memory, pids)), sum(map(_files, pids))))
            time.sleep(SAMPLE_S)
        job.send(signal.SIGUSR1)
        ended = job.end()
    times, memory, files = np.array(samples[len(samples) // 3 :], np.float64).T
    growth = 3600.0 * np.polyfit(times - times[0], memory, 1)[0] / memory.mean()
    note = (
        f"{len(rows_of(path))} epochs, {memory.mean() / 2**20:.0f} MB, {100 * growth:+.1f} % an "
        f"hour, files {files.min():.0f} to {files.max():.0f}"
    )
    yield Trial(0.0, ended.code, ended.seconds, 0, growth < 0.02, note)


def lost_hosts(setting: Setting) -> Iterator[Trial]:
    """F27: one of two hosts is lost, or both are asked to stop; as root."""
    path = setting.folder / "run"
    with Hosts() as hosts:
        ways = {
            "SIGUSR1": ask_to_stop(signal.SIGUSR1),
            "a link cut": cut_link(hosts),
            "a daemon killed": kill_daemon(hosts),
        }
        for number in range(setting.count * len(ways)):
            name = list(ways)[number % len(ways)]
            moment_s = float(setting.generator.uniform(0.0, 2.0))
            trial = disturb(path, hosts.RANKS, moment_s, ways[name], hosts=hosts)
            hosts.mend(2)
            if name == "SIGUSR1":
                trial = judge_stop(trial)
            yield dataclasses.replace(trial, note="; ".join(filter(None, [name, trial.note])))
        finish_and_compare(path, setting.folder / "reference", 1, *LEARNER[2:], hosts=hosts)


def lost_ranks(setting: Setting) -> Iterator[Trial]:
    """F29: ranks of a learner with actors are killed or stopped, and others, at random moments."""
    losses = Losses(setting.folder, setting.generator)
    for number in range(setting.count):
        yield losses.lose(KILLS[number % len(KILLS)])
    for loss in OTHERS:
        yield losses.lose(loss)


def lost_actors(setting: Setting) -> Iterator[Trial]:
    """F30: an actor is killed beside a learner with real networks, three times for each recipe."""
    losses = Losses(setting.folder, setting.generator)
    for loss in REAL * 3:
        yield losses.lose(loss)


def restarted_on_hosts(setting: Setting) -> Iterator[Trial]:
    """F31: an actor of the second of two hosts is killed, or the host lost; as root."""
    with Hosts() as hosts:
        losses = Losses(setting.folder, setting.generator, hosts)
        for loss in ON_HOSTS * setting.count:
            yield losses.lose(loss)


def slurm(setting: Setting) -> Iterator[Trial]:
    """F28: a Slurm job over two nodes, with a learner and without, is stopped and loses a node."""
    with Slurm(setting.folder / "slurm") as cluster:
        for number in range(setting.count):
            learner = LEARNER if number % 2 else ()
            job = Queued(cluster, 3 if learner else 2, *TINY.split()[1:], *ENDLESS, *learner)
            yield from lost_node(job, "a learner" if learner else "equal ranks")
            reference = setting.folder / f"reference_{number}"
            finish_and_compare(job.path, reference, 1 if learner else 2, *learner[2:])


def lost_node(job: Queued, name: str) -> Iterator[Trial]:
    """Asks a job of Slurm to stop, takes a node from it, and stops it for good."""
    job.wait_for_epoch(2)
    yield requeued(job, job.ask_to_stop, 0, f"SIGUSR1, {name}")
    job.wait_for_epoch(len(rows_of(job.path)) + 1)
    yield requeued(job, job.lose_a_node, 1, f"a node lost, {name}")
    job.give_it_back()
    job.wait_for_epoch(len(rows_of(job.path)) + 1)
    job.stop()


def requeued(job: Queued, disturbance: Callable[[], None], allowed: int, note: str) -> Trial:
    """Counts the seconds until Slurm queues a job again, and the epochs lost by then."""
    start, before = time.monotonic(), job.restarts()
    disturbance()
    job.wait(lambda: job.restarts() > before)
    end_s, lost = time.monotonic() - start, len(rows_of(job.path)) - saved_epoch(job.path)
    return Trial(0.0, 0, end_s, lost, 0 <= lost <= allowed, note)


CAMPAIGNS = {
    **{"F1": kills, "F3": exits, "F5": stops, "F7": launchers, "F20": slow_rank, "F22": soak},
    **{"F27": lost_hosts, "F28": slurm, "F29": lost_ranks, "F30": lost_actors},
    **{"F31": restarted_on_hosts},
}


def main(arguments: list[str]) -> int:
    """Runs campaigns and returns 0 if everything survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", nargs="+", choices=CAMPAIGNS, default=list(CAMPAIGNS))
    parser.add_argument(
        "--count",
        type=int,
        default=20,
        help="trials of F1, F3, F5, F7, F29; of each way of F27, F31; jobs of F28",
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="length of F22")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and ranks")
    parser.add_argument("--out", type=Path, default=Path("faults.csv"), help="lines are added")
    given = parser.parse_args(arguments)
    return int(not all([_campaign(name, given) for name in given.faults]))


def _campaign(name: str, given: argparse.Namespace) -> bool:
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix=f"faults_{name}_") as folder:
        generator = np.random.default_rng(given.seed)
        setting = Setting(Path(folder), given.count, given.minutes, generator)
        end = "compared with an undisturbed run: equal"
        try:
            for trial in CAMPAIGNS[name](setting):
                trials.append(trial)
                _note(given.out, name, given.seed, trial)
        except (AssertionError, TimeoutError) as fault:
            notes = getattr(fault, "__notes__", ())
            end = "\n".join([f"{type(fault).__name__}: {str(fault)[:2000]}", *notes])
        except OSError as missing:
            sys.stdout.write(f"{name}: skipped, {missing}\n")
            return True
    survived = sum(trial.survived for trial in trials)
    sys.stdout.write(
        f"{name}: {survived} of {len(trials)} survived, ended after at most "
        f"{max((trial.end_s for trial in trials), default=0.0):.1f} s, at most "
        f"{max((trial.epochs_lost for trial in trials), default=0)} epochs lost\n"
    )
    for trial in trials:
        if not trial.survived or name in ("F20", "F22"):
            sys.stdout.write(f"  at {trial.moment_s:.2f} s, code {trial.code}: {trial.note}\n")
    if name not in ("F3", "F20", "F22"):
        sys.stdout.write(f"  {end}\n")
    sys.stdout.flush()
    return survived == len(trials) and end.endswith("equal")


def _note(path: Path, name: str, seed: int, trial: Trial) -> None:
    row = {"fault": name, "seed": seed, **dataclasses.asdict(trial)}
    row |= {"moment_s": f"{trial.moment_s:.2f}", "end_s": f"{trial.end_s:.2f}"}
    row["note"] = trial.note.partition("\n")[0]
    with path.open("a", newline="") as file:
        table = csv.DictWriter(file, list(row))
        if not file.tell():
            table.writeheader()
        table.writerow(row)


def _memory(pid: int) -> int:
    """Returns the resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
