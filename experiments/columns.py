"""The lists of docs/metrics.md, from what the code declares, and that of all studies."""

from collections.abc import Mapping

from experiments.stored import RESULTS, STUDIES, planned
from music_tf import recipes
from music_tf.config.names import suggestion
from music_tf.config.terms import ENTROPY, reward_metrics
from music_tf.errors import UsageError
from music_tf.storage.metrics import JUDGED, SECTIONS


def list_of(name: str) -> str:
    """Returns a list by its name.

    `metrics` has the columns of metrics.csv, `studies` the question of each study; others have the
    measures of a part of `JUDGED`.
    """
    lists = {"metrics": _sections(), **{part: _list(JUDGED[part]) for part in JUDGED}}
    lists["studies"] = _studies()
    if name not in lists:
        raise UsageError(f"there is no list {name!r}{suggestion(name, lists)}")
    return lists[name]


def _sections() -> str:
    """Returns a list for each section; metrics that every reward has are listed once."""
    alike = {name for term in (*recipes.terms(), ENTROPY) for name in reward_metrics(term)}
    shown = {
        title: {name: meaning for name, meaning in metrics.items() if name not in alike}
        for title, metrics in SECTIONS.items()
    }
    shown["each reward NAME that counts, and of the entropy"] = reward_metrics("NAME")
    shown = {title: metrics for title, metrics in shown.items() if metrics}
    return "\n\n".join(f"### Columns of {title}\n\n{_list(part)}" for title, part in shown.items())


def _list(metrics: Mapping[str, str]) -> str:
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in metrics.items())


def _studies() -> str:
    """Returns a row for each study, with a link to its README if there are results."""
    names = sorted(path.stem for path in STUDIES.glob("*.py"))
    links = {name: f"[{name}]({name}/README.md)" for name in names if (RESULTS / name).is_dir()}
    rows = [
        f"| {links.get(name, f'{name} (no results yet)')} | {planned(name).question} |"
        for name in names
    ]
    return "\n".join(["| study | question |", "|---|---|", *rows])
