"""A real Slurm on the hosts of tests/launch/hosts.py: slurmctld at the notebook, a slurmd on each host, munge between
them.

Its files lie in a folder of the test, and every host has a name of its own, as machines of a cluster have. It needs
Debian's slurmctld, slurmd, slurm-client and munge; their services need not run, and are not used. The daemons end
with this process, however that ends.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launch.hosts import LIMIT, Hosts

WITH_US = ["setpriv", "--pdeathsig", "KILL"]
CONFIG = """\
ClusterName=ringside
SlurmctldHost=localhost({outside})
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SlurmdParameters=config_overrides
MailProg=/bin/true
PartitionName=all Nodes=ALL Default=YES
"""


def needs_slurm():
    """Skips the test where there is no Slurm; with CI=true it fails instead."""
    sbin = os.environ["PATH"] + ":/usr/sbin"  # which a user who becomes root may lack
    lacking = [name for name in ("slurmctld", "slurmd", "srun", "munged") if not shutil.which(name, path=sbin)]
    if lacking:
        complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        complain(f"{lacking[0]} is missing: install the packages slurmctld, slurmd, slurm-client and munge")


class Slurm:
    """A cluster of the hosts, whose names are `names`. `environ` is for whoever calls srun."""

    def __init__(self, hosts: Hosts, folder: Path):
        self.hosts, self.folder, self.daemons = hosts, folder, []
        self.names = [f"node{index}" for index in range(len(hosts.addresses))]
        config = CONFIG.format(folder=folder, outside=hosts.outside)
        for name, address in zip(self.names, hosts.addresses, strict=True):
            config += f"NodeName={name} NodeHostname={name} NodeAddr={address} State=UNKNOWN\n"
        (folder / "slurm.conf").write_text(config)
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # of which nothing is used, on any machine
        (folder / "state").mkdir()
        key = os.open(folder / "key", os.O_WRONLY | os.O_CREAT, 0o400)
        os.write(key, secrets.token_bytes(64))
        os.close(key)
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
        files = {"key-file": "key", "socket": "munge.sock", "pid-file": "munge.pid", "log-file": "munge.log"}
        files |= {"seed-file": "munge.seed"}
        words = [f"--{option}={folder}/{name}" for option, name in files.items()]
        self._daemon("munged", "munged", "--foreground", "--force", "--num-threads=1", *words)
        self._wait_for((folder / "munge.sock").exists)
        self._daemon("slurmctld", "slurmctld", "-D", "-i")
        for index, name in enumerate(self.names):
            (folder / name).mkdir()
            apart = ["nsenter", f"--net=/run/netns/{hosts.name(index)}", "unshare", "--uts"]
            self._daemon(name, *apart, "sh", "-c", f"hostname {name} && exec slurmd -D")
        self._wait_for(lambda: self._states() == ["idle"] * len(self.names))

    def _daemon(self, name: str, *words: str) -> None:
        with open(self.folder / f"{name}.out", "wb") as log:
            quiet = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.daemons.append(subprocess.Popen([*WITH_US, *words], env=self.environ, **quiet))

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + LIMIT
        while not condition():
            ended = [process.args for process in self.daemons if process.poll() is not None]
            if ended or time.monotonic() > until:
                self.close()
                raise AssertionError(f"Slurm does not come up, {ended} has ended:\n{self.logs()}")
            time.sleep(0.1)

    def _states(self) -> list[str]:
        """Of the nodes; none as long as slurmctld does not answer."""
        sinfo = ["sinfo", "--noheader", "--Node", "--format=%T"]
        return subprocess.run(sinfo, env=self.environ, capture_output=True, text=True, timeout=LIMIT).stdout.split()

    def run(self, *words: str) -> str:
        """A command of Slurm, run where the notebook is."""
        done = subprocess.run(words, env=self.environ, capture_output=True, text=True, timeout=LIMIT)
        assert not done.returncode, (words, done.stderr, self.logs())
        return done.stdout

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.out")))

    def close(self) -> None:
        """The daemons; what a job has left is in the hosts, and ends with them."""
        for process in reversed(self.daemons):
            process.terminate()
            process.wait(LIMIT)
