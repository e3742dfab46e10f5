"""Prefetches are kept for a later job, and delay no other job."""
import pytest

JOB = {"system": "slurm", "id": "123", "user": "alice"}


def row_of(daemon, dataset):
    return next(row for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if row["name"] == dataset)


def prefetch(daemon, dataset="imagenet", **more):
    return daemon.finish("/v1/stagings", {"datasets": [dataset], "prefetch": True} | more)


def shrink(daemon, capacity):
    daemon.config.write_text(daemon.config.read_text().replace("capacity: 1GiB", f"capacity: {capacity}"))
    daemon.restart()


def test_a_prefetched_copy_is_kept_until_its_dataset_is_staged(daemon):
    ended = prefetch(daemon, by="2100-01-01T00:00:00Z")
    assert (ended["verb"], ended["state"]) == ("prefetch", "done")
    assert [ended["result"]["datasets"][0][key] for key in ("lease", "by", "late_s")] == [
        "prefetch:imagenet", "2100-01-01T00:00:00Z", None]
    lease = row_of(daemon, "imagenet")["leases"][0]
    assert (lease["soft"], lease["expires"]) == (True, "2100-01-02T00:00:00Z")
    daemon.restart()
    assert row_of(daemon, "imagenet")["leases"][0]["soft"] is True
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert row_of(daemon, "imagenet")["leases"] == []


def test_a_prefetch_without_space_is_refused_with_the_numbers(daemon):
    shrink(daemon, "300KiB")
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "job": JOB})
    refused = prefetch(daemon, "models")
    assert refused["error"]["kind"] == "no_space"
    for words in ("it needs 1", "of 307 kB", "imagenet 1", "leased by slurm job 123 (alice)"):
        assert words in refused["error"]["what"]
    assert row_of(daemon, "imagenet")["state"] == "ready"


def test_a_prefetched_copy_is_evicted_for_a_staging_but_not_for_a_prefetch(daemon):
    shrink(daemon, "300KiB")
    prefetch(daemon, "imagenet")
    assert prefetch(daemon, "models")["error"]["kind"] == "no_space"
    ended = daemon.finish("/v1/stagings", {"datasets": ["models"]})
    assert ended["result"]["datasets"][0]["evicted"][0]["name"] == "imagenet"
    assert (row_of(daemon, "imagenet")["state"], row_of(daemon, "imagenet")["leases"]) == ("absent", [])


def test_a_prefetch_that_a_job_asks_for_outlives_the_job(daemon):
    assert prefetch(daemon, job=JOB)["holder"] == "slurm job 123 (alice)"
    assert daemon.ask("DELETE", "/v1/leases/job:slurm:123")[0] == 404
    assert [lease["id"] for lease in row_of(daemon, "imagenet")["leases"]] == ["prefetch:imagenet"]


def test_a_late_prefetch_reports_its_delay(daemon):
    result = prefetch(daemon, by="2020-01-01T00:00:00Z")["result"]["datasets"][0]
    assert result["late_s"] > 86400


@pytest.mark.parametrize("more", [{"prefetch": True, "lease_s": 60}, {"prefetch": True, "hold": True},
                                  {"prefetch": True, "max_rate": 1}, {"prefetch": True, "by": "soon"},
                                  {"by": "2100-01-01T00:00:00Z"}])
def test_options_that_conflict_with_a_prefetch_are_refused(busy_daemon, more):
    status, answer = busy_daemon.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]} | more)
    assert (status, answer["error"]["kind"]) == (400, "invalid")
