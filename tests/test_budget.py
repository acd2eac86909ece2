"""Package and tests stay as light as they are: see "A finding is a row" in CONTRIBUTING.md.

What grows past a figure is cut, or the figure is raised in a commit that says what for.
"""

import collections

from tests.kit.sources import ROOT

LARGEST = 600
"""Lines of a file of the package."""
PACKAGE = {
    "": 2384, "agents": 842, "cli": 1636, "config": 2418, "envs": 4819, "intrinsic": 2366,
    "losses": 873, "measures": 540, "networks": 1729, "process": 801, "reading": 1127,
    "recipes": 2562, "replay": 1217, "runs": 3471, "storage": 2869, "tools": 4323,
    "training": 5704,
}  # fmt: skip
TESTS = {
    "": 4523, "agents": 927, "cli": 1461, "config": 726, "distributed": 1052, "envs": 3071,
    "experiments": 1364, "faults": 1673, "hostile": 599, "intrinsic": 2233, "kit": 3318,
    "learning": 180, "losses": 390, "measures": 554, "mutants": 188, "networks": 698,
    "reading": 632, "recipes": 723, "replay": 1414, "runs": 3693, "same": 775, "storage": 2856,
    "tools": 3550, "training": 5298,
}  # fmt: skip
"""Lines of Python by folder; files beside the folders are under `""`."""


def lines_of(top):
    """Lines by folder, and by file."""
    folders, files = collections.Counter(), {}
    for path in sorted((ROOT / top).rglob("*.py")):
        inner = path.relative_to(ROOT / top)
        files[f"{top}/{inner}"] = count = path.read_text(encoding="utf-8").count("\n")
        folders[inner.parts[0] if len(inner.parts) > 1 else ""] += count
    return folders, files


def growth(top, budget):
    """What is over the sum of a budget, by folder, most first; nothing where none is."""
    folders, _ = lines_of(top)
    if (over := folders.total() - sum(budget.values())) <= 0:
        return ""
    more = (folders - collections.Counter(budget)).most_common()
    named = ", ".join(f"{top}/{name} +{count}" for name, count in more)
    return f"{top}: {over} lines over {sum(budget.values())}: {named}\nfigures of today: {folders}"


def test_no_folder_grows_unless_another_shrinks():
    assert (growth("music_tf", PACKAGE), growth("tests", TESTS)) == ("", "")


def test_no_file_of_the_package_is_too_long_to_be_read_at_once():
    _, files = lines_of("music_tf")
    assert {name: count for name, count in files.items() if count > LARGEST} == {}
