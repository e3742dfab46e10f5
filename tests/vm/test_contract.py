"""The contract of every NvmeGateway and ReservationCommands: the unit tests' contract, on this kernel and a real target."""
import shlex
import subprocess

import pytest

from rig.settings import CONTRACT_TESTS

PORT = 4430  # a separate port: cutting it off does not affect the house's volumes
OFFERED, FORBIDDEN = "contract", "contract-of-another-host"
PROGRAM = "/run/spark_nvmetcp_tests"
CUT = (f"nft add table inet cut; nft add chain inet cut out '{{ type filter hook output priority 0; }}'; "
       f"nft add rule inet cut out tcp dport {PORT} drop")
MEND = "nft delete table inet cut"


@pytest.fixture
def fabric(house, tmp_path):
    """The contract's program on the host, and two subsystems on the target for it; one of them does not allow this host."""
    if not CONTRACT_TESTS.exists():
        pytest.skip(f"{CONTRACT_TESTS} is not built - run `make check STEPS=build` first")
    stripped = tmp_path / "contract"
    subprocess.run(["strip", "-o", stripped, CONTRACT_TESTS], check=True)
    house.host.put(PROGRAM, stripped.read_bytes(), "755")
    for name, allowed in ((OFFERED, None), (FORBIDDEN, ["nqn.2014-08.org.example:somebody-else"])):
        house.target.export(name, house.target.image(name, "64M"), port=PORT, allowed_hosts=allowed, reservations=True)
    try:
        yield house
    finally:
        house.host.run(f"{MEND}; rm -f {PROGRAM}")
        for name in (OFFERED, FORBIDDEN):
            house.target.remove(name)


def test_gateway_and_reservations_keep_their_contract_on_a_real_kernel_and_target(fabric):
    result = fabric.host.run(
        f"SPARK_REAL_TARGET={fabric.target.address}:{PORT}:{OFFERED} SPARK_REAL_FORBIDDEN={FORBIDDEN} "
        f"SPARK_REAL_CUT={shlex.quote(CUT)} SPARK_REAL_MEND={shlex.quote(MEND)} "
        f"{PROGRAM} --gtest_filter='*Contract*/Libnvme' --gtest_brief=1", 240)
    print(result.out)
    assert result.rc == 0, result.out + result.err
    assert "PASSED" in result.out and "SKIPPED" not in result.out
