"""Several hosts: lists, refusals, and what mpirun is told; hosts themselves are stood in for."""

import re

import pytest

from music_tf.cli import hosts, job, launch
from music_tf.cli.hosts import check_hosts, host_words, hosts_in, hosts_of
from music_tf.errors import EnvironmentFault, Hanging, UsageError
from music_tf.process.children import Probe
from tests.kit.cases import cases

TWO = {"node1": 8, "node2": 4}


def test_hosts_are_listed_with_their_ranks(tmp_path):
    file = tmp_path / "hosts"
    text = "\ufeffnode1 slots=8 max_slots=9\n# ours\n\nnode2 slots=4 # slow\n"
    file.write_text(text, encoding="utf-8")
    assert hosts_of("node1:8,node2:4") == hosts_in(file) == TWO
    assert hosts_of("a") == {"a": 1}
    words = [["--hosts", "node1:8,node2:4"], [f"--hostfile={file}", "-n", "3"]]
    read = [launch._split([*options, "recipes"]) for options in words]
    assert [(each.ranks, each.hosts) for each in read] == [(12, TWO), (3, TWO)]


@cases(
    ("words", "told"),
    (["--hosts", "a:8,a:2"], r"a is listed twice, got .a:2.\nlist it once, .* ranks, 10$"),
    (["--hosts", "a:0"], "--hosts: expected a host and how many ranks it takes, got 'a:0'"),
    (["--hosts", "a b:1"], "got 'a b:1'"),
    (["--hosts", "a:99999"], "got 'a:99999'"),
    (["--hosts", "-n", "2"], "--hosts: expected a value, got none"),
    (["--hosts", "a:1,b:1", "-n", "3"], "--ranks: expected at most 2, .* got 3"),
    (["--hosts", "a", "--hostfile", "b"], "expected --hosts or --hostfile, got both"),
    (["--hostfile", "/nowhere/hosts"], "--hostfile: /nowhere/hosts cannot be read: No such"),
    (["--hostfile", "/dev/null"], "--hostfile: /dev/null lists no host"),
    (["--host", "a"], r"unknown option '--host'\ndid you mean --hosts"),
)
def test_a_list_that_is_none_is_refused(words, told):
    with pytest.raises(UsageError, match=told):
        launch._split([*words, "recipes"])


@cases(
    "line",
    *("a slots=x", "a cores=4", "a 4", "a slots=2\na slots=2", "a slots=4,b slots=4"),
    *("a slots=2 slots=9", "a,b", "a:4", "a:4 slots=4", "-x slots=1", "a slots=", "a slots=0"),
    *("a slots", "a slots=1 max_slots=x", "a slots=4 , b slots=4"),
)
def test_a_host_file_of_something_else_is_refused_with_the_line_and_an_example(tmp_path, line):
    file = tmp_path / "hosts"
    file.write_text(line)
    with pytest.raises(UsageError, match="--hostfile: ") as fault:
        hosts_in(file)
    assert f"got '{line.splitlines()[-1]}'\n" in str(fault.value)
    assert re.search(r": node1 slots=8$|list it once, .* ranks, 4$", str(fault.value))


def test_mpirun_is_told_of_hosts_keepalives_and_variables():
    words = host_words(TWO, {"PYTHONPATH": "x", "TF_X": "1", "HOME": "/", "MUSIC_TF_RANKS": "2"})
    assert words[:2] == ["--host", "node1:8,node2:4"]
    pairs = [words[at + 1] for at, word in enumerate(words) if word == "-x"]
    assert pairs == ["MUSIC_TF_RANKS", "PYTHONPATH", "TF_X"]
    kept = {words[at + 1]: words[at + 2] for at, w in enumerate(words) if w == "--prtemca"}
    assert kept == {f"oob_tcp_keepalive_{k}": str(v) for k, v in hosts.KEEPALIVE.items()}


@cases(
    ("said", "told"),
    (Probe(0, "host 1 node2 0.1.0\nhost 0 node1 0.1.0\n"), None),
    (Probe(255, "", "ssh: connect to host node2 port 22: refused"), "no rank .* node1, node2"),
    (Probe(1, "host 0 node1 0.1.0\n"), r"no rank could be started on each.*\n.*: ssh node2 "),
    (Probe(1, "  Local host:    node1\n  Remote host:   node2\n"), ": ssh node2 .*tf'$"),
    (Probe(None, "", "", 60.0), r"no answer within 60 s\n.*ssh node1 "),
    (
        Probe(0, "host 0 node1 0.1.0\nhost 1 node1 0.1.0\n"),
        r"node1, node2 have the same host name, node1, .*\nlist the host once, as node1:12, or ",
    ),
    (Probe(0, "host 0 node1 0.1.0\nhost 1 node2 0.2.0\n"), r"node1 has 0.1.0, node2 has 0.2.0\n"),
    (
        Probe(0, "host 1 node1 0.1.0\nhost 0 node2 0.1.0\n"),
        "node1, .* its name is node2, and that of this host node1\nstart it on node1",
    ),
)
def test_hosts_that_cannot_train_together_are_refused_before_training(monkeypatch, said, told):
    asked = []
    monkeypatch.setattr(hosts.socket, "gethostname", lambda: "node1")
    monkeypatch.setattr(hosts, "run_command", lambda command, **_: asked.append(command) or said)
    if told is None:
        check_hosts("mpirun", TWO, ["python"], {})
    else:
        with pytest.raises(EnvironmentFault, match=told) as fault:
            check_hosts("mpirun", TWO, ["python"], {})
        assert len(str(fault.value).splitlines()) <= 10
    assert asked[0][:3] == ["mpirun", "--host", "node1:1,node2:1"]


def test_an_mpirun_that_ends_with_0_is_believed_only_with_the_proof_of_the_first_rank(tmp_path):
    proof = tmp_path / "proof"
    assert launch.run_job(["sh", "-c", f"echo ended 0 > {proof}"], {}, proof) == 0
    assert not proof.exists()
    again = f"music-tf launch -n 2 train --run-dir {tmp_path} --resume"
    for cure in ("start it again", again):  # nothing is stored the first time
        with pytest.raises(Hanging, match=f"a host was lost: .*\n{cure}$"):
            launch.run_job(["true"], {}, proof, again)
        (tmp_path / "config.json").touch()
    assert (Hanging.exit_code, launch.run_job(["sh", "-c", "exit 75"], {}, proof)) == (86, 75)


def test_an_mpirun_that_stays_once_the_first_rank_has_left_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "_END_SECONDS", 0.2)
    proof = tmp_path / "proof"
    assert launch.run_job(["sh", "-c", f"echo ended 75 > {proof}; exec sleep 60"], {}, proof) == 75


@pytest.mark.parametrize("code", [255, None])
def test_a_run_refused_for_its_hosts_leaves_no_directory(tmp_path, monkeypatch, code):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MUSIC_TF_RUNS", raising=False)
    monkeypatch.setattr(launch.mpirun, "find_mpirun", lambda: "mpirun")
    monkeypatch.setattr(launch.mpirun, "ask_version", lambda *_: Probe(0, "mpirun (Open MPI) 5"))
    monkeypatch.setattr(hosts, "run_command", lambda *_, **__: Probe(code, "", "refused"))
    words = ["train", "ddpg_her", "--env-id", "music_tf/PointPush-v0", "--workers", "2"]
    with pytest.raises(EnvironmentFault, match="no rank could be started"):
        launch.main(["--hosts", "nohost:1,other:1", *words])
    assert list(tmp_path.iterdir()) == []
