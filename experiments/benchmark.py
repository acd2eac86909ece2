"""Measures this machine's throughput, and how far from its limits training runs.

Every number is a ratio to something measured within the same repetition, or a time; a
repetition takes all measurements one after the other, each in a process of its own. Median,
lowest and highest over the repetitions go to a table and to a JSON file. Use a machine that
does nothing else, and at least 5 repetitions for numbers that you want to show.

Stable-Baselines3 is compared with where it is installed: pip install stable-baselines3 torch
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.keys import KEYS, measurements, summary
from benchmarks.report import header, load, markdown, rich_table, spread_warning
from rich.console import Console

from music_tf.cli.exits import guarded, leave
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, UsageError

RESULTS = Path(__file__).resolve().parent / "results" / "benchmark.json"
_EXAMPLES = """\
examples:
  make bench                                            everything, some minutes
  python experiments/benchmark.py --only env_fetch_vs_gymnasium env_fetch_vs_mjstep
  python experiments/benchmark.py --quick               does it run? the numbers mean nothing
  python experiments/benchmark.py --table               stored results as markdown

keys:
"""


def main() -> int:
    """Measures or shows what was measured, and returns 0.

    Raises:
        UsageError: Unknown key, bad number, or no stored results.
        EnvironmentFault: A measurement failed.
    """
    given = _arguments()
    complete = not (given.only or given.quick)
    if given.table:
        sys.stdout.write(markdown(load(given.out or RESULTS)))
        return EXIT_DONE
    names = _chosen(given.only)
    repetitions = given.repetitions
    if repetitions is None:
        repetitions = 1 if given.quick else 5
    if repetitions < 1:
        raise UsageError(f"--repetitions: expected at least 1, got {repetitions}")
    about = header(" ".join(["python", *sys.argv]), repetitions, given.quick)
    record = {"header": about} | measure(names, repetitions, given.quick)
    out = given.out or (RESULTS if complete else None)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    Console().print(rich_table(record))
    if warning := spread_warning(record):
        Console(stderr=True, soft_wrap=True).print(warning, highlight=False)
    sys.stdout.write(f"{out or 'not written: choose a file with --out'}\n")
    return EXIT_DONE


def measure(names: Sequence[str], repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns median, min and max of each key, reasons for those left out, and raw measurements.

    Raises:
        EnvironmentFault: A measurement failed.
    """
    left_out: dict[str, str] = {}
    repeated: list[dict[str, Any]] = []
    for number in range(1, repetitions + 1):
        repeated.append(_repetition(names, f"{number}/{repetitions}", quick, left_out))
    values = {
        name: summary([KEYS[name].value(measured) for measured in repeated])
        for name in names
        if name not in left_out
    }
    return values | {"left_out": left_out, "measured": repeated}


def _repetition(
    names: Sequence[str], label: str, quick: bool, left_out: dict[str, str]
) -> dict[str, Mapping[str, Any]]:
    """Takes every measurement once, and notes which keys cannot be had."""
    console = Console(stderr=True, highlight=False)
    measured: dict[str, Mapping[str, Any]] = {}
    for probe in measurements(names):
        wanted = [name for name in names if probe in KEYS[name].needs and name not in left_out]
        if not wanted:
            continue
        start = time.monotonic()
        reason = processes.why_not(probe)
        found = {"left_out": reason} if reason else processes.take(probe, quick)
        if "left_out" in found:
            left_out.update(dict.fromkeys(wanted, str(found["left_out"])))
            continue
        measured[probe] = found
        console.print(f"repetition {label}: {probe}, {time.monotonic() - start:.1f} s")
    return measured


def _chosen(only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in KEYS:
            raise UsageError(f"--only: no key {name[:80]!r}{suggestion(name, KEYS)}")
    return [name for name in KEYS if not only or name in only]


def _arguments() -> argparse.Namespace:
    width = max(map(len, KEYS))
    listed = "\n".join(f"  {name:{width}}  {key.meaning}" for name, key in KEYS.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=_EXAMPLES + listed,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--repetitions", type=int, metavar="N", help="how often (default 5; 1 with --quick)"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="KEY", help="only these keys (all are below)"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all runs")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write (default experiments/results/benchmark.json for all keys at full "
        "size; else nowhere)",
    )
    parser.add_argument(
        "--table", action="store_true", help="print the stored results as markdown and end"
    )
    return parser.parse_args()


if __name__ == "__main__":
    leave(guarded(main))
