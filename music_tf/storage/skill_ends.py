"""Reads the end positions of a run's skills that `music-tf skills` has measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from music_tf.config.settings import Config
from music_tf.files import as_object, read_json
from music_tf.networks.embedding import Ends
from music_tf.storage.run_paths import file_about

SKILLS_NAME = "skills.json"
_LARGEST = 10_000_000
_FINITE = 1e30
"""Bound of a coordinate, which single precision holds."""


def ends_of(run: Path, config: Config, counters: Mapping[str, Any]) -> Ends | str | None:
    """Returns the ends of several skills at the checkpoint `counters`, or why they are unknown."""
    skills = config.acting_skills
    if len(skills) < 2:  # noqa: PLR2004
        return None
    path = file_about(run, SKILLS_NAME)
    measure = f"measure it: music-tf skills {run}"
    try:
        stored = as_object(read_json(path, _LARGEST))
    except FileNotFoundError:
        return f"nothing has measured where its skills end\n{measure}"
    except (OSError, ValueError) as error:
        return f"{path} cannot be read: {str(error)[:200]}\n{measure}"
    now = {name: counters[name] for name in ("epoch", "env_steps")}
    measured = stored.get("checkpoint")
    if measured != now:
        came = str(measured)[:80]
        return f"{path} is of another checkpoint, expected {now}, found {came}\n{measure}"
    rows = stored.get("each")
    points = _points(rows, skills) if isinstance(rows, list) else None
    if points is None:
        return f"{path} does not hold an end of each of {len(skills)} skills\n{measure}"
    return Ends(points)


def _points(rows: list[Any], skills: tuple[int, ...]) -> np.ndarray | None:
    """Returns the ends in rows, [K, n]; None unless all skills have ends of the same size."""
    whole = [row for row in rows if isinstance(row, dict) and type(row.get("skill")) is int]
    ends = {row["skill"]: row.get("end") for row in whole}
    chosen: list[Any] = [ends.get(skill) for skill in skills]
    if not all(isinstance(end, list) for end in chosen):
        return None
    parts = [part for end in chosen for part in end]
    fits = all(type(part) in (int, float) and abs(part) < _FINITE for part in parts)
    alike = parts and len({len(end) for end in chosen}) == 1
    return np.array(chosen, np.float32) if fits and alike else None
