"""Jobs that lose ranks or a host at a random moment, each beside a run that nobody disturbed."""

import contextlib
import dataclasses
import json
import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.faults.trials import ALLOWED_ON_HOSTS_S, Trial, cut_link, kill_daemon, saved_epoch
from tests.kit import jobs
from tests.kit.hosts import Hosts

WORDS = f"{jobs.TINY} --cycles 3 --epochs 12 --hang-after 10"
GOES_ON_S = 2.0
RESTARTED_S = 60.0
ACTORS, FAR, CUT, DAEMON = "all actors", "an actor of another host", "a link", "a daemon"


@dataclasses.dataclass(frozen=True)
class Loss:
    """What is struck in which job, and how that is to end."""

    name: str
    words: str = f"{WORDS} --workers 6 --learners 1 --lag 1"
    ranks: int = 4
    struck: int | str = 1
    """So many actors; or all, a rank by number, or a part of the second host."""
    sent: int = signal.SIGKILL
    apart_s: float = 0.0
    restarts: int = 0
    code: int = jobs.DONE
    then: int = 0
    """A signal for the launcher, soon afterwards."""
    allowed_s: float = GOES_ON_S
    """For which a learner waits in vain, or until an epoch ends after a restart."""
    real: bool = False

    @property
    def learners(self) -> tuple[str, ...]:
        return tuple(re.findall("--learners|(?<=--learners )[0-9]", self.words))


ONE, TWO = f"{WORDS} --workers 6 --learners 1 --lag", f"{WORDS} --workers 8 --learners 2 --lag"
FOUR = f"{WORDS} --workers 8 --learners 1 --lag 1"
KILLS = (
    Loss("an actor, lag 0", f"{ONE} 0"),
    Loss("an actor, lag 1"),
    Loss("an actor of two learners, lag 0", f"{TWO} 0", 6),
    Loss("an actor of two learners, lag 1", f"{TWO} 1", 6),
)
ENDS = {"code": jobs.HANGING, "allowed_s": 10.0}
RESTARTS = {"restarts": 1, "allowed_s": RESTARTED_S}
OTHERS = (
    Loss("two of four actors", FOUR, 5, struck=2, apart_s=1.0),
    Loss("two of four actors at once", FOUR, 5, struck=2),
    Loss("an actor stopped", sent=signal.SIGSTOP, allowed_s=10.0 + GOES_ON_S),
    Loss("an actor, then Ctrl-C", then=signal.SIGINT, code=jobs.STOPPED),
    Loss("an actor, then SIGTERM", then=signal.SIGTERM, code=jobs.STOPPED),
    *(
        Loss(name + told, words, ranks, struck, **how)
        for told, how in ((", 86", ENDS), (", --restarts 1", RESTARTS))
        for name, words, ranks, struck in (
            ("all actors", f"{ONE} 1", 4, ACTORS),
            ("the learner", f"{ONE} 1", 4, "0"),
            ("one of two learners", f"{TWO} 1", 6, "1"),
            ("one of two equal ranks", f"{WORDS} --workers 4", 2, "1"),
        )
    ),
)
ON_HOSTS = (
    Loss(FAR, ranks=Hosts.RANKS, struck=FAR),
    *(Loss(f"{part}, --restarts 1", ranks=3, struck=part, **RESTARTS) for part in (CUT, DAEMON)),
)
PUSH = (
    "--env-id FetchPush-v4 --workers 6 --rollouts 1 --cycles 3 --updates 4 "
    "--evaluation.episodes 6 --agent.hidden-sizes 32 32 --learners 1 --lag 1 --threads 1"
)
REAL = tuple(  # the learner may be compiling for long
    Loss(
        f"an actor, {words.split()[0]}", f"train {words} {PUSH} {more}", allowed_s=300.0, real=True
    )
    for words, more in (
        ("ddpg_music", "--epochs 4"),
        ("sac_diayn", "--epochs 4"),
        (
            "sac_disk --collect.steps none --skills 2 --incremental.epochs 2",
            """--env.changes '[{}, {"at": {"skill": 1}, "gravity": 0.8}]'""",
        ),
        (
            "sac_pearl",
            "--env-id music_tf/PointRobot-v0 --agent.meta-batch 6 --tasks.train 12 --epochs 4",
        ),
        ("sac_metra", "--epochs 4 --init-from none"),
    )
)


