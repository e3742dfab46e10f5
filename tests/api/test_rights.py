"""Permissions by user, tested with processes of other users: a member of the group spark-stage, and a stranger."""
import contextlib
import json
import os
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from openapi_file import OpenApi
from staged import PATIENCE_S, Daemon

NOBODY, GROUP = 65534, 64999
OPERATIONS = OpenApi().operations()
# Self-contained, since its user may be unable to read this folder.
CLIENT = """
import http.client, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
connection = Connection("localhost")
try:
    connection.request(sys.argv[2], sys.argv[3], sys.argv[4] or None)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode(), end="")
except PermissionError:
    print("no connection", end="")
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module")
def daemon():
    """A daemon that finds the group spark-stage, even if this machine does not have it, in a folder that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="spark-rights-") as folder:
        os.chmod(folder, 0o755)
        (Path(folder) / "group").write_text(f"root:x:0:\nspark-stage:x:{GROUP}:\n")
        (Path(folder) / "passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
        running = Daemon(Path(folder), {"LD_PRELOAD": "libnss_wrapper.so", "NSS_WRAPPER_GROUP": f"{folder}/group",
                                        "NSS_WRAPPER_PASSWD": f"{folder}/passwd"})
        yield running
        running.stop()


def ask_as(daemon, groups, method, path, body=""):
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-c", CLIENT, str(daemon.socket), method, path, body],
        user=NOBODY, group=groups[0], extra_groups=groups[1:], capture_output=True, text=True, timeout=PATIENCE_S,
        check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    if done.stdout == "no connection":
        return None, {}
    status, content = done.stdout.split(" ", 1)
    return int(status), content


def asked(path):
    return path.replace("{name}", "datasets").replace("{id}", "1")


@pytest.mark.parametrize("groups", [[GROUP], [NOBODY, GROUP]], ids=["primary", "supplementary"])
@pytest.mark.parametrize("method, path", [key for key, operation in OPERATIONS.items() if "x-root-alone" in operation])
def test_root_only_requests_are_denied_to_the_group(daemon, groups, method, path):
    status, content = ask_as(daemon, groups, method, asked(path))
    assert status == 403
    assert json.loads(content)["error"]["what"] == f"uid {NOBODY} may not do this"


@pytest.mark.parametrize("method, path", [key for key, operation in OPERATIONS.items() if "x-root-alone" not in operation])
def test_all_other_requests_are_allowed_to_the_group(daemon, method, path):
    status, content = ask_as(daemon, [GROUP], method, asked(path), '{"datasets": []}' if method == "POST" else "")
    assert status not in (None, 403), content


def test_the_group_stages_and_leases_and_releases(daemon):
    status, content = ask_as(daemon, [GROUP], "POST", "/v1/stagings", '{"datasets": ["imagenet"], "lease_s": 60}')
    assert status == 202
    ask_as(daemon, [GROUP], "GET", f"/v1/jobs/{json.loads(content)['id']}/events")
    row = json.loads(ask_as(daemon, [GROUP], "GET", "/v1/datasets")[1])["datasets"][0]
    assert (row["state"], len(row["leases"])) == ("ready", 1)
    assert f"uid {NOBODY}" in row["leases"][0]["holder"]
    assert ask_as(daemon, [GROUP], "DELETE", f"/v1/leases/{row['leases'][0]['id']}")[0] == 200


def test_a_member_learns_the_outcome_of_anothers_job_but_no_names_from_it(daemon):
    roots = daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert roots["result"]["datasets"], "root is told all of its job"
    seen = json.loads(ask_as(daemon, [GROUP], "GET", f"/v1/jobs/{roots['key']}")[1])
    assert (seen["state"], seen["result"]) == ("done", None)
    listed = [job for job in json.loads(ask_as(daemon, [GROUP], "GET", "/v1/jobs")[1])["jobs"] if job["key"] == roots["key"]]
    assert listed == [seen]
    events = ask_as(daemon, [GROUP], "GET", f"/v1/jobs/{roots['key']}/events")[1]
    assert json.loads(events.splitlines()[-1]) == {"event": "done", "result": {}}
    own = json.loads(ask_as(daemon, [GROUP], "POST", "/v1/stagings", '{"datasets": ["imagenet"]}')[1])["key"]
    events = ask_as(daemon, [GROUP], "GET", f"/v1/jobs/{own}/events")[1]
    assert json.loads(events.splitlines()[-1])["result"]["datasets"][0]["name"] == "imagenet"


def test_only_root_stages_for_a_job(daemon):
    body = '{"datasets": ["imagenet"], "job": {"system": "slurm", "id": "5"}}'
    status, content = ask_as(daemon, [GROUP], "POST", "/v1/stagings", body)
    assert (status, json.loads(content)["error"]["kind"]) == (403, "denied")


@pytest.mark.parametrize("user, allowed", [("nobody", 200), ("root", 403), ("a stranger", 403)])
def test_the_leases_of_a_job_are_ended_by_its_user(daemon, user, allowed):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "job": {"system": "slurm", "id": "6", "user": user}})
    for lease in ("job:slurm:6:imagenet", "job:slurm:6"):
        status, content = ask_as(daemon, [GROUP], "DELETE", f"/v1/leases/{lease}")
        assert status == allowed or (status, lease) == (404, "job:slurm:6"), content
    daemon.ask("DELETE", "/v1/leases/job:slurm:6")


