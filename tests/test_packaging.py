import os
import pathlib
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import music_tf

ROOT = pathlib.Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LOCKED = dict(re.findall(r"^([a-z0-9.-]+)==(\S+) \\$", LOCK, re.MULTILINE))
WEIGHTS = ("manifest.json", "meta.json", "state.npz")
MAKE_TARGETS = [
    *("install", "train", "fetch-reach", "fetch-push", "fetch-slide", "fetch-pick"),
    *("tensorboard", "play", "plot", "report", "doctor", "test", "lint", "types", "check"),
    *("same", "faults", "mutants", "results", "bench"),
]


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    folder = tmp_path_factory.mktemp("egg")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return folder / "music_tf.egg-info"


@pytest.fixture(scope="module")
def requirements(metadata):
    sections = re.split(r"^\[(.*)\]$", (metadata / "requires.txt").read_text(), flags=re.MULTILINE)
    names, bodies = ["", *sections[1::2]], sections[0::2]
    return {
        name: [Requirement(line) for line in body.split("\n") if line]
        for name, body in zip(names, bodies, strict=True)
    }


def commands(target, *variables):
    """Returns what `make target` would run, without running it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", target, *variables],
        cwd=ROOT,
        env=clean,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return " ".join(done.stdout.split())


def test_the_version_is_said_once(metadata):
    assert f"\nVersion: {music_tf.__version__}\n" in (metadata / "PKG-INFO").read_text()


def test_the_console_script_leads_to_the_command_line(metadata):
    assert "music-tf = music_tf.cli:main" in (metadata / "entry_points.txt").read_text()


def test_every_package_is_shipped_and_typed(metadata):
    shipped = (metadata / "SOURCES.txt").read_text().splitlines()
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "music_tf").rglob("*.py")}
    assert sources - set(shipped) == set()
    page = {"music_tf/tools/report.css", "music_tf/tools/report.html.j2"}
    assert {"music_tf/py.typed", *page} <= set(shipped)
    assert {f"music_tf/weights/push/{name}" for name in WEIGHTS} <= set(shipped)


def test_extras_are_those_of_the_documentation(requirements):
    assert set(requirements) == {
        *("", "mpi", "dev", "bench", "box2d", "minari", "docs"),
        *("wandb", "mlflow", "notebook"),
    }


@pytest.mark.parametrize("extra", ["", "mpi", "dev"])
def test_the_lock_satisfies_every_requirement(extra, requirements):
    for wanted in requirements[extra]:
        assert wanted.specifier.contains(LOCKED[canonicalize_name(wanted.name)]), wanted


def test_every_locked_package_has_a_hash_and_none_a_source_of_its_own():
    blocks = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(LOCKED) > 50
    assert [block for block in blocks if "--hash=sha256:" not in block] == []
    assert re.findall(r"index|find-links|https?://|file:| @ ", LOCK) == []


def test_torch_is_not_locked():
    assert "torch" not in LOCKED


def test_help_lists_every_target():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    named = re.findall(r"^  make ([a-z -]+?)  ", listed.stdout, re.MULTILINE)
    assert set(" ".join(named).split()) == {"help", *MAKE_TARGETS}


@pytest.mark.parametrize("target", MAKE_TARGETS)
def test_a_target_installs_first_where_nothing_is_installed(target, tmp_path):
    planned = commands(target, f"VENV={tmp_path}/venv")
    assert "--require-hashes -r requirements.lock" in planned


def test_an_installation_is_built_again_when_the_lock_is_newer(tmp_path):
    (tmp_path / ".installed").touch()
    assert "requirements.lock" not in commands("test", f"VENV={tmp_path}")
    os.utime(tmp_path / ".installed", (0, 0))
    assert "requirements.lock" in commands("test", f"VENV={tmp_path}")


def test_make_train_learns_without_a_task_reward_on_two_ranks_for_a_limited_time():
    planned = commands("train")
    assert "music_tf launch -n 2 train ddpg_music --env-id FetchPush-v4 --seed 0" in planned
    assert re.search(r"--max-minutes \d+", planned)
    assert "--run-dir" not in planned


@pytest.mark.parametrize(
    ("target", "env_id"),
    [
        ("fetch-reach", "FetchReach-v4"),
        ("fetch-push", "FetchPush-v4"),
        ("fetch-slide", "FetchSlide-v4"),
        ("fetch-pick", "FetchPickAndPlace-v4"),
    ],
)
def test_fetch_targets_take_their_variables(target, env_id):
    assert f"launch -n 2 train ddpg_her_fast --env-id {env_id} --seed 0" in commands(target)
    planned = commands(target, "NP=4", "SEED=7", "RECIPE=sac_her", "EPOCHS=3", "MINUTES=9")
    wanted = f"launch -n 4 train sac_her --env-id {env_id} --seed 7 --epochs 3 --max-minutes 9"
    assert wanted in planned


def test_tensorboard_is_shown_to_this_machine_only():
    assert "--host localhost" in commands("tensorboard")


@pytest.mark.parametrize("verb", ["play", "plot", "report"])
def test_the_latest_run_is_shown_unless_told(verb):
    assert re.search(rf"music_tf {verb} \S*/latest", commands(verb))
    assert f"music_tf {verb} elsewhere" in commands(verb, "RUN=elsewhere")


def test_ci_runs_the_checks_on_a_clean_clone():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert "git clone" in script.read_text()
    assert " check " in script.read_text()
    subprocess.run(["bash", "-n", str(script)], check=True)
