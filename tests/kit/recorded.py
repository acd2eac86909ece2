"""Run directories as they are read for plots and pages: written, not trained."""

import json

from music_tf.reading.command import parse_train
from music_tf.reading.stored import StoredRun, run_to_json

TOY = "music_tf/PointPush-v0"


def write_run(path, recipe, *words, preset="laptop", start=None, **made):
    """Writes the `config.json` of a run of these words; `made` says what else it holds."""
    path.mkdir(parents=True, exist_ok=True)
    command = parse_train([recipe, "--env-id", TOY, *words])
    stored = StoredRun(recipe, preset, command.arguments, command.config, start)
    (path / "config.json").write_text(json.dumps(run_to_json(stored) | made))
    return path
