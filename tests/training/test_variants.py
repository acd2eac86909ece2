"""Each recipe that builds on MUSIC, from the command line to its summary, on a toy."""

import json

import numpy as np
import pytest

from music_tf import recipes
from music_tf.reading.command import as_typed, parse_train
from music_tf.runs.warm_start import read_parts
from music_tf.storage.run_paths import find_source
from tests.kit.saved_run import load_weights
from tests.kit.sessions import run_session
from tests.kit.small import OPTIONS

pytestmark = pytest.mark.thorough

WORDS = ("--epochs", "1", *as_typed(OPTIONS))
OF_TERMS = {
    "music": ("--music.hidden-size", "16", "--music.trajectories", "8"),
    "skill": ("--skill.hidden-sizes", "8"),
}
STARTED = [name for name in recipes.names() if getattr(recipes.resolve(name).start, "recipe", "")]
CONTROLS = {
    "ddpg_music_frozen": "music",
    "ddpg_joint_motion": "joint_motion",
    "ddpg_random_reward": "random_reward",
}
"""Recipes, and what each is paid."""


def train(path, recipe, *words):
    """Trains as `music-tf train RECIPE --run-dir PATH ...` does, but for its exit; a short run."""
    words += tuple(
        word for term in recipes.resolve(recipe).rewards for word in OF_TERMS.get(term, ())
    )
    command = parse_train([recipe, *WORDS, "--run-dir", str(path), *words])
    warm_start = None
    if command.start:
        warm_start = read_parts(
            command.config, find_source(command.start.path), command.start.parts
        )
    run_session(command, warm_start)
    return load_weights(path / "checkpoints")[0]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):  # a run and its weights for each recipe that others start from
    folder = tmp_path_factory.mktemp("sources")
    found = {}
    for recipe in {recipes.resolve(name).start.recipe for name in STARTED}:
        found[recipe] = (folder / recipe, train(folder / recipe, recipe))
    return found


def moved(before, after, part):
    names = [name for name in after if name.startswith(f"parameters/{part}/")]
    assert names
    return any((after[name] != before[name]).any() for name in names)


@pytest.mark.parametrize("recipe", STARTED)
def test_a_recipe_learns_from_where_another_run_ended(recipe, sources, tmp_path):
    needed = recipes.resolve(recipe).start
    source, before = sources[needed.recipe]
    after = train(tmp_path / "run", recipe, "--init-from", str(source))
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["updates"], summary["env_steps"]) == (6, 240)
    assert ("eval/success_rate" in summary["metrics"]) == (recipe != "sac_music_diayn")
    first = load_weights(tmp_path / "run/checkpoints/epoch_000000")[0]
    for part in {"actor", "statistics"} & set(needed.parts):
        assert not moved(before, first, part)
    assert moved(first, after, "actor")
    if "statistics" in needed.parts:
        assert moved(before, after, "statistics") == (recipe == "sac_music_diayn")
    paid = "reward/music_mean" in summary["metrics"]
    assert paid == any(part in recipe for part in ("music_reward", "transfer", "music_diayn"))


@pytest.mark.parametrize("recipe", CONTROLS)
def test_a_control_learns_without_a_task_and_without_a_network(recipe, tmp_path):
    after = train(tmp_path / "run", recipe)
    metrics = json.loads((tmp_path / "run/summary.json").read_text())["metrics"]
    assert "eval/success_rate" not in metrics
    assert "music/bound" not in metrics
    assert 0.0 <= metrics[f"reward/{CONTROLS[recipe]}_mean"] <= 1.0
    assert all(np.isfinite(array).all() for array in after.values())
