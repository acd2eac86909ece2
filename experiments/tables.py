"""Tables and pictures from the stored results alone: `make results`.

Fills what stands in README.md and docs/*.md between

    <!-- results: NAME -->
    <!-- /results -->

where NAME is one of `TABLES`, or a study with files in experiments/results, and draws `PICTURES`
again where what they show has changed. `--check` only says what differs (exit code 1).
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from judged import (
    CONTROL,
    TOLD_APART,
    judged_differences,
    judged_table,
    recognition_table,
    skills_table,
)
from reporting import (
    control_table,
    difference_table,
    progress_table,
    steps_table,
    study_table,
    task_table,
)

from music_tf.cli.exits import guarded, leave
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_BUG, EXIT_DONE, UsageError
from music_tf.storage.metrics import METRICS
from music_tf.tools.curves import draw_curves
from music_tf.tools.curves import load as load_curve

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
IMAGES = ROOT / "docs" / "images"
ORIGINS = IMAGES / "made_from.json"
"""What each picture was drawn from, and its own content, as digests."""

_NEGATIVES_STEPS = (40_000, 64_000, 88_000, 112_000)

TABLES: Mapping[str, Callable[[Path], str]] = {
    "music_push": partial(
        control_table,
        {
            "music_push": "seed {seed}",
            "sac_music_push": "`sac_music`, seed {seed}",
            "music_push_frozen": "frozen at random, seed {seed}",
        },
    ),
    "music_pick": partial(control_table, {"music_pick": "seed {seed}"}),
    "her_fast": partial(
        task_table,
        {
            "her_fast_reach": 0.98,
            "her_fast_push": 0.95,
            "her_fast_pick": 0.9,
            "her_fast_slide": 0.6,
        },
    ),
    "her_search": partial(
        steps_table,
        {
            "search_her/push_no_music": "no MUSIC",
            "search_her/push_music_0_4": "MUSIC 0 to 4",
            "search_her/push_music_0_4_two_ranks": "MUSIC 0 to 4, two ranks",
            "search_her/push_music_5_8_two_ranks": "MUSIC 5 to 8, two ranks",
            "search_her/push_music_0_4_updates_80": "MUSIC 0 to 4, 80 updates",
            "search_her/push_music_1_4_updates_80": "MUSIC 1 to 4, 80 updates",
            "search_her/push_music_2_6_updates_80": "MUSIC 2 to 6, 80 updates",
            "search_her/push_music_added_updates_80": (
                "MUSIC added to the task until 6, 80 updates"
            ),
        },
        (32_000, 48_000, 64_000, 80_000, 112_000),
    ),
    "fast_means_steps": partial(progress_table, "fast_means", (64_000, 80_000, 96_000, 112_000)),
    "negatives_control": partial(
        progress_table, "negatives", _NEGATIVES_STEPS, metric="eval/object_comotion_m"
    ),
    "negatives_paid": partial(
        progress_table, "negatives", _NEGATIVES_STEPS, metric="reward/music_mean"
    ),
    "negatives_differences": partial(difference_table, "negatives", "swap"),
    "transfer_differences": partial(difference_table, "transfer", "own"),
    "transfer_paid": partial(
        progress_table,
        "transfer",
        (88_000, 144_000, 168_000, 224_000),
        metric="reward/music_mean",
    ),
    "mi_matters_differences": partial(difference_table, "mi_matters", "music"),
    "mi_matters_control": partial(judged_table, "mi_matters", CONTROL),
    "mi_matters_control_differences": partial(judged_differences, "mi_matters", "music", CONTROL),
    "skills_control": partial(judged_table, "skills", CONTROL),
    "skills_toys_found": partial(recognition_table, "skills_toys"),
    "skills_found": partial(recognition_table, "skills"),
    "skills_found_differences": partial(judged_differences, "skills", "diayn", TOLD_APART),
    "skills_control_differences": partial(judged_differences, "skills", "diayn", CONTROL),
    "skills_each": partial(skills_table, "skills"),
    "task_value_steps": partial(
        progress_table, "task_value", (72_000, 104_000, 144_000, 208_000, 272_000)
    ),
    "task_value_differences": partial(difference_table, "task_value", "her"),
}
_BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- /results -->)", re.DOTALL)


_TASKS = {"push": "FetchPush-v4", "pick": "FetchPickAndPlace-v4"}


class Picture(NamedTuple):
    """What a picture shows."""

    files: Sequence[str]
    """Patterns under experiments/results."""
    metrics: Sequence[str]
    axis: str
    each: bool


PICTURES = {
    "push_success.png": Picture(
        [
            f"{name}/*.csv"
            for name in ("her_fast_push", "her_push_two_ranks", "sb3_ddpg_push", "sb3_sac_push")
        ],
        ["eval/success_rate"],
        "minutes",
        each=False,
    ),
    "ranks_push.png": Picture(
        ["ranks_push/*.csv"], ["eval/object_moved_rate"], "minutes", each=False
    ),
    **{
        f"task_value_{task}_{axis}.png": Picture(
            [f"task_value/*_{env_id}_seed*.csv"], ["eval/success_rate"], axis, each=False
        )
        for task, env_id in _TASKS.items()
        for axis in ("steps", "minutes")
    },
    **{
        f"mi_matters_{task}.png": Picture(
            [f"mi_matters/*_{env_id}_seed*.csv"],
            ["eval/object_comotion_m", "eval/object_on_support_rate"],
            "steps",
            each=False,
        )
        for task, env_id in _TASKS.items()
    },
    "search_push.png": Picture(
        ["search/push_*.csv"],
        ["eval/object_on_support_rate", "eval/object_comotion_m"],
        "steps",
        each=True,
    ),
    "search_pick.png": Picture(
        ["search/pick_*.csv"],
        ["eval/object_on_support_rate", "eval/object_comotion_m", "eval/object_lift_rate"],
        "steps",
        each=True,
    ),
}


def pages() -> list[Path]:
    """Returns the pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def studies_in(results: Path) -> set[str]:
    """Returns the studies with stored results."""
    return {path.parent.name for path in results.glob("*/*_seed*.csv")}


