"""A changed configuration does not disturb volumes in use; the permissions of the socket."""
import signal

import pytest

from rig.product import SOCKET


def controller_of(house, name="datasets"):
    """The controller's name, and the inode of its folder, since a new controller may get the same name."""
    controller = house.product.volume(name)["paths"][0]["controller"]
    return controller, house.host.sh(f"stat -Lc %i /sys/class/nvme/{controller}").strip()


def attributes(house, controller):
    folder = f"/sys/class/nvme/{controller}"
    return house.host.sh(f"cd {folder} && cat reconnect_delay ctrl_loss_tmo fast_io_fail_tmo kato").split()


def test_timers_change_on_the_same_controller_while_the_mount_is_in_use(house):
    house.host.wait_until("[ -e /mnt/rosa-storage/slow/big.bin ]")
    reader = house.host.spawn("exec tail -f /mnt/rosa-storage/slow/big.bin >/dev/null")
    before = controller_of(house)
    try:
        timers = {"reconnect_delay": "3s", "controller_loss": "60s", "fast_fail": "30s"}
        new = house.config(targets={"rose": {"address": house.target.address, **timers}})
        house.host.put("/tmp/new.yaml", new)
        step = next(step for step in house.product.json("config plan /tmp/new.yaml")["volumes"] if step["name"] == "datasets")
        assert step["action"] == "set live" and step["refused"] is None
        assert attributes(house, before[0]) == ["2", "off", "off", "5"], "a preview changed something"
        house.product.configure(new)
        assert controller_of(house) == before, "connected anew for its timers"
        assert attributes(house, before[0]) == ["3", "60", "30", "5"]
        assert house.product.volume("datasets")["state"] == "ready"
    finally:
        reader.signal(signal.SIGTERM)
        house.product.configure(house.config())
    assert attributes(house, before[0]) == ["2", "off", "off", "5"]


@pytest.mark.long
def test_a_reload_reconnects_only_changed_volumes_that_are_not_in_use(house):
    targets = {"other": {"address": house.target.address}}
    with house.volume("moved", target="other", targets=targets, fill="echo hello >file"):
        house.product.wait_volume("moved", "ready", 60)
        untouched, before = controller_of(house), controller_of(house, "moved")
        body = {"target": "other", "subsystem": "moved", "mount": "/mnt/moved"}
        targets["other"]["keep_alive"] = "7s"
        new = house.config(targets=targets, volumes={"moved": body})
        user = house.host.spawn("exec tail -f /mnt/moved/file >/dev/null")
        house.host.wait_until("pgrep -x tail")
        house.host.put("/tmp/new.yaml", new)
        assert house.product.run("config plan /tmp/new.yaml").rc == 7
        house.product.configure(new)
        volume = house.product.volume("moved")
        assert volume["state"] == "ready" and controller_of(house, "moved") == before
        assert "in use by tail" in " ".join(volume["warnings"])
        user.signal(signal.SIGTERM)
        house.host.wait_until("! pgrep -x tail")
        house.product.configure(new)
        house.product.wait_volume("moved", "ready", 60)
        after = controller_of(house, "moved")
        assert after != before and attributes(house, after[0])[3] == "7"
        assert not house.product.volume("moved")["warnings"]
        assert controller_of(house) == untouched


@pytest.mark.long
def test_a_volume_removed_from_the_file_is_taken_down_once_it_is_unused(house):
    with house.volume("leaving", fill="echo hello >file"):
        house.product.wait_volume("leaving", "ready", 60)
        user = house.host.spawn("exec tail -f /mnt/leaving/file >/dev/null")
        house.host.wait_until("pgrep -x tail")
        house.product.configure(house.config())
        assert house.product.volume("leaving")["state"] == "ready"
        house.host.sh("mountpoint -q /mnt/leaving")
        user.signal(signal.SIGTERM)
        house.host.wait_until("! pgrep -x tail")
        house.product.configure(house.config())
        assert "leaving" not in {volume["name"] for volume in house.product.status()["volumes"]}
        house.host.sh("! mountpoint -q /mnt/leaving && ! grep -qx leaving /sys/class/nvme/*/subsysnqn")


def test_the_socket_is_open_to_root_and_the_group_only(house):
    assert house.host.sh(f"stat -c '%a %G' {SOCKET}").strip() == "660 spark-stage"
