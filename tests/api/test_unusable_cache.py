"""A cache that can't be used is reported wherever a person or a monitor looks, before a staging fails."""
import os

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may reload")


def move_cache(daemon, old, new):
    text = daemon.config.read_text()
    assert old in text
    daemon.config.write_text(text.replace(old, new))
    assert daemon.ask("POST", "/v1/reload")[0] == 200


def problem(daemon):
    return daemon.ask("GET", "/v1/status")[1]["cache_problem"]


def test_a_cache_in_another_place_than_its_catalog_knows_is_reported_until_it_is_back(daemon):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert problem(daemon) is None and daemon.ask("GET", "/readyz")[1]["cache_problem"] is None
    move_cache(daemon, "/cache,", "/other,")
    daemon.wait_until(lambda: problem(daemon), "reports the cache")
    said = problem(daemon)
    assert f"{daemon.folder}/other" in said and f"{daemon.folder}/state/catalog.sqlite" in said, said
    status, ready = daemon.ask("GET", "/readyz")
    assert status == 503 and ready["ready"] is False and ready["cache_problem"] == said
    assert "spark_stage_cache_up 0" in daemon.metrics()
    move_cache(daemon, "/other,", "/cache,")
    daemon.wait_until(lambda: problem(daemon) is None, "uses the cache again")
    assert daemon.ask("GET", "/v1/datasets")[1]["datasets"]


def test_a_catalog_that_is_lost_below_a_running_daemon_is_made_again_by_its_restart_alone(daemon):
    stage = lambda name: daemon.finish("/v1/stagings", {"datasets": [name]})
    staged = stage("imagenet")["result"]["datasets"][0]["path"]
    catalog = daemon.folder / "state/catalog.sqlite"
    catalog.rename(daemon.folder / "aside")
    (daemon.folder / "imagenet/more").write_text("more")
    for name in ("models", "imagenet"):
        job = stage(name)
        assert job["state"] == "failed" and "restart spark-staged" in job["error"]["hint"], job
    daemon.wait_until(lambda: "is gone" in (problem(daemon) or ""), "reports the catalog")
    assert not catalog.exists(), "an empty one would know none of the copies, and no lease"
    daemon.restart()
    assert stage("models")["state"] == stage("imagenet")["state"] == "done"
    rows = daemon.ask("GET", "/v1/datasets")[1]["datasets"]
    assert [row["name"] for row in rows] == ["imagenet", "models"] and rows[0]["generation"] == 2 and os.path.exists(staged) is False, rows
