"""Requests for a dataset whose target is away: how long they wait, what they show, and what serves meanwhile."""
import json
import os
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from gate import Gate
from simulated import CLIENT
from staged import UnixConnection

SHORT_OUTAGE_S = 30
AWAY_THEN_BACK = """  targets:
    rose: {state: down}
  events:
    - {after: signal, target: rose, state: up}
    - {after: signal, target: rose, state: down, controllers: removed}
"""
STALLS_THEN_BACK = """  events:
    - {after: signal, target: rose, state: down}
    - {after: signal, target: rose, state: up}
"""


def stagings(simulation):
    jobs = json.loads(simulation.client("jobs", "--json")[1])["jobs"]
    return [job for job in jobs if job["verb"] == "stage"]


def test_a_target_that_is_away_is_waited_for_or_its_copy_served(simulate):
    simulation = simulate(AWAY_THEN_BACK)
    source = simulation.folder / "mnt/imagenet"
    source.mkdir(parents=True)
    (source / "a.bin").write_bytes(b"content" * 1000)
    simulation.wait_until(lambda: "10.0.0.5:4420 does not answer" in simulation.reason(), "says why it waits")

    code, _, complaint = simulation.client("stage", "imagenet")
    assert code == 4 and "volume datasets is waiting" in complaint, complaint
    code, _, complaint = simulation.client("stage", "imagenet", "--offline")
    assert code == 4, "there is no copy"
    with subprocess.Popen([CLIENT, "stage", "imagenet", "--wait", "10m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=os.environ | {"SPARK_STAGE_SOCKET": str(simulation.socket)}) as patient:
        simulation.wait_until(lambda: (stagings(simulation)[-1]["progress"] or {}).get("phase") == "stalled", "shows that it waits")
        job = stagings(simulation)[-1]
        assert job["state"] == "running" and "volume datasets is waiting since 20" in job["progress"]["reason"], job
        assert simulation.status()["stages"][0]["reason"] == job["progress"]["reason"]
        code, _, complaint = simulation.client("stage", "imagenet")
        assert code == 4, "each request decides for itself"
        simulation.step()
        path = patient.communicate(timeout=60)[0].decode().strip()
    assert patient.returncode == 0
    assert len([job for job in stagings(simulation) if job["state"] == "done"]) == 1

    simulation.step()
    simulation.becomes("lost")
    code, _, complaint = simulation.client("stage", "imagenet")
    assert code == 4 and "`--offline` takes the copy of 20" in complaint, complaint
    code, _, complaint = simulation.client("stage", "imagenet", "--wait", "1s")
    assert code == 4, complaint
    began = simulation.volume()["since"]
    code, out, complaint = simulation.client("stage", "imagenet", "--offline", patience_s=3 * SHORT_OUTAGE_S)
    assert (code, out.strip()) == (0, path), complaint
    assert time.time() - datetime.fromisoformat(began).timestamp() >= SHORT_OUTAGE_S - 2, "it might have been a short outage"
    assert "warning: the copy was not compared with its source: volume datasets is lost since 20" in complaint, complaint
    dataset = json.loads(simulation.client("stage", "imagenet", "--offline", "--json")[1])["datasets"][0]
    assert dataset["served_from"] == "cache" and dataset["unchecked"].startswith("volume datasets is lost since "), dataset
    inside = f"echo $SPARK_STAGE_IMAGENET; {CLIENT} stage imagenet"
    code, out, complaint = simulation.client("run", "imagenet", "--offline", "--", "sh", "-c", inside)
    assert (code, out.split()) == (0, [path, path]), f"what it starts holds the copy too: {complaint}"
    refused = simulation.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "prefetch": True, "offline": True})
    assert refused[0] == 400, refused


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may block a file's readers")
def test_a_target_that_goes_away_during_a_copy_is_waited_for(simulate):
    simulation = simulate(STALLS_THEN_BACK)
    source = simulation.folder / "mnt/imagenet"
    source.mkdir(parents=True)
    (source / "a.bin").write_bytes(b"content" * 1000)
    simulation.becomes("ready")
    with Gate(source / "a.bin") as gate:
        patient = subprocess.Popen([CLIENT, "stage", "imagenet", "--wait", "10m"], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=os.environ | {"SPARK_STAGE_SOCKET": str(simulation.socket)})
        gate.wait_for(1)
        simulation.step()
        for line in patient.stderr:
            if "volume datasets is stalled since 20" in line:
                break
        assert (stagings(simulation)[-1]["progress"]["reason"]) in line
        simulation.step()
    out, complaint = patient.communicate(timeout=60)
    assert patient.returncode == 0 and Path(out.strip()).is_dir(), complaint
    assert len(stagings(simulation)) == 1, "one job"


def test_a_job_is_found_by_its_key_which_no_later_job_has(daemon):
    job = daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})[1]
    assert daemon.ask("GET", f"/v1/jobs/{job['key']}")[1]["id"] == job["id"]
    daemon.restart()
    again = daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})[1]
    assert again["id"] == job["id"] and again["key"] != job["key"]
    assert daemon.ask("GET", f"/v1/jobs/{job['key']}")[0] == 404


def test_events_come_while_the_worker_is_frozen(daemon):
    """Silence means that the daemon or the connection hangs."""
    job = daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "max_rate": 1})[1]
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children")
    daemon.wait_until(lambda: (daemon.ask("GET", f"/v1/jobs/{job['id']}")[1]["progress"] or {}).get("phase") == "copying", "copies")
    for pid in children.read_text().split():
        os.kill(int(pid), signal.SIGSTOP)
    connection = UnixConnection(daemon.socket, 10)  # the documented limit
    connection.request("GET", f"/v1/jobs/{job['key']}/events")
    answer = connection.getresponse()
    for _ in range(3):
        assert json.loads(answer.readline())["event"] == "progress"
    connection.close()
    for pid in children.read_text().split():
        os.kill(int(pid), signal.SIGCONT)
    assert daemon.ask("DELETE", f"/v1/jobs/{job['id']}")[0] == 200
