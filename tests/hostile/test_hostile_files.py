"""Run directories that somebody else made: nothing is executed, nothing is written elsewhere.

MUSIC_TF_LONG_TESTS=1 tries 500 instead of 60 of them.
"""

import contextlib
import functools
import hashlib
import io
import json
import math
import os
import random
import resource
import shutil
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from music_tf import recipes
from music_tf.cli import run_verb
from music_tf.cli.exits import guarded
from music_tf.config import world as worlds
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.storage import checkpoint
from music_tf.storage.checkpoint import Checkpoints
from music_tf.storage.loading import load_policy
from music_tf.storage.lock import refuse_if_in_use
from music_tf.storage.metrics import MetricsWriter
from music_tf.storage.warm_start import WarmStartTarget, initial_arrays, load_warm_start
from music_tf.tools import curves
from music_tf.training.build import build_trainer
from tests.kit.forged import archived, saved_array
from tests.kit.saved_run import save_checkpoint, save_run, small_config, write_config
from tests.kit.sessions import run_session
from tests.kit.started import python

COUNT = 500 if "MUSIC_TF_LONG_TESTS" in os.environ else 60
SECONDS, MEGABYTES = 2.0, 200.0
PATIENCE = 20.0
"""Seconds that a busy machine may take for what takes less than `SECONDS` of computing."""
LABEL = "epoch_000001"


class Payload:  # creates a file when it is unpickled
    def __init__(self, marker):
        self._marker = str(marker)

    def __reduce__(self):
        return open, (self._marker, "w")


class Forger:  # changes a run directory as somebody who knows the format, digests included
    def __init__(self, run, outside, generator):
        self.run, self.outside, self.random = run, outside, generator
        self.checkpoint = run / "checkpoints" / LABEL
        self.marker = outside.with_name("executed")

    def content(self):
        return json.loads((self.checkpoint / "manifest.json").read_bytes())["content"]

    def seal(self, content):
        (self.checkpoint / "manifest.json").write_bytes(checkpoint.seal(content))

    def entries(self, content):
        """Every file that the manifest lists, as path, size and digest, with its folder."""
        found = [(content[name], self.checkpoint) for name in ("meta", "state")]
        shards = [entry for worker in content["shards"].values() for entry in worker]
        return found + [(entry, self.checkpoint.parent) for entry in shards]

    def replace(self, change, wanted=lambda path: path.endswith(".npz")):
        """Puts data in the place of a listed file, and its digest into the manifest."""
        content = self.content()
        chosen = [(e, folder) for e, folder in self.entries(content) if wanted(e[0])]
        entry, folder = self.random.choice(chosen)
        data = change((folder / entry[0]).read_bytes())
        (folder / entry[0]).write_bytes(data)
        entry[1:] = [len(data), hashlib.sha256(data).hexdigest()]
        self.seal(content)

    def replace_array(self, data):  # puts bytes in the place of an array within its file

        def change(archive):
            with zipfile.ZipFile(io.BytesIO(archive)) as old:
                members = {name: old.read(name) for name in old.namelist()}
            members[self.random.choice(list(members))] = data
            return archived(members)

        self.replace(change)

    def replace_meta(self, change):
        text = json.dumps(change(json.loads((self.checkpoint / "meta.json").read_bytes()))).encode()
        self.replace(lambda _: text, lambda path: path == "meta.json")

    def change_config(self, change):
        path = self.run / "config.json"
        path.write_text(json.dumps(change(json.loads(path.read_bytes()))))

    def pick(self, *values):
        return self.random.choice(values)


def npy(header, data=b"", version=1):
    text = header.encode("latin-1") + b"\n"
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def objects(forger):
    """Pickles where an array belongs: as an object array, inside an archive, or bare."""
    whole = saved_array(np.array([Payload(forger.marker)], dtype=object), allow_pickle=True)
    bare = f"cbuiltins\nopen\n(V{forger.marker}\nVw\ntR.".encode()  # opens the file, by hand
    if forger.random.random() < 0.5:
        return forger.replace_array(forger.pick(whole, bare))
    return forger.replace(lambda _: forger.pick(whole, archived({"a.npy": whole}), bare))


