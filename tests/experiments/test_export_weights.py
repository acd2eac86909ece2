import sys

import pytest

from experiments.export_weights import main
from music_tf.config.stored import read_run
from music_tf.errors import UsageError
from tests.kit.saved_run import load_weights, save_run


def test_the_script_writes_the_parts_it_is_asked_for(tmp_path, monkeypatch, capsys):
    save_run(tmp_path / "run")
    folder = str(tmp_path / "weights")
    words = ["export_weights.py", str(tmp_path / "run"), folder, "--parts", "actor,normalizer"]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 0
    assert capsys.readouterr().out == f"{folder}\n"
    arrays, meta = load_weights(tmp_path / "weights")
    config = read_run(tmp_path / "run")
    assert [meta[key] for key in ("recipe", "seed")] == [config.recipe, config.config.seed]
    assert meta["env_id"] == config.config.env_id
    groups = {name.rsplit("/", 2)[0] for name in arrays}
    assert groups == {"parameters/actor", "normalizer"}
    monkeypatch.setattr(sys, "argv", [*words[:-1], "acter"])
    with pytest.raises(UsageError, match="did you mean actor"):
        main()
