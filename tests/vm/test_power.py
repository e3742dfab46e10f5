"""Power loss during a copy: a finished copy is complete, and the next run resumes."""
import json
import os

import pytest

from rig.house import LOCAL

CUTS = int(os.environ.get("SPARK_POWER_CUTS", "10"))


@pytest.fixture
def power(house):
    """A folder for the test, and its tools."""
    house.host.sh("modprobe -a dm-log-writes loop")
    yield f"{LOCAL}/power"
    house.host.run(f"""pkill -KILL -f '[s]park-staged --config {LOCAL}/power' && sleep 1
                       umount -R {LOCAL}/power/drive; dmsetup remove recorded; losetup -D; rm -rf {LOCAL}/power""", 60)


@pytest.mark.parametrize("through, filesystem", [("copy", "ext4"), pytest.param("copy", "xfs", marks=pytest.mark.long), ("cache", "ext4")])
def test_after_a_power_cut_published_copies_are_complete_and_the_next_run_resumes(house, power, through, filesystem):
    """A copy, and another one that replaces it. Unflushed writes are partly lost, as in a drive's cache."""
    seed = 1
    result = house.host.run(f"/usr/local/lib/rig/power-cuts {through} {filesystem} {CUTS} {seed} {power}", 600)
    assert result.rc == 0, result.err
    seen = json.loads(result.out)
    for half, cuts in seen.items():
        print(f"{half}:", *(f"{cut['after']}/{cut['of']} {'new' if cut['new'] else cut['resumed']}" for cut in cuts))
    # The share of the journal that is on the drive at a cut depends on the machine's speed.
    assert any(cut["resumed"] > 0 for cuts in seen.values() for cut in cuts), "no run went on from the journal"
    assert sum(len(cuts) for cuts in seen.values()) == CUTS