def headers(forger):
    """Headers that are no description of an array, or one of far more than is there."""
    shape = forger.pick(
        "(10**12,)", "(1000000000000,)", "(-1,)", "(-2, -4)", "(nan,)", "(1e9,)", "('a',)",
        "(" * 5000, "(0,) * 9**9", "(2**63,)", "(" + "1," * 4000 + ")",
    )  # fmt: skip
    kind = forger.pick("'<f4'", "'|O'", "'|V8'", "[('a', '|O')]", "'<U9'", "'>f4'", "'<f8'")
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}"
    code = f"__import__('pathlib').Path({str(forger.marker)!r}).touch()"
    text = forger.pick(header, header, header, code, "", "{" * 9000, "x" * 60_000)
    forger.replace_array(npy(text, bytes(forger.pick(0, 16, 4096)), forger.pick(1, 1, 2, 3, 9)))


def archives(forger):
    """Archives that are compressed, torn, overlap, or lie about what is in them."""

    def change(archive):
        place = forger.random.randrange(len(archive) - 4)
        bits = bytes(forger.random.randrange(256) for _ in range(4))
        with zipfile.ZipFile(io.BytesIO(archive)) as old:
            members = {name: old.read(name) for name in old.namelist()}
        contents = archive.rindex(b"PK\1\2")
        return forger.pick(
            archived(members, zipfile.ZIP_DEFLATED),
            archived(members, zipfile.ZIP_LZMA),
            archive[: place + 1],
            archive[:place] + bits + archive[place + 4 :],
            archive[:contents] + archive[contents:].replace(bytes(2), bits[:2], 1),
            archived({f"../{name}": data for name, data in members.items()}),
            archived({name: data * 2 for name, data in members.items()}),
        )

    forger.replace(change)


def paths(forger):  # manifests that point out of the checkpoint
    secret = forger.outside / "secret.npz"
    data, content = secret.read_bytes(), forger.content()
    path = forger.pick("../../../outside/secret.npz", str(secret), "a/../../a", "..", "")
    entry, _ = forger.random.choice(forger.entries(content))
    entry[:] = path, len(data), hashlib.sha256(data).hexdigest()
    forger.seal(content)


def documents(forger):  # JSON that is deep, huge, or none, in place of any of our documents
    file = forger.pick(
        forger.checkpoint / "manifest.json", forger.run / "config.json", forger.run / "lock.json"
    )
    depth, width = 100_000, 1_000_000
    file.write_bytes(
        forger.pick(b"[" * depth, b'{"a":' * depth, b"9" * 10_000, b"", b"\xff\0", b"NaN",
                    b"[" + b"[]," * width + b"0]", b'"' + b"a" * 40_000_000 + b'"')
    )  # fmt: skip


def meta(forger):  # counters and logs that no run has
    bad = forger.pick(
        None, -1, math.nan, math.inf, 10**400, "x", [], [[]], {"a": 1}, True, [[1, 2, 3]]
    )

    def change(values):
        group = forger.pick(values, values["counters"], values["log"])
        group[forger.pick(*group)] = bad
        return forger.pick(values, values, values, bad)

    forger.replace_meta(change)


def configurations(forger):  # configurations that ask for code, or for what does not exist
    name = forger.marker.name
    forger.outside.with_name("evil.py").write_text(f"open({str(forger.marker)!r}, 'w')")

    def change(record):
        recipe = forger.pick("os", "..", "__init__", "evil", "ddpg.__class__", "/etc/passwd", "sac")
        env_id = forger.pick("evil:Task-v0", "os:system", f"{name}:x", "no/such-v0", ":", "")
        value = forger.pick(math.nan, -1, 10**400, "inf", None, [], {"__class__": "os.system"})
        which = forger.random.randrange(4)
        if which == 0:
            return {**record, "recipe": recipe}
        if which == 1:
            return {**record, "config": {**record["config"], "env_id": env_id}}
        group = forger.pick(record["config"], record["config"]["agent"], record["config"]["replay"])
        group[forger.pick(*group)] = value
        return record

    forger.change_config(change)


def links(forger):  # links and pipes in place of what we read and write
    name = forger.pick(
        "metrics.csv", "logs", "checkpoints", "videos", "lock.json", "config.json",
        "checkpoints/replay", f"checkpoints/{LABEL}", f"checkpoints/{LABEL}/meta.json",
    )  # fmt: skip
    path = forger.run / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if forger.random.random() < 0.3:
        os.mkfifo(path)
    else:
        path.symlink_to(forger.pick(forger.outside, forger.outside / "diary.txt", "/dev/zero"))


