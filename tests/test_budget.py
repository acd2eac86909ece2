"""Package and tests stay as light as they are: see "A finding is a row" in CONTRIBUTING.md.

What grows past a figure is cut, or the figure is raised in a commit that says what for.
"""

import collections

from tests.kit.sources import ROOT

LARGEST = 600
"""Lines of a file of the package."""
PACKAGE = {
    "": 2401, "agents": 825, "cli": 1620, "config": 2411, "envs": 4759, "intrinsic": 2348,
    "losses": 870, "measures": 528, "networks": 1733, "process": 802, "reading": 1137,
    "recipes": 2542, "replay": 1186, "runs": 3438, "storage": 2852, "tools": 4305,
    "training": 5664,
}  # fmt: skip
TESTS = {
    "": 4503, "agents": 928, "cli": 1445, "config": 729, "distributed": 1033, "envs": 3081,
    "experiments": 1365, "faults": 1646, "hostile": 598, "intrinsic": 2233, "kit": 3352,
    "learning": 180, "losses": 402, "measures": 553, "mutants": 188, "networks": 709,
    "reading": 634, "recipes": 714, "replay": 1453, "runs": 3699, "same": 775, "storage": 2901,
    "tools": 3570, "training": 5273,
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