def filled(text: str, results: Path = RESULTS) -> str:
    """Returns a page with the tables that its markers name.

    Raises:
        UsageError: A marker names no table, or a stored result is missing or damaged.
    """
    return _BLOCK.sub(lambda block: f"{block[1]}{_table(block[2], results)}\n{block[3]}", text)


def outdated_pictures() -> list[str]:
    """Returns the pictures whose results, or whose own content, are others than noted."""
    noted = json.loads(ORIGINS.read_text(encoding="utf-8")) if ORIGINS.exists() else {}
    return [name for name in PICTURES if noted.get(name) != _origin(name)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes what has changed, or only says it, and returns the exit code.

    Raises:
        UsageError: A marker names no table, or a stored result is missing or damaged.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    given = parser.parse_args(arguments)
    changed = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            changed[page] = filled(text)
    pictures = outdated_pictures()
    for path in [*changed, *(IMAGES / name for name in pictures)]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    if given.check:
        return EXIT_BUG if changed or pictures else EXIT_DONE
    for page, text in changed.items():
        page.write_text(text, encoding="utf-8")
    for name in pictures:
        _draw(name)
    if pictures:
        origins = {name: _origin(name) for name in PICTURES}
        ORIGINS.write_text(json.dumps(origins, indent=1) + "\n", encoding="utf-8")
    return EXIT_DONE


def _table(name: str, results: Path) -> str:
    if name in TABLES:
        return TABLES[name](results)
    studies = studies_in(results)
    if name not in studies:
        known = [*TABLES, *studies]
        raise UsageError(f"results: no table {name}{suggestion(name, known)}")
    return study_table(name, results)


def _files(picture: Picture) -> list[Path]:
    return [path for pattern in picture.files for path in sorted(RESULTS.glob(pattern))]


def _draw(name: str) -> None:
    picture = PICTURES[name]
    curves = [load_curve(path) for path in _files(picture)]
    draw_curves(curves, picture.metrics, picture.axis, IMAGES / name, picture.each)


def _origin(name: str) -> dict[str, Any]:
    """Returns digests of what a picture shows, and of the picture."""
    picture = PICTURES[name]
    titles = [METRICS[metric] for metric in picture.metrics]
    shown = hashlib.sha256(repr((picture, titles)).encode())
    for path in _files(picture):
        shown.update(path.read_bytes())
    path = IMAGES / name
    drawn = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return {"results": shown.hexdigest(), "picture": drawn}


if __name__ == "__main__":
    leave(guarded(main))
