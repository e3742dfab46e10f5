"""A real cluster on one computer: munge, slurmctld on a head, four nodes with slurmd and spark-staged. Needs no systemd."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hosts import Host, connect
from node import BUILD, ROOT, Daemon, Dataset, Source, wait_until

NODES = ("n1", "n2", "n3", "n4")
PLUGIN = BUILD / "slurm/spank_spark_stage.so"
DATASETS = {"imagenet": Dataset(40, 100_000), "models": Dataset(10, 50_000, "HF_HOME"), "huge": Dataset(3, 40 << 20)}
ALICE, BOB = "games", "news"  # users that exist on every Debian
PROJECT = ("spark-project", 15999)  # a further group of ALICE's on all hosts

SLURM_CONF = """ClusterName=spark
SlurmctldHost=head({head})
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
PrologFlags={prolog}
KillWait=30
BurstBufferType=burst_buffer/lua
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2
{more}PlugStackConfig={folder}/plugstack.conf
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/ctld/pid
SlurmdPidFile={folder}/spool/%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
SlurmdDebug=debug
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


class Munge:
    def __init__(self, folder):
        home = folder / "munge"
        home.mkdir(mode=0o755)
        (home / "key").touch(mode=0o600)
        (home / "key").write_bytes(os.urandom(128))
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "munged", "--foreground", "--force", f"--key-file={home}/key", f"--socket={home}/socket",
             f"--pid-file={home}/pid", f"--log-file={home}/log", f"--seed-file={home}/seed"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until((home / "socket").exists, "munge has its socket")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Node:
    def __init__(self, host, cluster):
        self.host, self.name, self.cluster = host, host.name, cluster
        self.daemon = Daemon(host, cluster.folder / host.name, cluster.shared)
        self.slurmd = None
        self.start_slurmd()

    def start_slurmd(self):
        self.slurmd = self.host.start("slurmd", "-D", "-N", self.name, "-f", self.cluster.conf, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)

    def story(self):
        """The logs, for analysing a failure."""
        slurmd = (self.cluster.folder / "log" / self.name).read_text(errors="replace").splitlines()
        jobs = [str({key: job[key] for key in ("id", "subject", "holder", "state", "started", "ended", "error")})
                for job in self.daemon.jobs()[-12:]]
        return "\n".join([*map(str, self.daemon.leases()), *jobs, *self.daemon.log_text().splitlines()[-20:], *slurmd[-80:]])

    def restart_slurmd(self):
        for pid in self.host.pids_of("slurmd", "-N"):
            os.kill(pid, 15)
        self.slurmd.wait(30)
        self.start_slurmd()


class Cluster:
    def __init__(self, names=NODES, datasets=None, capacity="64MiB", sections="", inside=(), private_tmp=False):
        # With a /tmp of its own, a job does not see this one; and Slurm refuses to keep the jobs' folders there.
        self.folder = Path(tempfile.mkdtemp(prefix="spark-slurm-", dir="/var/tmp" if private_tmp else None))
        self.folder.chmod(0o755)
        self.conf = self.folder / "slurm.conf"
        self.shared = Source(self.folder / "source", datasets or DATASETS, capacity, sections, inside)
        self.source = self.shared.path
        for name in ("ctld", "spool", "log", "source", "work"):
            (self.folder / name).mkdir()
        self.work = self.folder / "work"  # the users' submission folder
        self.work.chmod(0o777)
        self.shared.fill()
        addresses = {"head": "10.77.0.1"} | {name: f"10.77.0.1{name[1:]}" for name in names}
        known = self.folder / "hosts"
        known.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in addresses.items()))
        groups = self.folder / "group"
        groups.write_text(Path("/etc/group").read_text() + f"{PROJECT[0]}:x:{PROJECT[1]}:{ALICE}\n")
        self.head, *hosts = [Host(name, address, known, groups) for name, address in addresses.items()]
        connect(self.head, hosts)
        self.write_conf(hosts, private_tmp)
        self.use_plugin()
        self.use_burst_buffer()
        self.munge = Munge(self.folder)
        self.controller = self.head.start("slurmctld", "-D", "-f", self.conf, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
        self.nodes = {host.name: Node(host, self) for host in hosts}
        # The head is a login node; its daemon knows the same datasets.
        (self.folder / "head").symlink_to("n1")
        wait_until(lambda: set(self.states().values()) == {"idle"}, "all nodes are idle")

    def write_conf(self, hosts, private_tmp):
        lines = [f"NodeName={host.name} NodeHostname={host.name} NodeAddr={host.address} Port=6818 CPUs=8 State=UNKNOWN"
                 for host in hosts]
        more = {"prolog": "Alloc", "more": ""}
        if private_tmp:
            more = {"prolog": "Alloc,Contain", "more": "JobContainerType=job_container/tmpfs\n"}
            (self.folder / "job_container.conf").write_text(f"AutoBasePath=true\nBasePath={self.folder}/private\n")
        self.conf.write_text(SLURM_CONF.format(head=self.head.address, folder=self.folder, nodes="\n".join(lines), **more))

    def use_plugin(self, argument=None, plugin=PLUGIN, how="optional"):
        """The plugin's line in plugstack.conf, which each command and each step reads."""
        argument = argument or f"socket={self.folder}/%n/api.sock"
        self.write_plugstack(f"{how} {plugin} {argument}")

    def write_plugstack(self, line):
        # Replaced with one rename: an epilog that reads a partial file runs without the plugin.
        (self.folder / "plugstack.new").write_text(line + "\n")
        (self.folder / "plugstack.new").rename(self.folder / "plugstack.conf")

    def use_burst_buffer(self):
        """The example for sites, with this cluster's nodes, and the nodes' sockets instead of ssh."""
        script = (ROOT / "configs/slurm/burst_buffer.lua").read_text()
        for theirs, ours in (('{ "spark1", "spark2", "spark3", "spark4" }', '{ "n1", "n2", "n3", "n4" }'),
                             ("ssh -o BatchMode=yes %s spark-stage",
                              f"{BUILD}/cli/spark-stage --socket {self.folder}/%s/api.sock")):
            assert theirs in script
            script = script.replace(theirs, ours)
        (self.folder / "burst_buffer.lua").write_text(script)
        (self.folder / "burst_buffer.conf").write_text("Directive=SPARK\n")

    def slurm(self, *arguments, user=ALICE, **more):
        """Runs a Slurm command such as srun on the head, as that user."""
        return self.head.run(*arguments, user=user, folder=self.work, environment={"SLURM_CONF": str(self.conf)}, **more)

    def start(self, *arguments, user=ALICE, **more):
        return self.head.start(*arguments, user=user, folder=self.work, environment={"SLURM_CONF": str(self.conf)},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)

    def states(self):
        listed = self.slurm("sinfo", "-h", "-N", "-o", "%N %T").stdout.split()
        return dict(zip(listed[::2], listed[1::2]))

    def jobs(self):
        return self.slurm("squeue", "-h", "-o", "%i %T").stdout.split("\n")[:-1]

    def daemons(self):
        return [node.daemon for node in self.nodes.values()]

    def stop(self):
        for host in [self.head, *(node.host for node in self.nodes.values())]:
            host.stop()
        self.munge.stop()
        if not os.environ.get("SPARK_SLURM_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)
