"""Three paths side by side."""
import json

import pytest

PATHS = "nvme-tcp=/mnt/yard nfs=/mnt/dell-shared local=/local"


@pytest.fixture(scope="module")
def measured(house):
    with house.volume("yard", access="exclusive", fence="none", size="512M"):
        house.product.wait_volume("yard", "ready")
        result = house.product.run(f"bench {PATHS} --size 16MiB --runtime 1s --rounds 1 --json /tmp/bench.json", 400)
        assert result.rc == 0, result.out + result.err
        leftovers = house.host.sh("ls -A /mnt/yard /mnt/dell-shared /local")
        yield result.out, json.loads(house.host.get("/tmp/bench.json")), leftovers


def test_one_table_compares_the_paths(measured):
    table, _, _ = measured
    print(table)
    for word in ("nvme-tcp", "nfs", "local", "read", "write"):
        assert word in table


def test_the_numbers_are_also_json(measured):
    _, document, _ = measured
    text = json.dumps(document)
    assert all(f'"{name}"' in text for name in ("nvme-tcp", "nfs", "local"))


def test_it_cleans_up_after_itself(measured):
    assert "bench" not in measured[2]
