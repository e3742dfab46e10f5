"""Discovery of a target's offers."""
from rig.house import SUBSYSTEM


def test_the_table_names_the_offers_and_the_yaml_is_a_configuration_that_passes_the_check(house):
    table = house.product.sh(f"discover {house.target.address}")
    assert SUBSYSTEM in table and house.target.address in table and "4420" in table
    house.host.sh(f"spark-stage discover {house.target.address} --yaml >/tmp/discovered.yaml")
    assert SUBSYSTEM in house.host.get("/tmp/discovered.yaml")
    house.product.sh("config check /tmp/discovered.yaml")