def tables(forger):  # tables of metrics that no run writes
    start = forger.pick(b"epoch,time/epoch,time/env_steps\n", b"", b"\xff\xfe\n")
    row = forger.pick(
        b"9" * 9000, b"1,1,inf\n", b"1,1,1e300\n", b"\0,\0\n", b"," * 10**6, b'"' * 10**6
    )
    (forger.run / "metrics.csv").write_bytes(start + row)


KINDS = objects, headers, archives, paths, documents, meta, configurations, links, tables
MUST_FAIL = {objects, paths, links}
"""The others may by chance leave something that a run could have written."""


def made(folder):  # a run with replay, and a trainer for its configuration to load others into
    path = folder / "run"
    config = small_config(rollouts=1)
    write_config(path, config)
    trainer = build_trainer(config, Communicator())
    trainer.collect()
    save_checkpoint(path, trainer)
    (path / "metrics.csv").write_text("epoch,time/epoch,time/env_steps\n1,1,100\n")
    for name in ("logs", "videos"):
        (path / name).mkdir()
    return path, trainer


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return made(tmp_path_factory.mktemp("honest"))


def take(run, trainer):
    """Reads a run in every way that there is; returns the codes of the faults that were met."""
    errors = io.StringIO()

    def resume():
        parse_train(["--run-dir", str(run), "--resume"])
        refuse_if_in_use(run)
        restored = Checkpoints(run / "checkpoints", Communicator()).restore(
            ["worker_0000"], trainer.expected()
        )
        if restored is not None:
            try:
                trainer.load(restored.arrays, restored.meta)
                trainer.load_workers({0: restored.shards["worker_0000"]})
            except ValueError as error:  # what the session does where a checkpoint does not fit
                raise UsageError(str(error)) from error
        MetricsWriter(run, resume_after=1)

    def start_from():
        heir = WarmStartTarget(trainer.shared(), {}, trainer.envs.declared, trainer.config)
        loaded = load_warm_start(trainer.config, run / "checkpoints", ("actor", "normalizer"))
        initial_arrays(loaded, heir)

    def answered(read, *arguments):
        read(*arguments)
        return 0

    readers = ((resume,), (start_from,), (curves.load, run), (load_policy, run))
    with contextlib.redirect_stderr(errors):
        codes = {guarded(functools.partial(answered, *reader)) for reader in readers}
    assert codes <= {0, 2, 3}, errors.getvalue()
    assert "Traceback" not in errors.getvalue()
    return codes


def timed(run, trainer):  # seconds of computing, and what `take` returns
    start, started = time.process_time(), time.monotonic()
    codes = take(run, trainer)
    assert time.monotonic() - started <= PATIENCE
    return time.process_time() - start, codes


def contents(folder):
    return {str(p): (p.lstat().st_mode, p.is_file() and p.read_bytes()) for p in folder.rglob("*")}


