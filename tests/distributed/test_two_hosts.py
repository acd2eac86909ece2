"""Two hosts made of network namespaces: a run across them, stopped, and one of them lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.test_learner import EPISODES, assert_same_bits, words
from tests.kit.jobs import (
    DONE,
    ENVIRONMENT,
    HANGING,
    STOPPED,
    Ended,
    environment,
    processes_of,
    rows_of,
    run,
    until,
)

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(400)]

SCRIPT = Path(__file__).parents[1] / "kit" / "hosts.sh"
TWO = ("--hosts", "node1:2,node2:1")
ENDLESS = (*EPISODES[:-1], 100_000, "--lag", 1)
SECONDS = 120.0


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Runs `hosts.sh WORDS`; the hosts are there until the module ends."""
    tag = {"HOSTS_TAG": f"t{os.getpid() % 100000}x"}

    def script(*given):
        done = subprocess.run(
            [SCRIPT, *given], env={**os.environ, **tag}, capture_output=True, text=True, check=False
        )
        return done

    made = script("up", "2")
    if made.returncode:
        script("down")
        pytest.skip(f"no hosts can be made of namespaces here: {made.stderr.strip()[:100]}")
    script.tag = tag
    yield script
    script("down")


class Launched:
    """`music-tf launch` on the first host, with the numpy learner."""

    def __init__(self, hosts, path, *more, listed=TWO, **variables):
        self.path = path
        given = {
            **environment(),
            **hosts.tag,
            "PRTE_MCA_plm_ssh_agent": f"{SCRIPT} agent",
            "PRTE_MCA_prte_tmpdir_base": "/var/tmp",
            "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/24",
            **variables,
        }
        command = [sys.executable, "-m", "music_tf", "launch", *listed, *words(path, 2, *more)]
        self._files = [path.with_suffix(suffix) for suffix in (".out", ".err")]
        with self._files[0].open("w") as out, self._files[1].open("w") as err:
            self.process = subprocess.Popen(
                [SCRIPT, "on", "1", *map(str, command)],
                env=given,
                cwd=path.parent,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def wait_for_epoch(self, epoch):
        over = self.process.poll
        until(lambda: over() is not None or len(rows_of(self.path)) >= epoch, "no epoch ends")

    def end(self):
        """How it ended, once no process of it is left on either host."""
        code = self.process.wait(timeout=SECONDS)
        until(lambda: not processes_of(self.path), "processes live on", SECONDS)
        return Ended(code, *(file.read_text(errors="replace") for file in self._files), 0.0)


def test_a_learner_and_actors_on_two_hosts_give_the_bits_of_one_process(hosts, tmp_path):
    paths = [tmp_path / "two", tmp_path / "alone"]
    ended = Launched(hosts, paths[0], *EPISODES, "--lag", 1).end()
    assert ended.code == DONE, ended.err
    assert run(words(paths[1], 0, *EPISODES, "--lag", 1), paths[1], how="alone").code == DONE
    assert_same_bits(*paths)
    assert not list(paths[0].glob("*.end"))


def test_sigusr1_stops_both_hosts_and_the_run_goes_on(hosts, tmp_path):
    path = tmp_path / "run"
    job = Launched(hosts, path, *ENDLESS)
    job.wait_for_epoch(2)
    for pid in processes_of(path):
        words_of_it = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if "launch" in words_of_it and "-m" in words_of_it[:2]:
            os.kill(pid, signal.SIGUSR1)
    ended = job.end()
    assert ended.code == STOPPED, ended.err
    done = len(rows_of(path))
    ended = run(["train", "--run-dir", str(path), "--resume", "--epochs", str(done + 1)], path)
    assert ended.code == DONE, ended.err


def test_a_lost_host_ends_the_job_on_both_and_is_no_good_end(hosts, tmp_path):
    path = tmp_path / "run"
    job = Launched(hosts, path, *ENDLESS, "--hang-after", 30)
    job.wait_for_epoch(2)
    hosts("cut", "2")
    try:
        ended = job.end()
    finally:
        hosts("mend", "2")
    assert ended.code == HANGING, (ended.code, ended.err)
    assert "a host was lost" in ended.err
    assert f"--run-dir {path} --resume" in ended.err


def test_hosts_that_cannot_be_reached_or_share_a_name_are_refused(hosts, tmp_path):
    path = tmp_path / "run"
    ended = Launched(hosts, path, *EPISODES, listed=("--hosts", "node1:2,node7:1")).end()
    assert ended.code == ENVIRONMENT, ended.err
    assert "--hosts: no rank could be started on each of node1, node7" in ended.err
    ended = Launched(hosts, path, *EPISODES, NAME_OF_ALL="twin").end()
    assert ended.code == ENVIRONMENT, ended.err
    assert "--hosts: " in ended.err
    assert len(ended.err.splitlines()) <= 10
    assert not path.exists()
