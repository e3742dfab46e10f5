"""An NFS export that several hosts write."""
import json
import signal
from contextlib import contextmanager

import pytest

from rig.house import NAS_EXPORT, NAS_MOUNT, TARGET_ADDRESS
from rig.own_volume import assert_whole
from rig.product import UNIT, Product, config_text
from test_stage_out import wait_progress

FILE = f"{NAS_EXPORT}/moving/file"
STAGE_WORKERS = "'worker [s]tage'"  # does not match the shell that runs pgrep
SENDERS = "'worker [s]tage-out'"
OUT = "/var/tmp/out/step-1000"
THERE = f"{NAS_EXPORT}/run7"
PARTIAL = f"{THERE}/.step-1000.spark-partial"
FILES_OF_HOST, MOVED = 3, 2


def test_a_file_changed_by_another_host_during_the_copy_is_never_published_mixed(house):
    """This host has no sign of the change: it may cache the file's size and times for ten minutes, has no delegation that
    the server would recall, and does not request the access time. Only a request to the server reveals it."""
    server, product = house.target_machine, house.product
    write = f"head -c 16M /dev/urandom | dd of={FILE} conv=notrunc bs=1M iflag=fullblock status=none && sync -f {FILE}"
    server.sh(f"echo 0 >/proc/sys/fs/leases-enable; mkdir {NAS_EXPORT}/moving && {write}")
    remembering = {"remembering": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": "/mnt/remembering",
                                   "options": ["vers=4.2", "actimeo=600", "noatime"]}}
    try:
        with house.configured(volumes=remembering, cache={"chunk": "256KiB", "depth": 1}):
            product.wait_volume("remembering", "ready")
            with house.slow_copy("remembering:moving", "2MB/s") as client:
                house.host.sh(f"pkill -STOP -f {STAGE_WORKERS}")
                half = product.dataset("remembering:moving")["progress"]["bytes_done"]
                server.sh(write)
                house.host.sh(f"pkill -CONT -f {STAGE_WORKERS}")
                result = client.wait(180)
            assert 0 < half < 16 << 20, "nothing, or all of it, had been read when it changed"
            assert result.rc == 0, result.err
            path = json.loads(result.out)["datasets"][0]["path"]
            assert checksum(house.host, f"{path}/file") == checksum(server, FILE)
            product.sh("evict remembering:moving")
    finally:
        server.sh(f"echo 1 >/proc/sys/fs/leases-enable; rm -r {NAS_EXPORT}/moving")


def checksum(machine, path):
    return machine.sh(f"sha256sum <{path}", 60)


