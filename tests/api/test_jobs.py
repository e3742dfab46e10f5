"""Jobs of a scheduler and of the daemon: their leases, lifetimes, and ends."""
import os

import pytest

JOB = {"system": "slurm", "id": "123", "user": "alice"}


def held(daemon, dataset="imagenet"):
    rows = daemon.ask("GET", "/v1/datasets")[1]["datasets"]
    return [lease for row in rows if row["name"] == dataset for lease in row["leases"]]


def stage(daemon, **more):
    return daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "job": JOB} | more)


def test_a_job_holds_its_dataset_until_its_epilog(daemon):
    assert stage(daemon)["holder"] == "slurm job 123 (alice)"
    assert held(daemon) == [{"id": "job:slurm:123:imagenet", "holder": "slurm job 123 (alice)", "expires": None, "job": JOB}]
    assert daemon.ask("POST", "/v1/datasets/imagenet/evict")[1]["error"]["kind"] == "refused"
    assert daemon.ask("DELETE", "/v1/leases/job:slurm:123")[0] == 200
    assert held(daemon) == []
    assert daemon.ask("DELETE", "/v1/leases/job:slurm:123")[1]["error"]["kind"] == "not_found"


def test_a_second_request_of_a_job_has_the_same_lease(daemon):
    stage(daemon)
    ended = stage(daemon, job=JOB | {"processes": [os.getpid()]}, lease_s=3600)
    assert ended["result"]["datasets"][0]["lease"] == "job:slurm:123:imagenet"
    assert [lease["id"] for lease in held(daemon)] == ["job:slurm:123:imagenet"]
    assert held(daemon)[0]["expires"] is not None


def test_jobs_that_share_a_dataset_have_a_lease_each(daemon):
    stage(daemon)
    stage(daemon, job={"system": "slurm", "id": "124_7"})
    assert [lease["holder"] for lease in held(daemon)] == ["slurm job 123 (alice)", "slurm job 124_7"]
    daemon.ask("DELETE", "/v1/leases/job:slurm:123")
    assert [lease["id"] for lease in held(daemon)] == ["job:slurm:124_7:imagenet"]


def test_a_requeued_job_holds_its_dataset_again_even_across_a_restart(daemon):
    stage(daemon)
    daemon.ask("DELETE", "/v1/leases/job:slurm:123")
    stage(daemon)
    daemon.restart()
    assert [lease["id"] for lease in held(daemon)] == ["job:slurm:123:imagenet"]
    daemon.ask("DELETE", "/v1/leases/job:slurm:123")
    assert held(daemon) == []


@pytest.mark.parametrize("job, kind", [
    ({"system": "slurm"}, "invalid"), ({"system": "slurm", "id": "1/2"}, "invalid"), ({"system": "pbs", "id": "1"}, "invalid"),
    ({"system": "slurm", "id": "1" * 65}, "invalid"), ({"system": "csi", "id": "1" * 129}, "invalid"),
    ({"system": "csi", "id": "a:b"}, "invalid"), ({"system": "slurm", "id": "1", "processes": [0]}, "invalid"),
    ({"system": "slurm", "id": "1", "processes": ["a"]}, "invalid"), ("123", "invalid")])
def test_an_invalid_job_is_refused(busy_daemon, job, kind):
    status, answer = busy_daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "job": job})
    assert (status, answer["error"]["kind"]) == (400, kind)


def test_a_volume_of_a_pod_holds_its_dataset_until_it_is_released(daemon):
    volume = {"system": "csi", "id": "csi-1f", "user": "team-a/train-0"}
    assert stage(daemon, job=volume)["holder"] == "pod team-a/train-0"
    daemon.restart()
    assert held(daemon) == [{"id": "job:csi:csi-1f:imagenet", "holder": "pod team-a/train-0", "expires": None, "job": volume}]
    assert daemon.ask("DELETE", "/v1/leases/job:csi:csi-1f")[0] == 200
    assert held(daemon) == []


def test_a_request_has_a_job_or_a_hold_but_not_both(busy_daemon):
    status, answer = busy_daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"], "job": JOB, "hold": True})
    assert (status, answer["error"]["kind"]) == (400, "invalid")


def test_a_job_names_its_requester_and_its_end_time(daemon):
    ended = daemon.finish("/v1/stagings", {"datasets": ["models"]})
    assert ended["holder"].startswith(f"pid {os.getpid()} (")
    assert ended["started"] <= ended["ended"]
