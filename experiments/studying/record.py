"""What is kept of a study: notes beside each run while it goes on, and its stored result."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_tf.config.stored import CONFIG_NAME, stored_start
from music_tf.errors import EnvironmentFault, MusicError, UsageError
from music_tf.process import available_cores, run_command
from music_tf.storage.files import replace_file
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import BEFORE, FINAL, StoredResult, header, read_result
from music_tf.storage.run_directory import EVALUATION_NAME, SUMMARY_NAME, processor
from music_tf.storage.start import taken_before
from studying.plan import Run

JUDGED = ("control", "skills")
"""What `evaluate --full` adds to the evaluation that ends a run."""
_PACKAGES = ("tensorflow", "mujoco", "gymnasium-robotics")
_ROOT = Path(__file__).resolve().parents[2]
_CODE = ("music_tf", "experiments", ":(exclude)experiments/results")


class Session(NamedTuple):
    """One stretch of a run."""

    code: str
    """The commit, and whether the code differed from it."""
    wall_s: float | None
    """From start to end; None where the runner did not live to see the end."""


def code_version() -> str:
    """Returns the commit that is checked out, and whether the code differs from it."""
    git = ["git", "-C", str(_ROOT)]
    commit = run_command([*git, "rev-parse", "HEAD"], seconds=30.0)
    if not (_ROOT / ".git").exists() or not commit.ok:
        return "commit unknown"
    changes = run_command([*git, "status", "--porcelain", "--", *_CODE], seconds=60.0)
    changed = " with uncommitted changes" if changes.output.strip() else ""
    return f"commit {commit.output.strip()}{changed}"


def note_start(run: Run) -> float:
    """Notes that a stretch of a run begins, and returns the time for `note_end`."""
    _write_sessions(run, [*_sessions(run), Session(code_version(), None)])
    return time.monotonic()


def note_end(run: Run, started: float) -> None:
    """Notes how long the latest stretch took."""
    sessions = _sessions(run)
    last = sessions[-1]._replace(wall_s=time.monotonic() - started)
    _write_sessions(run, [*sessions[:-1], last])


def forget(run: Run) -> None:
    """Removes the notes of a run that begins anew."""
    _notes(run).unlink(missing_ok=True)


def result_file(run: Run, results: Path) -> Path:
    """Returns where the stored result of a run lies."""
    return results / run.study / f"{run.name}.csv"


def stored(run: Run, results: Path) -> StoredResult | None:
    """Returns the result of a run, or None where there is none.

    Raises:
        UsageError: The file holds the result of another command.
    """
    path = result_file(run, results)
    if not path.exists():
        return None
    result = read_result(path)
    if result.command != run.command:
        raise UsageError(
            f"{path}: holds the result of another command\nit has:    {result.command}\n"
            f"the study: {run.command}\nremove the file to go on with that run, or to train it anew"
        )
    return result


def store(run: Run, results: Path) -> Path:
    """Writes the result of a run that has ended, and returns the file.

    Raises:
        MusicError: The run left no summary, it went further than the study says, or the file
            cannot be written.
    """
    directory = run.directory
    path = result_file(run, results)
    try:
        summary = json.loads((directory / SUMMARY_NAME).read_bytes())
        metrics = (directory / CSV_NAME).read_text(encoding="utf-8")
        versions = json.loads((directory / CONFIG_NAME).read_bytes())["versions"]
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentFault(f"{directory}: the run left no whole record ({error})") from error
    if summary.get("epochs", 0) > run.epochs:
        raise EnvironmentFault(
            f"{directory}: was trained for {summary['epochs']} epochs, the study has {run.epochs}\n"
            "remove the directory to train it anew"
        )
    details = _details(run, summary) | _judgement(run)
    comments = header(run.command, _made_with(run, versions), details)
    _write(path, (comments + metrics).encode())
    return path


def last_lines(run: Run, count: int) -> list[str]:
    """Returns the end of what a run printed."""
    try:
        text = run.log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.rstrip()[:200] for line in text.splitlines() if line.strip()][-count:]


def progress(run: Run) -> dict[str, float]:
    """Returns the latest value of each metric of a run that may be going on."""
    try:
        columns = read_result(run.directory / CSV_NAME).columns
    except MusicError:
        return {}
    return {name: float(values[-1]) for name, values in columns.items()}


def _made_with(run: Run, versions: dict[str, str | None]) -> str:
    code = list(dict.fromkeys(session.code for session in _sessions(run)))
    known = [f"{name} {versions[name]}" for name in _PACKAGES if versions.get(name)]
    return ", ".join(
        [*code, *known, f"{available_cores()} cores of {processor()}, one of them used"]
    )


def _judgement(run: Run) -> dict[str, Any]:
    """Returns what `evaluate --full` found of a run.

    Raises:
        EnvironmentFault: It left nothing, or something else.
    """
    path = run.directory / EVALUATION_NAME
    try:
        judged = json.loads(path.read_bytes())
        return {name: judged[name] for name in JUDGED}
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentFault(f"{path}: the evaluation left no whole record ({error})") from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written ({error.strerror})") from error


def _details(run: Run, summary: dict[str, Any]) -> dict[str, Any]:
    stretches = [session.wall_s for session in _sessions(run)]
    known = sum(seconds for seconds in stretches if seconds is not None)
    details: dict[str, Any] = {"wall_s": round(known, 1)}
    if None in stretches:
        details["wall_s_not_counted"] = "a stretch whose end was not seen"
    if run.source is not None:
        details[BEFORE] = taken_before(stored_start(run.directory), run.directory)
    return details | {FINAL: summary["evaluation"]}


def _notes(run: Run) -> Path:
    return run.directory.with_suffix(".sessions.json")


def _sessions(run: Run) -> list[Session]:
    try:
        return [Session(*entry) for entry in json.loads(_notes(run).read_bytes())]
    except FileNotFoundError:
        return []


def _write_sessions(run: Run, sessions: Sequence[Session]) -> None:
    replace_file(_notes(run), json.dumps(sessions).encode())
