"""Data flows one way: a module imports only from stages above its own in this list."""

import sys

from tests.kit.cases import cases
from tests.kit.sources import ROOT, imported_modules, imported_packages

PACKAGE = ROOT / "music_tf"
STAGES = [
    {"errors", "files", "hints", "randomness", "types"},
    {"config", "distributions", "gate", "process"},
    {"conditions", "distributed", "envs", "losses", "networks", "recipes", "replay"},
    {"measures", "normalizer", "reading", "rollout"},
    {"agents", "intrinsic", "storage"},
    {"training"},
    {"runs"},
    {"tools"},
    {"api", "cli"},
    {"__init__", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(STAGES) for name in names}
SOURCES = sorted(PACKAGE.rglob("*.py"))
STANDARD_LIBRARY_ONLY = (
    *("errors", "files", "hints", "process", "config", "recipes", "reading", "tools/doctor"),
)


def named(path):
    return str(path.relative_to(ROOT))


def stage_of(dotted):  # the stage of a name inside the package, or None for another package's
    first, *inner = dotted.split(".")
    if first != "music_tf":
        return None
    name = inner[0] if inner else "__init__"
    if name in RANK:
        return name
    if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists():
        raise LookupError(f"music_tf.{name} has no place in STAGES yet")
    return "__init__"


def own_stage(path):
    return stage_of(".".join(("music_tf", *path.relative_to(PACKAGE).with_suffix("").parts)))


def wrong_imports(stage, source):
    stages = {name: stage_of(name) for name in imported_modules(source)}
    above = {used for used in stages.values() if used and RANK[used] >= RANK[stage]}
    return [name for name, used in stages.items() if used in above - {stage}]


def test_imports_point_upstream():
    wrong = {named(path): wrong_imports(own_stage(path), path.read_text()) for path in SOURCES}
    assert {name: imports for name, imports in wrong.items() if imports} == {}


@cases(
    ("stage", "source"),
    ("replay", "from music_tf.agents.ddpg import Ddpg"),
    ("replay", "from music_tf import agents"),
    ("replay", "def lazily():\n    from music_tf.agents import ddpg"),
    ("config", "from music_tf.reading.command import parse_train"),
    ("runs", "def lazily():\n    from music_tf.tools import judging"),
)
def test_an_import_from_downstream_is_found(stage, source):
    assert len(wrong_imports(stage, source)) == 1


@cases(
    ("package", "owner"),
    ("mpi4py", "music_tf/distributed.py"),
    ("tensorflow_probability", "music_tf/distributions.py"),
    ("gymnasium", "music_tf/envs/"),
    ("mujoco", "music_tf/envs/"),
)
def test_a_library_stays_behind_its_module(package, owner):
    users = [named(path) for path in SOURCES if package in imported_packages(path.read_text())]
    assert users
    assert [user for user in users if not user.startswith(owner)] == []


def test_start_up_needs_the_standard_library_and_tyro_only():
    allowed = sys.stdlib_module_names | {"music_tf", "tyro"}
    early = {
        named(path): imported_packages(path.read_text())
        for path in SOURCES
        if named(path).removeprefix("music_tf/").startswith(STANDARD_LIBRARY_ONLY)
    }
    assert len(early) > 20
    assert {name: needed - allowed for name, needed in early.items() if needed - allowed} == {}
