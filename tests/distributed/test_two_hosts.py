"""Two hosts made of network namespaces: a run across them, stopped, and one of them lost."""

import contextlib

import pytest

from tests.distributed.test_learner import EPISODES, words
from tests.kit import jobs
from tests.kit.hosts import Hosts

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(400)]

ENDLESS = (*EPISODES[:-1], 100_000, "--lag", 1)


@pytest.fixture(scope="module")
def hosts():
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(Hosts())
        except OSError as refused:
            pytest.skip(str(refused))
        yield made


def again(hosts, path):  # the line that goes on with a run of these tests on the same hosts
    return f"music-tf launch {' '.join(hosts.listed)} train --run-dir {path} --resume --learners 1"


def test_a_learner_and_actors_on_two_hosts_give_the_bits_of_one_process(hosts, tmp_path):
    paths = [tmp_path / "two", tmp_path / "alone"]
    jobs.run(words(paths[0], 2, *EPISODES, "--lag", 1), paths[0], how=hosts)
    jobs.run(words(paths[1], 0, *EPISODES, "--lag", 1), paths[1], how="alone")
    jobs.assert_same_bits(*paths)
    assert not list(paths[0].glob("*.end"))


def test_sigusr1_stops_both_hosts_and_the_run_goes_on(hosts, tmp_path):
    path = tmp_path / "run"
    with jobs.Job(words(path, 2, *ENDLESS), path, how=hosts) as job:
        ended = job.stop_after(2)
    assert ended.err.splitlines()[-1] == again(hosts, path)
    jobs.resume(path, "--epochs", len(jobs.rows_of(path)) + 1)


def test_a_lost_host_ends_the_job_on_both_and_is_no_good_end(hosts, tmp_path):
    path = tmp_path / "run"
    with jobs.Job(words(path, 2, *ENDLESS, "--hang-after", 30), path, how=hosts) as job:
        job.wait_for_epoch(2)
        hosts.cut(2)
        try:
            ended = job.end(code=jobs.HANGING)
        finally:
            hosts.mend(2)
    assert "a host was lost" in ended.err
    assert again(hosts, path) in ended.err.splitlines()


def test_hosts_out_of_reach_or_of_one_name_or_folder_are_refused(hosts, tmp_path, monkeypatch):
    path = tmp_path / "run"
    with monkeypatch.context() as other:
        other.setattr(hosts, "listed", ("--hosts", "node1:2,node7:1"))
        ended = jobs.run(words(path, 2, *EPISODES), path, code=jobs.ENVIRONMENT, how=hosts)
    assert "--hosts: no rank could be started on each of node1, node7" in ended.err
    assert ": ssh node7 " in ended.err.splitlines()[-1]
    with monkeypatch.context() as other:
        other.setattr(hosts, "listed", ("--hosts", "node2:2,node1:1"))
        ended = jobs.run(words(path, 2, *EPISODES), path, code=jobs.ENVIRONMENT, how=hosts)
    assert (
        "first host, node2, which writes the run; its name is node2, and that of this host node1"
        in (ended.err)
    )
    monkeypatch.setitem(hosts.variables, "NAME_OF_ALL", "twin")
    ended = jobs.run(words(path, 2, *EPISODES), path, code=jobs.ENVIRONMENT, how=hosts)
    assert "--hosts: node1, node2 have the same host name, twin" in ended.err
    assert "list the host once, as node1:3" in ended.err
    assert len(ended.err.splitlines()) <= 10
    assert not path.exists()
