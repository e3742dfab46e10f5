"""Bad configurations are refused with the place and the reason; what works goes on."""
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


def test_an_unknown_key_is_named_with_its_place_and_the_nearest_one(house):
    house.host.put("/tmp/typo.yaml", "version: 1\nvolumes:\n  a:\n    nfs: 10.0.0.1:/x\n    mont: /mnt/a\n")
    result = house.product.run("config check /tmp/typo.yaml")
    assert result.rc == 2
    assert "/tmp/typo.yaml:5:5" in result.err + result.out and "mount" in result.err + result.out


def test_no_configuration_is_a_sentence_and_exit_2(house):
    result = house.host.run("spark-staged --config /nowhere.yaml --state-dir /tmp/state --socket /tmp/s.sock")
    assert result.rc == 2
    assert "/nowhere.yaml" in result.err
    result = house.product.run("config check /nowhere.yaml")
    assert result.rc == 2 and "/nowhere.yaml" in result.err


def test_without_a_daemon_the_client_says_so(house):
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


def test_only_members_of_the_group_may_ask(house):
    house.host.sh("id rig-user 2>/dev/null || useradd rig-user")
    result = house.host.run("setpriv --reuid rig-user --clear-groups --regid rig-user spark-stage status")
    assert result.rc == 1 and "spark-stage" in result.err
    group = "$(getent group spark-stage | cut -d: -f3)"
    member = f"setpriv --reuid rig-user --regid rig-user --groups {group} spark-stage"
    house.host.sh(f"{member} status")
    assert house.host.run(f"{member} volumes down nas").rc == 1
    assert house.product.volume("nas")["state"] == "ready"


def test_the_socket_is_not_open_to_everybody(house):
    assert house.host.sh(f"stat -c '%a %G' {SOCKET}").strip() in ("660 spark-stage", "666 spark-stage")
