"""Power loss during a copy: a finished copy is complete, and the next run resumes."""
import json
import os

import pytest

from rig.house import LOCAL

CUTS = int(os.environ.get("SPARK_POWER_CUTS", "0"))  # instead of the number below


@pytest.fixture
def power(house):
    """A folder for the test, and its tools."""
    house.host.sh("modprobe -a dm-log-writes loop")
    yield f"{LOCAL}/power"
    house.host.run(f"""pkill -KILL -f '[s]park-staged --config {LOCAL}/power' && sleep 1
                       umount -R {LOCAL}/power/drive; dmsetup remove recorded; losetup -D; rm -rf {LOCAL}/power""", 60)


def also(*parameters):
    """For make check-long: the cache uses the same engine as `copy`."""
    return pytest.param(*parameters, marks=pytest.mark.long)


@pytest.mark.parametrize("through, filesystem, cuts, seed", [
    ("cache", "ext4", 6, 1), also("cache", "ext4", 10, 2), also("copy", "ext4", 10, 1), also("copy", "xfs", 10, 1)])
def test_after_a_power_cut_published_copies_are_complete_and_the_next_run_resumes(house, power, through, filesystem, cuts, seed):
    """A copy, and another one that replaces it. Unflushed writes are partly lost, as in a drive's cache."""
    cuts = CUTS or cuts
    result = house.host.run(f"/usr/local/lib/rig/power-cuts {through} {filesystem} {cuts} {seed} {power}", 600)
    assert result.rc == 0, result.err
    seen = json.loads(result.out)
    for half, of_half in seen.items():
        print(f"{half}:", *(f"{cut['after']}/{cut['of']} {'new' if cut['new'] else cut['resumed']}" for cut in of_half))
    # The share of the journal that is on the drive at a cut depends on the machine's speed.
    assert any(cut["resumed"] > 0 for of_half in seen.values() for cut in of_half), "no run went on from the journal"
    assert sum(len(cut) for cut in seen.values()) == cuts