@pytest.mark.timeout(10 * COUNT)
def test_hostile_directories_do_no_harm(honest, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    base, trainer = honest
    outside = tmp_path / "outside"
    outside.mkdir()
    np.savez(outside / "secret.npz", np.zeros(3, np.float32))
    (outside / "diary.txt").write_text("dear diary\n")
    refused = 0
    for number in range(COUNT):
        run, kind = tmp_path / f"run{number}", KINDS[number % len(KINDS)]
        shutil.copytree(base, run)
        kind(Forger(run, outside, random.Random(number)))
        before = contents(outside)
        seconds, codes = timed(run, trainer)
        assert contents(outside) == before, (number, kind)
        assert not (tmp_path / "executed").exists(), (number, kind)
        assert seconds <= SECONDS, (number, kind, seconds)
        assert codes != {0} or kind not in MUST_FAIL, (number, kind)
        refused += codes != {0}
        shutil.rmtree(run)
    assert refused >= 0.8 * COUNT


def bombs(folder):
    """Prints name, seconds, worst code and megabytes of directories with far too many values."""
    base, trainer = made(folder)
    assert take(base, trainer) == {0}
    before = peak()
    width = checkpoint.LARGEST_MANIFEST

    def document(part):  # repeated until the manifest is as long as it may be
        data = b"[" + part * (width // len(part) - 9) + b"0]"
        return lambda forger: (forger.checkpoint / "manifest.json").write_bytes(data)

    def many(forger):
        (forger.run / "metrics.csv").write_bytes(b"epoch,time/env_steps\n" + b"1,1\n" * 4_000_000)

    forged = {
        "empty lists": document(b"[],"),
        "empty objects": document(b"{},"),
        "short numbers": document(b"1.5,"),
        "long table": many,
    }
    for number, (name, forge) in enumerate(forged.items()):
        run = folder / f"bomb{number}"
        shutil.copytree(base, run)
        forge(Forger(run, folder, random.Random(0)))
        seconds, codes = timed(run, trainer)
        print(name, round(seconds, 3), max(codes), round(peak() - before), flush=True)  # noqa: T201
        shutil.rmtree(run)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_bombs_are_refused_before_they_fill_the_memory(tmp_path):
    program = (
        "import pathlib\nfrom tests.hostile import test_hostile_files\n"
        f"test_hostile_files.bombs(pathlib.Path({str(tmp_path)!r}))\n"
    )
    done = python(program, timeout=120, exits=0)
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        _, seconds, code, megabytes = line.rsplit(maxsplit=3)
        assert float(seconds) <= SECONDS, line
        assert code in "23", line
        assert float(megabytes) <= MEGABYTES, line


PUSH = "theirs:music_tf/PointPush-v0"
THEIRS = """
import pathlib
from music_tf.recipes import tasks
pathlib.Path('imported').touch()
def recipe(preset, env_id=""):
    return tasks.ddpg(preset, env_id)
def see(environment):
    return environment.unwrapped._object
"""


NAMED = {  # what a configuration may name in a module, and how a refusal says it
    "env_id": (PUSH, f"{PUSH}, in Python allow_import=True or env_id=..."),
    "recipe": ("theirs:recipe", "'theirs:recipe'"),
    "descriptor": (["theirs:see"], "theirs:see"),
}


@pytest.mark.parametrize("key", NAMED)
def test_a_module_is_imported_only_where_the_user_allows_it(tmp_path, monkeypatch, capsys, key):
    name, told = NAMED[key]
    run = tmp_path / "run"
    save_run(run)
    record = json.loads((run / "config.json").read_bytes())
    groups = record, record["config"], record["config"]["world"]
    next(group for group in groups if key in group)[key] = name
    (run / "config.json").write_text(json.dumps(record))
    (tmp_path / "theirs.py").write_text(THEIRS)
    monkeypatch.chdir(tmp_path)
    for module in (recipes, worlds):
        monkeypatch.setattr(module, "_TRUSTED", set())
    resume, shown = ["--run-dir", "run", "--resume"], ["report", "run"]
    for refused in (
        lambda: run_verb(["evaluate", "run"]),
        lambda: run_verb(["play", "run"]),
        lambda: run_session(parse_train(resume)),
        *([lambda: run_verb(shown)] if key == "recipe" else ()),  # whose settings a page shows
    ):
        assert guarded(refused) == 2
        text = capsys.readouterr().err
        assert "--allow-import" in text
        assert told in text
        assert "export MUSIC_TF_ALLOW_IMPORT=theirs\n" in text
    assert key == "recipe" or guarded(lambda: run_verb(shown)) == 0
    for other in ("their", "theirs.more", "other,theirs:", ",", "*"):
        monkeypatch.setenv("MUSIC_TF_ALLOW_IMPORT", other)
        assert guarded(lambda: run_verb(["evaluate", "run"])) == 2
    assert not Path("imported").exists()
    monkeypatch.setenv("MUSIC_TF_ALLOW_IMPORT", "mine, theirs")
    assert parse_train(resume).resume
    assert guarded(lambda: run_verb(["evaluate", "run", "--episodes", "2"])) == 0
    Path("imported").unlink()
    sys.modules.pop("theirs")
    for module in (recipes, worlds):
        monkeypatch.setattr(module, "_TRUSTED", set())
    monkeypatch.delenv("MUSIC_TF_ALLOW_IMPORT")
    assert parse_train([*resume, "--allow-import"]).resume
    assert guarded(lambda: run_verb(["evaluate", "run", "--episodes", "2", "--allow-import"])) == 0
    assert Path("imported").exists()
    sys.modules.pop("theirs")
