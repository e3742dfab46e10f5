"""Discovery of a target's offers, from a host without a daemon."""
import json

from rig.house import SUBSYSTEM


def test_the_table_names_subsystem_and_portal(house):
    out = house.product.sh(f"discover {house.target.address}")
    assert SUBSYSTEM in out and house.target.address in out and "4420" in out


def test_json_has_every_subsystem(house):
    found = json.dumps(house.product.json(f"discover {house.target.address}"))
    assert f'"{SUBSYSTEM}"' in found


def test_yaml_is_a_configuration_that_passes_the_check(house):
    house.host.sh(f"spark-stage discover {house.target.address} --yaml >/tmp/discovered.yaml")
    assert SUBSYSTEM in house.host.get("/tmp/discovered.yaml")
    house.product.sh("config check /tmp/discovered.yaml")


def test_it_works_while_the_daemon_is_stopped(house):
    house.host.sh("systemctl stop spark-staged")
    try:
        assert SUBSYSTEM in house.product.sh(f"discover {house.target.address}")
    finally:
        house.host.sh("systemctl start spark-staged")
    house.wait_ready()


def test_an_unused_address_is_unavailable(house):
    result = house.product.run("discover 10.77.0.99", 60)
    assert result.rc == 4
    assert "10.77.0.99" in result.err


def test_a_wrong_port_is_unavailable(house):
    result = house.product.run(f"discover {house.target.address} --port 4999")
    assert result.rc == 4
    assert "4999" in result.err
