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