def test_a_user_cancels_only_its_own_jobs(daemon):
    own = json.loads(ask_as(daemon, [GROUP], "POST", "/v1/stagings", '{"datasets": ["models"], "max_rate": 1}')[1])["id"]
    others = daemon.ask("POST", "/v1/stagings", {"datasets": ["models"], "max_rate": 1})[1]["id"]
    status, content = ask_as(daemon, [GROUP], "DELETE", f"/v1/jobs/{others}")
    assert (status, json.loads(content)["error"]["kind"]) == (403, "denied")
    assert ask_as(daemon, [GROUP], "DELETE", f"/v1/jobs/{own}")[0] == 200
    assert daemon.ask("GET", f"/v1/jobs/{others}")[1]["state"] == "running", "it goes on for the other"
    assert daemon.ask("DELETE", f"/v1/jobs/{others}")[0] == 200


def test_a_user_outside_the_group_cannot_connect(daemon):
    assert ask_as(daemon, [NOBODY], "GET", "/healthz") == (None, {})


def test_a_user_outside_the_group_is_denied_even_if_the_socket_is_open(daemon):
    os.chmod(daemon.socket, 0o666)
    try:
        for method, path in OPERATIONS:
            status, content = ask_as(daemon, [NOBODY], method, asked(path))
            assert status == 403, (method, path)
            assert json.loads(content)["error"]["what"] == f"uid {NOBODY} may not use spark-stage"
    finally:
        os.chmod(daemon.socket, 0o660)


def test_a_users_leases_are_counted_for_that_user_alone(daemon):
    """The catalog has 10,000 of them, as after as many requests."""
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    generation = next(row["generation"] for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if row["name"] == "imagenet")

    def stage_after_restart_with(statement, *rows):
        daemon.end()
        with contextlib.closing(sqlite3.connect(daemon.folder / "state/catalog.sqlite")) as catalog, catalog:
            catalog.executemany(statement, rows or [()])
        daemon.start()
        return ask_as(daemon, [NOBODY, GROUP], "POST", "/v1/stagings", '{"datasets": ["imagenet"]}')

    in_a_day = round((time.time() + 86400) * 1e6)
    insert = f"INSERT INTO leases (id, dataset, generation, holder, pid, pid_start_time, expires_us) VALUES (?, 'imagenet', ?, ?, 0, 0, {in_a_day})"
    status, said = stage_after_restart_with(insert, *((f"many-{n}", generation, f"pid 1 (x), uid {NOBODY}") for n in range(10_000)))
    assert status == 429 and "this user has 10000 leases already" in said
    assert daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})[0] == 202, "root has no such limit"
    assert stage_after_restart_with("UPDATE leases SET holder = 'pid 1 (x), uid 65533'")[0] == 202
    stage_after_restart_with("DELETE FROM leases")
