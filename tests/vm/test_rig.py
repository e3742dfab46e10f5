"""Tests of the rig itself with nvme-cli: failures here are not caused by spark-stage."""
import json

import pytest

from rig.bare import NQN
from rig.machine import disk


pytestmark = pytest.mark.long  # what others need of the rig, they use as well


@pytest.fixture(scope="module")
def pair(bare_pair):
    _, host = bare_pair
    host.sh("modprobe nvme-tcp")
    return bare_pair


def controller(host):
    return host.sh(f"grep -lx {NQN} /sys/class/nvme/*/subsysnqn | xargs dirname").strip()


def test_each_machine_has_an_identity_of_its_own(pair):
    target, host = pair
    for path in ("/etc/machine-id", "/etc/nvme/hostnqn", "/etc/nvme/hostid"):
        assert host.get(path) != target.machine.get(path)
    assert host.get("/etc/nvme/hostnqn").strip() == host.hostnqn
    assert host.sh("hostname").strip() == "host1"


def test_a_host_discovers_the_subsystems_allowed_to_it(pair):
    target, host = pair
    log = json.loads(host.sh(f"nvme discover -t tcp -a {target.address} -s 4420 -o json"))
    assert NQN in [record["subnqn"] for record in log["records"]]
    target.forbid(NQN, host.hostnqn)
    log = json.loads(host.sh(f"nvme discover -t tcp -a {target.address} -s 4420 -o json"))
    assert NQN not in [record["subnqn"] for record in log["records"]]
    target.allow(NQN, host.hostnqn)


def test_a_host_connects_mounts_and_reads(pair):
    target, host = pair
    host.sh(f"nvme connect -t tcp -a {target.address} -s 4420 -n {NQN} -k 5 -c 2 -l -1")
    host.wait_until(f"[ $(cat {controller(host)}/state) = live ] && ls {controller(host)}/nvme*n1")
    # Of a path and its multipath head, only the head has a device node.
    host.sh(f"""mkdir -p /mnt/v
        for device in /dev/nvme*n1; do
            if grep -qx {NQN} /sys/block/$(basename $device)/device/subsysnqn; then mount -o ro,noload $device /mnt/v; fi
        done
        mountpoint /mnt/v""")
    assert host.get("/mnt/v/greeting") == "hello\n"
    assert host.sh("sha256sum </mnt/v/data", 60) == target.machine.sh(
        f"mount -o ro,noload {disk(1)} /mnt && sha256sum </mnt/data && umount /mnt", 60)


def test_a_controller_is_connecting_without_its_cable_and_live_with_it(pair):
    _, host = pair
    state = f"{controller(host)}/state"
    host.set_link(False)
    lost = host.wait_until(f"[ $(cat {state}) = connecting ]", 60)
    host.set_link(True)
    back = host.wait_until(f"[ $(cat {state}) = live ]", 60)
    print(f"connecting {lost:.1f} s after the cable went out, live {back:.1f} s after it came back")
    assert host.get("/mnt/v/greeting") == "hello\n"


def test_a_controller_is_connecting_while_its_target_is_frozen(pair):
    target, host = pair
    state = f"{controller(host)}/state"
    target.machine.freeze()
    host.wait_until(f"[ $(cat {state}) = connecting ]", 60)
    target.machine.thaw()
    host.wait_until(f"[ $(cat {state}) = live ]", 60)


def test_an_nfs_export_mounts(pair):
    target, host = pair
    target.export_nfs("/srv/shared")
    host.sh(f"mkdir -p /mnt/n && mount -t nfs -o vers=4.2,nconnect=2 {target.address}:/srv/shared /mnt/n", 60)
    host.sh("echo from-host >/mnt/n/file && umount /mnt/n")
    assert target.machine.get("/srv/shared/file") == "from-host\n"


def test_power_loss_keeps_synced_data(pair):
    _, host = pair
    host.sh("umount /mnt/v; echo kept >/root/kept; sync")
    host.kill()
    host.start()
    host.wait_ready()
    assert host.get("/root/kept") == "kept\n"
