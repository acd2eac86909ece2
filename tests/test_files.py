import os

import pytest

from music_tf.files import links_and_devices, open_regular, parse_json, read_at_most, replace_file
from tests.kit.cases import cases


def test_a_regular_file_is_read_up_to_a_limit(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_at_most(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_at_most(path, 4)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "missing"])
def test_anything_else_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "a"
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "device":
        path.symlink_to("/dev/zero")
    if kind == "folder":
        path.mkdir()
    with pytest.raises(OSError, match=r"regular|directory"), open_regular(path):
        pass


def test_links_and_pipes_are_found_at_any_depth(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints" / "epoch").mkdir(parents=True)
    (run / "config.json").touch()
    assert (list(links_and_devices(run)), list(links_and_devices(tmp_path / "missing"))) == ([], [])
    (run / "checkpoints" / "epoch" / "meta.json").symlink_to("../../config.json")
    (run / "logs").symlink_to(tmp_path)
    os.mkfifo(run / "pipe")
    (tmp_path / "beside").symlink_to(run)
    found = [str(run / name) for name in ("checkpoints/epoch/meta.json", "logs", "pipe")]
    assert sorted(links_and_devices(run)) == found
    assert sorted(links_and_devices(tmp_path / "beside")) == [
        path.replace("/run/", "/beside/") for path in found
    ]


def test_new_content_is_on_the_disk_before_it_takes_the_place_of_the_old(tmp_path, monkeypatch):
    path, calls = tmp_path / "a", []
    replace = os.replace

    def sync(descriptor):
        synced = os.readlink(f"/proc/self/fd/{descriptor}")
        calls.append(("sync", synced, os.fstat(descriptor).st_size))

    def record(source, target):
        calls.append(("replace", str(source), str(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", record)
    replace_file(path, b"12345")
    draft = f"{path}.tmp-{os.getpid()}"
    assert calls[:2] == [("sync", draft, 5), ("replace", draft, str(path))]
    assert [call[:2] for call in calls[2:]] == [("sync", str(tmp_path))]
    assert path.read_bytes() == b"12345"


@cases(
    ("content", "text"),
    (b"{", "Expecting"),
    (b"\xff", "decode"),
    (b"NaN", "NaN is not a JSON number"),
    (b'{"a": -Infinity}', "-Infinity is not"),
    (b"[1e999]", "1e999 is not"),
    (b"[" * 10**5 + b"]" * 10**5, "nested too deeply"),
    (b"[" + b"0," * 2**20 + b"0]", "more than 1048576 values"),
    (b"9" * 9000, "digits"),
    ids=lambda value: repr(value[:9]),
)
def test_any_json_is_parsed_or_refused(content, text):
    with pytest.raises(ValueError, match=text):
        parse_json(content)
    assert parse_json(b'{"a": [1, -2.5, null]}') == {"a": [1, -2.5, None]}
