"""A Slurm of two nodes on the hosts of `hosts.py`, with its real daemons, for tests as root."""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from tests.kit.hosts import SCRIPT, Hosts
from tests.kit.jobs import REPOSITORY, environment, rows_of, until

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
CONFIGURATION = """
ClusterName=music
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SwitchType=switch/none
StateSaveLocation=/var/tmp/slurmctld
SlurmdSpoolDir=/var/tmp/slurmd
SlurmctldPidFile=/var/tmp/slurmctld.pid
SlurmdPidFile=/var/tmp/slurmd.pid
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
NodeName=node[1-2] CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=4000
PartitionName=all Nodes=node[1-2] Default=YES OverSubscribe=FORCE:4 MaxTime=INFINITE State=UP
"""
"""`/var/tmp` is each host's own. A job that is queued again starts after `cred_expire` seconds."""


class Slurm:
    """A cluster while the `with` block lasts; `OSError` where none can be made."""

    def __init__(self, folder):
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self._given = {
            **environment(),
            "SLURM_CONF": str(folder / "slurm.conf"),
            "MUSIC_TF_RUNS": str(folder / "runs"),
            "PYTHON": sys.executable,
            "PMIX_MCA_gds": "hash",  # quiet: the wheel of Open MPI lacks Slurm's other modules
            "PMIX_MCA_psec": "native",
        }

    def __enter__(self):
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        if missing:
            raise OSError(f"no Slurm here: {', '.join(missing)} not found")
        folder = self.folder
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "mpi.conf").write_text("PMIxCliTmpDirBase=/var/tmp\n")
        (folder / "key").write_bytes(secrets.token_bytes(128))
        (folder / "key").chmod(0o600)
        with contextlib.ExitStack() as stack:
            self.hosts = stack.enter_context(Hosts())
            self._given |= self.hosts.variables
            own = [f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed")]
            socket = f"--socket={folder}/munge.socket"
            self._start(stack, "munged", "--foreground", "--force", socket, *own)
            until((folder / "munge.socket").exists, "munged does not start")
            for node, daemon in ((1, "slurmd -N node1"), (2, "slurmd -N node2"), (1, "slurmctld")):
                script = "mkdir -p /var/tmp/slurmd /var/tmp/slurmctld; exec " + daemon + " -D"
                self._start(stack, SCRIPT, "on", str(node), "sh", "-c", script)
            until(lambda: self.ask("sinfo", "-h", "-o", "%D %T") == "2 idle", "no nodes come up")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def ask(self, *command):  # one of Slurm's programs on the first node
        return subprocess.run(
            [SCRIPT, "on", "1", *command],
            env=self._given,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()

    def _start(self, stack, *command):
        with (self.folder / "daemons.log").open("a") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, **self._given},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        stack.callback(process.wait)
        stack.callback(process.kill)


class Queued:
    """A training run over both nodes, in the queue of a cluster by the template."""

    def __init__(self, cluster, tasks, *words):
        self._cluster = cluster
        self._log = cluster.folder / "job-%j.log"
        self.number = cluster.ask(
            *("sbatch", "--parsable", "--nodes=2", f"--ntasks={tasks}", "--mem-per-cpu=500"),
            *("--time=01:00:00", f"--output={self._log}", "experiments/slurm/train.sbatch"),
            *map(str, words),
        )
        self.path = cluster.folder / "runs" / f"slurm-{self.number}"

    def wait(self, condition):
        try:
            until(condition, f"job {self.number}")
        except TimeoutError as late:
            log = Path(str(self._log).replace("%j", self.number))
            late.add_note(log.read_text(errors="replace")[-2000:])
            raise

    def wait_for_epoch(self, epoch):
        self.wait(lambda: len(rows_of(self.path)) >= epoch)

    def restarts(self):
        return int(self._field("Restarts"))

    def ask_to_stop(self):
        self._cluster.ask("scancel", "--signal=USR1", self.number)

    def lose_a_node(self):
        self._cluster.hosts.cut(2)

    def give_it_back(self):
        self._cluster.hosts.mend(2)

    def stop(self):
        """Lets it save, and takes it out of the queue."""
        self.ask_to_stop()
        self.wait(lambda: self._field("JobState") == "PENDING")
        self._cluster.ask("scancel", self.number)

    def _field(self, name):
        said = self._cluster.ask("scontrol", "show", "job", self.number)
        return next((word.partition("=")[2] for word in said.split() if word.startswith(name)), "")
