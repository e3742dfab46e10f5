"""Callers other than root: their permissions, and the cleanup after a caller has gone."""
import signal

import pytest

MEMBER = "alice"
PROJECTS = 300  # more than the 256 groups of a fixed-size list
MOST_CONNECTIONS = 128  # for a user other than root

# Opens more event streams of a job than one user may have, prints how they were answered, and keeps them open.
STREAMS = f"""
import collections, socket, sys, time
held = []
def answer_to_one_more():
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].settimeout(60)
    held[-1].connect("/run/spark-stage/api.sock")
    held[-1].sendall(f"GET /v1/jobs/{{sys.argv[1]}}/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n".encode())
    return held[-1].recv(65536).split()[1].decode()
print(dict(collections.Counter(answer_to_one_more() for _ in range({MOST_CONNECTIONS} + 2))), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def member(house):
    """Command prefix that runs a command as a user of many groups, one of them the daemon's."""
    house.host.sh(f"useradd {MEMBER} && usermod -aG spark-stage {MEMBER}")
    projects = "".join(f"project{number}:x:{20000 + number}:{MEMBER}\n" for number in range(PROJECTS))
    house.host.sh("cat >>/etc/group", stdin=projects.encode())
    yield f"setpriv --reuid {MEMBER} --regid {MEMBER} --init-groups"
    house.host.sh(f"sed -i /^project/d /etc/group && userdel -f {MEMBER}")


def test_a_member_of_more_than_256_groups_has_access(house, member):
    assert int(house.host.sh(f"{member} id -G | wc -w")) > 256
    house.host.sh(f"{member} spark-stage status")
    refused = house.host.run(f"{member} spark-stage volumes down nas")
    assert refused.rc == 1 and "root" in refused.err, refused


def test_streams_of_a_disconnected_client_no_longer_count_while_their_job_is_silent(house, member):
    with house.slow_copy("slow", "2MB/s"):
        waiting = house.host.spawn("exec spark-stage stage small --max-rate 2MB/s")  # it would start after 90 s
        house.product.wait_dataset("small", "queued")
        job = next(job["id"] for job in house.product.get("/v1/jobs")[1]["jobs"]
                   if job["state"] == "running" and job["subject"] == "small")
        streams = house.host.spawn(f"exec {member} python3 - {job}", stdin=STREAMS.encode())
        try:
            streams.wait_said("}", 60)
            assert streams.out == f"{{'200': {MOST_CONNECTIONS}, '429': 2}}\n"
            refused = house.host.run(f"{member} spark-stage status")
            assert refused.rc == 4 and "too many connections" in refused.err, refused
        finally:
            streams.signal(signal.SIGKILL)
        house.host.wait_until(f"{member} spark-stage status", 30)
        assert house.product.dataset("small")["state"] == "queued", "the job was not silent all the while"
        waiting.signal(signal.SIGINT)
        waiting.wait(30)
    house.empty_cache()