class Writers:
    """Two hosts that write the export, with one volume `nas`."""

    def __init__(self, house, second):
        self.server = house.target_machine
        self.hosts = [house.host, second]
        self.products = [house.product, Product(second)]

    def configure_second(self, has_volume, *options, **sections):
        nas = {"nas": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": NAS_MOUNT, "access": "exclusive", "options": ["vers=4.2", *options]}}
        self.products[1].configure(config_text(targets={"rose": {"address": TARGET_ADDRESS}}, volumes=nas if has_volume else {}, **sections))
        if has_volume:
            self.products[1].wait_volume("nas", "ready", 120)

    def remove_second(self):
        self.products[1].run("volumes down nas", 120)
        self.configure_second(False)

    def clear(self):
        self.server.sh(f"rm -rf {THERE}")
        for host in self.hosts:
            host.sh("rm -rf /var/tmp/out")

    def save(self, index, name="shard-{host}-{number}", mib=1):
        files = [name.format(host=index, number=number) for number in range(FILES_OF_HOST)]
        self.hosts[index].sh(f"mkdir -p {OUT} && cd {OUT} && for f in {' '.join(files)}; do head -c {mib}M /dev/urandom >$f; done; sync")

    def sums(self, index):
        return sums(self.hosts[index], OUT)

    def visible(self):
        return self.server.sh(f"ls {THERE}").split()

    def assert_published(self, *expected):
        """Nothing is being sent any more. The checkpoint has one of these contents, and nothing is left beside it."""
        for product in self.products:
            product.machine.wait_until("! ls /var/lib/spark-stage/stage-outs/*.json", 120)
            product.wait_volume("nas", "ready", 120)
        assert sums(self.server, f"{THERE}/step-1000") in [sorted(one) for one in expected]
        assert sorted(self.server.sh(f"ls -A {THERE}").split()) == [".step-1000.spark-manifest", "step-1000"]
        for product in self.products:
            assert "run7/step-1000" in assert_whole(product, "nas", NAS_MOUNT)


def sums(machine, folder):
    return sorted(machine.sh(f"cd {folder} && sha256sum *", 60).splitlines())


@pytest.fixture
def writers(house, second_host):
    both = Writers(house, second_host)
    both.configure_second(True)
    yield both
    both.remove_second()
    both.clear()


# --- the shards of a checkpoint ---


def send_shard(writers, index):
    writers.products[index].sh(f"stage-out {OUT} nas:run7/step-1000 --nodes 2 --detach", 60)


class HeldJoin:
    """The worker that joins the shards is stopped in the middle: before a rename, when MOVED files are in their new folder."""

    def __init__(self, writers, joiner):
        self.host = writers.hosts[joiner]
        daemon = writers.products[joiner].main_pid()
        self._strace = self.host.spawn("exec strace -qq -f -e trace=renameat -e inject=renameat:delay_enter=3600s:when="
                                       f"{MOVED + 1} -o /run/renames -p {daemon}")
        try:
            self.host.wait_until(f"grep -q 'TracerPid:.[1-9]' /proc/{daemon}/status")
            send_shard(writers, joiner)
            self.host.wait_until(f"[ $(grep -c 'renameat(' /run/renames) -eq {MOVED + 1} ]", 120)
            assert len(writers.server.sh(f"ls {PARTIAL}/data").split()) == MOVED
            assert writers.visible() == []
        except BaseException:
            self.let_go()
            raise

    def kill(self):
        """Kills daemon and worker."""
        self.host.sh(f"systemctl kill --signal KILL {UNIT}")
        self.let_go()

    def let_go(self):
        self._strace.signal(signal.SIGKILL)
        self._strace.wait(30)


def begin_join(writers, joiner):
    """Both hosts have sent their shards, and one of them is in the middle of joining them."""
    for index in (0, 1):
        writers.save(index)
    send_shard(writers, 1 - joiner)
    wait_progress(writers.products[1 - joiner], lambda row: row["phase"] == "stalled" and "host" in row.get("reason", ""), 120)
    return HeldJoin(writers, joiner)


@pytest.mark.long
def test_a_join_of_shards_that_a_kill_interrupts_is_completed_by_the_same_host(writers):
    """The other host's daemon is off meanwhile, so it can't be the one that does."""
    joiner, other = writers.hosts
    join = begin_join(writers, 0)
    other.sh(f"systemctl stop {UNIT}", 60)
    try:
        join.kill()
        writers.server.wait_until(f"[ -e {THERE}/step-1000 ]", 120)
    finally:
        other.sh(f"systemctl start {UNIT}", 60)
    writers.assert_published(writers.sums(0) + writers.sums(1))


@pytest.mark.long
def test_a_join_of_shards_on_a_host_that_loses_its_power_is_completed_by_the_other(writers):
    begin_join(writers, 1)
    joiner = writers.hosts[1]
    expected = writers.sums(0) + writers.sums(1)
    joiner.sh("sync")
    joiner.kill()
    try:
        writers.server.wait_until(f"[ -e {THERE}/step-1000 ]", 300)
    finally:
        joiner.start()
        joiner.wait_ready(until="spark-stage status")
    writers.assert_published(expected)


# --- folders in the cache of an NFS client ---


def test_a_checkpoint_of_another_host_is_seen_although_this_host_has_cached_the_folder(writers):
    """The client may show a folder as it was ten minutes ago, also that it is not there, and has no delegation of it that the
    server would recall."""
    asker, server = writers.products[1], writers.server
    writers.remove_second()
    server.sh("echo 0 >/proc/sys/fs/leases-enable")
    try:
        asker.machine.sh("mkdir -p /var/tmp/empty")
        writers.configure_second(True, "acdirmin=600", "acdirmax=600",
                                 outputs={"run7": {"path": "/var/tmp/empty", "volume": "nas", "to": "run7", "complete": "rename"}})
        assert asker.run("latest run7", 60).rc == 3
        writers.save(0)
        for step in (1000, 1001):
            source = f"/var/tmp/out/step-{step}"
            writers.hosts[0].sh(f"[ -e {source} ] || cp -a {OUT} {source}")
            writers.products[0].sh(f"stage-out {source} nas:run7/step-{step}", 120)
            found = json.loads(asker.sh("latest run7 --json", 120))
            assert found["name"] == f"step-{step}", found
    finally:
        server.sh("echo 1 >/proc/sys/fs/leases-enable")


# --- hosts of one name ---


@contextmanager
def namesakes(writers, nfs_id=""):
    """The second host has the name of the first. Without an ID of its own, the server takes their NFS clients for one that restarts."""
    host, unique = writers.hosts[1], "/sys/module/nfs/parameters/nfs4_unique_id"
    writers.remove_second()
    host.sh(f"hostname {writers.hosts[0].name}; printf '{nfs_id}\\0' >{unique}")
    try:
        writers.configure_second(True)
        yield
    finally:
        writers.remove_second()
        host.sh(f"hostname {host.name}; printf '\\0' >{unique}")
        writers.configure_second(True)


def begin_sending(writers, index):
    """Starts to send a checkpoint to the path of the other host; returns the number of the job."""
    writers.save(index, "model-{number}", mib=8)
    return writers.products[index].sh(f"stage-out {OUT} nas:run7/step-1000 --max-rate 3MB/s --detach", 60).strip()


@pytest.mark.parametrize("nfs_id, status", [
    pytest.param("another", 4, id="two NFS clients"), pytest.param("", 7, id="one NFS client", marks=pytest.mark.long)])
def test_of_two_hosts_of_one_name_that_send_to_one_path_one_publishes_and_the_other_is_told_why(writers, nfs_id, status):
    first, second = writers.products
    with namesakes(writers, nfs_id):
        clients = set(writers.server.sh("grep -h ^name /proc/fs/nfsd/clients/*/info").splitlines())
        assert len(clients) == (2 if nfs_id else 1), clients
        job = begin_sending(writers, 0)
        wait_progress(first, lambda row: row.get("bytes_done", 0) > 4 << 20)
        first.machine.sh(f"pkill -STOP -f {SENDERS}")
        try:
            refused = second.run(f"wait --job {begin_sending(writers, 1)}", 300)
        finally:
            first.machine.sh(f"pkill -CONT -f {SENDERS}")
        assert refused.rc == status and f"another host that is also called {first.machine.name} " in refused.err, refused
        assert writers.visible() == []
        sent = first.run(f"wait --job {job}", 300)
        assert sent.rc == 0, sent.err
        writers.assert_published(writers.sums(0))