class Losses:
    """Disturbs jobs, and knows how each would have ended."""

    def __init__(
        self, folder: Path, generator: np.random.Generator, hosts: Hosts | None = None
    ) -> None:
        self._folder, self._generator, self._hosts = folder, generator, hosts
        self._whole: dict[tuple[str, int], tuple[Path, float]] = {}
        self._count = 0

    def lose(self, loss: Loss) -> Trial:
        """Strikes a job at a random moment; what ends early is resumed; all bits are compared."""
        whole, seconds = self._undisturbed(loss)
        self._count += 1
        path = self._folder / f"run_{self._count}"
        latest = 1.0 if loss in KILLS else 0.6  # others are to be in time
        moment_s = self._generator.uniform(0.0, latest * seconds)
        with self._begun(loss, path) as job:
            time.sleep(moment_s)
            start, epochs = time.monotonic(), len(jobs.rows_of(path))
            self._strike(job, loss)
            told = path.with_suffix(".err").read_text
            jobs.until(lambda: job.over() or re.search("lost|killed", told()), "no loss is told")
            if loss.restarts:
                jobs.until(lambda: job.over() or len(jobs.rows_of(path)) > epochs + 1, "no restart")
            is_told = re.search("lost|killed", told())  # else the job was about to end
            told_s = time.monotonic() - start if is_told else 0.0
            late = "" if is_told else "nobody missed it"
            if loss.then:
                job.send(loss.then)
            ended = job.end()
        if self._hosts:
            self._hosts.mend(2)
        if not (loss.restarts or ended.code):
            losses = json.loads((path / "summary.json").read_text())["losses"]
            told_s = max((each["seconds"] for each in losses), default=0.0)
        wrong = {
            f"code {ended.code}": ended.code not in (loss.code, jobs.DONE),
            f"after {told_s:.1f} s": told_s > loss.allowed_s,
            f"ends after {ended.seconds:.1f} s": ended.code and ended.seconds > ALLOWED_ON_HOSTS_S,
            "traceback": "Traceback" in ended.err,
        }
        lost = len(jobs.rows_of(path)) - saved_epoch(path)
        faults = [text for text, is_so in wrong.items() if is_so]
        note = "; ".join(filter(None, [loss.name, late, *faults]))
        if faults:
            return Trial(moment_s, ended.code, told_s, lost, False, f"{note}\n{ended.err[-2000:]}")
        if ended.code:
            jobs.resume(path, *loss.learners, ranks=loss.ranks, real=loss.real)
        jobs.assert_same_bits(path, whole)
        return Trial(moment_s, ended.code, told_s, lost, True, note)

    def _undisturbed(self, loss: Loss) -> tuple[Path, float]:
        """Returns a run, and its seconds from its first lines to its end."""
        key = loss.words, loss.ranks
        if key not in self._whole:
            path = self._folder / f"whole_{len(self._whole)}"
            with self._begun(loss, path) as job:
                start = time.monotonic()
                job.end(code=jobs.DONE)
            self._whole[key] = path, time.monotonic() - start
        return self._whole[key]

    @contextlib.contextmanager
    def _begun(self, loss: Loss, path: Path) -> Iterator[jobs.Job]:
        """A job that has told its first lines."""
        words = [*shlex.split(loss.words), "--run-dir", str(path)]
        how = restarts = ("--restarts", str(loss.restarts))
        if self._hosts:
            self._hosts.listed, how = (*Hosts().listed, *restarts), self._hosts
        with jobs.Job(words, path, loss.ranks, how, real=loss.real) as job:
            told = path.with_suffix(".out").read_text
            jobs.until(lambda: job.over() or "run directory:" in told(), f"{loss.name}: no start")
            yield job

    def _strike(self, job: jobs.Job, loss: Loss) -> None:
        if loss.struck in (CUT, DAEMON):
            {CUT: cut_link, DAEMON: kill_daemon}[str(loss.struck)](self._hosts)(job)
            return
        pids = {_rank_of(pid): pid for pid in job.rank_pids()}
        ranks = [rank for rank in sorted(pids) if rank >= int((0, *loss.learners)[-1])]
        if isinstance(loss.struck, int):
            ranks = self._generator.permutation(ranks)[: loss.struck].tolist()
        elif loss.struck != ACTORS:
            ranks = [ranks[-1] if loss.struck == FAR else int(loss.struck)]
        for rank in ranks:
            with contextlib.suppress(KeyError, ProcessLookupError):  # it has ended by itself
                os.kill(pids[rank], loss.sent)
            time.sleep(self._generator.uniform(0.0, loss.apart_s))


def _rank_of(pid: int) -> int:
    words = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    return int(
        next(word for word in words if word.startswith("OMPI_COMM_WORLD_RANK=")).split("=")[1]
    )
