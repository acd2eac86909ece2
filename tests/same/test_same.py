"""The net itself finds a changed bit, and nothing where only clocks differ."""

import json

import numpy as np
import pytest

from tests.same import canonical
from tests.same.configurations import CONFIGURATIONS
from tests.same.same import with_sources

STEPS = 4
KERNEL = "parameters/actor/kernel"
STATE, REPLAY = f"state/{KERNEL}", "replay/worker_0000"


def rows(slots, size, scale=1.0):
    """Two saved episodes of 2 and 4 steps; what lies beyond them is not zero."""
    count = len(slots)
    state = scale * np.arange(count * (STEPS + 1) * 3, dtype=np.float32)
    return {
        "observation": state.reshape(count, STEPS + 1, 3),
        "action": np.ones([count, STEPS, 2], np.float32),
        "length": np.array([2, 4][:count]),
        "slots": np.array(slots),
        "size": np.array(size),
        "cursor": np.array(0),
    }


class Made:
    """A run directory."""

    def __init__(self):
        self.kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.state = {KERNEL: self.kernel}
        self.meta = {"counters": {"epoch": 2, "elapsed_s": 1.5}, "env_id": "made up"}
        self.rows = [rows([0, 1], 2), rows([0], 2, scale=2.0)]
        self.table = "time/epoch,time/fps,train/mean_q\n1,100,0.5\n2,120,\n"

    def say(self, old, new):  # changes the table of metrics
        self.table = self.table.replace(old, new)

    def write(self, directory):
        folder = directory / "checkpoints/epoch_000002"
        folder.mkdir(parents=True)
        (directory / "checkpoints/epoch_000001").mkdir()
        (directory / "metrics.csv").write_text(self.table)
        (folder / "meta.json").write_text(json.dumps(self.meta))
        shards = [f"replay/worker_0000/epoch_{epoch:06d}" for epoch in (1, 2)]
        for path, arrays in zip(shards, self.rows, strict=True):
            place = directory / "checkpoints" / f"{path}.npz"
            place.parent.mkdir(parents=True, exist_ok=True)
            np.savez(place, **arrays)
        np.savez(folder / "state.npz", **self.state)
        entries = [[f"{path}.npz", 1, "digest"] for path in shards]
        manifest = {"content": {"epoch": 2, "shards": {"worker_0000": entries}}, "sha256": "0"}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return directory


def differences(one, other):
    return [
        name
        for name in {**one, **other}
        if canonical.difference(one.get(name), other.get(name)) is not None
    ]


def test_what_is_saved_in_turn_is_repeated_and_numbers_become_texts(tmp_path):
    one = canonical.read_run(Made().write(tmp_path / "run"))
    assert one["replay/worker_0000/observation"].shape == (3 + 5, 3)
    assert one["replay/worker_0000/observation"][1, 0] == 6.0  # of the second save
    assert one["metrics/train/mean_q"].tolist() == ["0.5", ""]


CHANGED = {  # what is changed, and the name of what is found to differ
    "a column that is blank throughout": (
        lambda made: (
            made.say("train/mean_q\n", "train/mean_q,skill/accuracy\n"),
            made.say("100,0.5\n", "100,0.5,\n"),
            made.say("120,\n", "120,,\n"),
        ),
        None,
    ),
    "a clock": (lambda made: made.meta["counters"].update(elapsed_s=9.0), None),
    "a rate": (lambda made: made.say("120", "7"), None),
    "padding of states": (lambda made: made.rows[1]["observation"][0, 3:].fill(-1.0), None),
    "padding of steps": (lambda made: made.rows[0]["action"][0, 2:].fill(7.0), None),
    "a bit": (lambda made: np.put(made.kernel, 5, np.nextafter(made.kernel[1, 2], 9)), STATE),
    "the sign of zero": (lambda made: np.put(made.kernel, 0, -0.0), STATE),
    "precision": (lambda made: made.state.update({KERNEL: made.kernel.astype(float)}), STATE),
    "a slot": (lambda made: np.put(made.rows[1]["slots"], 0, 1), f"{REPLAY}/observation"),
    "an action": (lambda made: np.put(made.rows[0]["action"], 14, 0.5), f"{REPLAY}/action"),
    "a metric": (lambda made: made.say("0.5", "0.5000000000000001"), "metrics/train/mean_q"),
    "a blank": (lambda made: made.say("120,", "120,nan"), "metrics/train/mean_q"),
    "a counter": (lambda made: made.meta["counters"].update(epoch=3), "meta/counters/epoch"),
    "an array": (lambda made: made.state.update({"targets/x": made.kernel}), "state/targets/x"),
}


def differences_after(change, folder):
    """Names that differ between a run and the same one after a change."""
    made = Made()
    one = canonical.read_run(made.write(folder / "one"))
    change(made)
    return differences(one, canonical.read_run(made.write(folder / "other")))


@pytest.mark.parametrize(("change", "name"), CHANGED.values(), ids=CHANGED)
def test_one_changed_number_is_found_while_clocks_and_padding_do_not_count(tmp_path, change, name):
    if name is None:
        assert differences_after(change, tmp_path) == []
    else:
        assert name in differences_after(change, tmp_path)


def test_what_a_commit_renames_or_drops_can_be_said(tmp_path, monkeypatch):
    made = Made()
    one = canonical.read_run(made.write(tmp_path / "one"))
    made.state = {f"new_{name}": array for name, array in made.state.items()}
    made.state["updates"] = np.array(7)
    path = made.write(tmp_path / "other")
    assert len(differences(one, canonical.read_run(path))) == 3
    monkeypatch.setattr(canonical, "RENAMED", [(r"state/new_(.*)", r"state/\1")])
    monkeypatch.setattr(canonical, "DROPPED", ["state/updates"])
    assert differences(one, canonical.read_run(path)) == []


def test_a_source_is_run_before_what_starts_from_it():
    for name, configuration in CONFIGURATIONS.items():
        order = with_sources([name])
        assert order[-1] == name
        assert configuration.source is None or configuration.source in order[:-1]
