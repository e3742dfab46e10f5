"""Invalid configurations are refused with the location and the reason; volumes in use are not disturbed."""
import signal

from rig.product import CONFIG, SOCKET, UNIT


def test_a_bad_file_on_reload_keeps_the_old_configuration(house):
    in_force = house.product.get("/v1/config")
    good = house.config()
    house.host.put(CONFIG, good + "cach: {path: /elsewhere}\n")
    line = len(good.splitlines()) + 1
    try:
        status, body = house.product.post("/v1/reload")
        assert status >= 400 and body["error"]["kind"] == "invalid"
        assert f"spark-stage.yaml:{line}:1" in body["error"]["what"] and "cache" in str(body["error"])
        house.host.sh(f"systemctl reload {UNIT}")
        house.host.wait_until(f"journalctl -u {UNIT} -b | grep -F spark-stage.yaml:{line}:1", 20)
        assert house.product.get("/v1/config") == in_force
        assert {v["state"] for v in house.product.status()["volumes"]} == {"ready"}
    finally:
        house.product.configure(good)


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


def test_an_unknown_key_is_named_with_its_place_and_the_nearest_one(house):
    house.host.put("/tmp/typo.yaml", "version: 1\nvolumes:\n  a:\n    nfs: 10.0.0.1:/x\n    mont: /mnt/a\n")
    result = house.product.run("config check /tmp/typo.yaml")
    assert result.rc == 2
    assert "/tmp/typo.yaml:5:5" in result.err + result.out and "mount" in result.err + result.out


def test_a_missing_configuration_is_named_and_exits_with_2(house):
    result = house.host.run("spark-staged --config /nowhere.yaml --state-dir /tmp/state --socket /tmp/s.sock")
    assert result.rc == 2
    assert "/nowhere.yaml" in result.err
    result = house.product.run("config check /nowhere.yaml")
    assert result.rc == 2 and "/nowhere.yaml" in result.err


def test_the_client_reports_a_missing_daemon(house):
    result = house.product.run("--socket /tmp/nobody.sock status")
    assert result.rc == 4
    assert "/tmp/nobody.sock" in result.err and "spark-staged" in result.err


def test_copy_works_without_daemon_and_configuration(house):
    house.host.sh(f"systemctl stop {UNIT} && mv {CONFIG} {CONFIG}.away")
    try:
        house.host.sh("rm -rf /local/a /local/b; mkdir -p /local/a/sub && dd if=/dev/urandom of=/local/a/sub/f bs=1M count=8 "
                      "status=none && chmod 640 /local/a/sub/f")
        house.product.sh("copy /local/a /local/b --verify", 120)
        house.host.sh("/usr/local/lib/rig/same-tree /local/a /local/b")
    finally:
        house.host.sh(f"mv {CONFIG}.away {CONFIG}; systemctl start {UNIT}")
    house.wait_ready()


def test_only_members_of_the_group_have_access(house):
    house.host.sh("id rig-user 2>/dev/null || useradd rig-user")
    result = house.host.run("setpriv --reuid rig-user --clear-groups --regid rig-user spark-stage status")
    assert result.rc == 1 and "spark-stage" in result.err
    group = "$(getent group spark-stage | cut -d: -f3)"
    member = f"setpriv --reuid rig-user --regid rig-user --groups {group} spark-stage"
    house.host.sh(f"{member} status")
    assert house.host.run(f"{member} volumes down nas").rc == 1
    assert house.product.volume("nas")["state"] == "ready"


def test_the_socket_is_open_to_root_and_the_group_only(house):
    assert house.host.sh(f"stat -c '%a %G' {SOCKET}").strip() == "660 spark-stage"
