"""Package and tests stay as light as they are: see "A finding is a row" in CONTRIBUTING.md.

What grows past a figure is cut, or the figure is raised in a commit that says what for.
"""

import collections

from tests.kit.sources import ROOT

LARGEST = 600
"""Lines of a file of the package."""
PACKAGE = {
    "": 2271, "agents": 828, "cli": 1444, "config": 2364, "envs": 4923, "intrinsic": 2419,
    "losses": 871, "measures": 543, "networks": 1747, "process": 769, "reading": 1174,
    "recipes": 2792, "replay": 1168, "runs": 3480, "storage": 2928, "tools": 4358,
    "training": 5313,
}  # fmt: skip
TESTS = {
    "": 5520, "agents": 1063, "cli": 1471, "config": 755, "distributed": 1057, "envs": 3467,
    "experiments": 1795, "faults": 1503, "hostile": 658, "intrinsic": 2613, "kit": 3363,
    "learning": 190, "losses": 863, "measures": 642, "mutants": 213, "networks": 837,
    "reading": 833, "recipes": 719, "replay": 1293, "runs": 4102, "same": 796, "storage": 3217,
    "tools": 3987, "training": 5579,
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


def test_what_grew_is_named():
    folders, _ = lines_of("music_tf")
    told = growth("music_tf", folders - collections.Counter(losses=5))
    assert told.startswith(f"music_tf: 5 lines over {folders.total() - 5}: music_tf/losses +5\n")


def test_no_file_of_the_package_is_too_long_to_be_read_at_once():
    _, files = lines_of("music_tf")
    assert {name: count for name, count in files.items() if count > LARGEST} == {}
