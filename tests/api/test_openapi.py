"""docs/openapi.yaml matches the daemon: every route, and the schema of every answer."""
import re

import jsonschema
import pytest

from openapi_file import OpenApi
from staged import ROOT

API = OpenApi()
# (method, path in the document, requested path, body or None), sent in this order to one daemon. {lease} is filled in.
TALK = [
    ("GET", "/healthz", "/healthz", None),
    ("GET", "/readyz", "/readyz", None),
    ("GET", "/metrics", "/metrics", None),
    ("GET", "/v1/config", "/v1/config", None),
    ("POST", "/v1/stagings", "/v1/stagings", {"datasets": ["imagenet", "models"], "lease_s": 60, "max_rate": 10**9}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/1/events", None),
    ("GET", "/v1/jobs/{id}", "/v1/jobs/1", None),
    ("POST", "/v1/stagings", "/v1/stagings", {"datasets": ["imagenet"], "hold": True}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/2/events", None),
    ("POST", "/v1/datasets/{name}/verify", "/v1/datasets/imagenet/verify", {"sha256": True}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/3/events", None),
    ("POST", "/v1/scrubs", "/v1/scrubs", {"datasets": ["imagenet"]}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/4/events", None),
    ("POST", "/v1/drops", "/v1/drops", {"datasets": ["imagenet"]}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/5/events", None),
    ("GET", "/v1/datasets", "/v1/datasets", None),
    ("GET", "/v1/fleet/datasets", "/v1/fleet/datasets", None),  # no fleet is configured
    ("GET", "/v1/status", "/v1/status", None),
    ("GET", "/v1/volumes/{name}", "/v1/volumes/datasets", None),
    ("POST", "/v1/datasets/{name}/evict", "/v1/datasets/imagenet/evict", None),
    ("DELETE", "/v1/leases/{id}", "/v1/leases/{lease}", None),
    ("POST", "/v1/stagings", "/v1/stagings", {"datasets": ["datasets:coco"]}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/6/events", None),
    ("POST", "/v1/volumes/{name}/down", "/v1/volumes/datasets/down", {"by": "alice", "force": True}),  # it is no NFS volume
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/7/events", None),
    ("POST", "/v1/volumes/{name}/down", "/v1/volumes/datasets/down", None),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/8/events", None),
    ("POST", "/v1/stagings", "/v1/stagings",
     {"datasets": ["models"], "job": {"system": "slurm", "id": "7", "user": "alice", "processes": [2]}}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/9/events", None),
    ("POST", "/v1/stagings", "/v1/stagings", {"datasets": ["imagenet"], "prefetch": True, "by": "2100-01-01T00:00:00Z"}),
    ("GET", "/v1/jobs/{id}/events", "/v1/jobs/10/events", None),
    ("GET", "/v1/jobs/{id}", "/v1/jobs/10", None),
    ("GET", "/v1/datasets", "/v1/datasets", None),
    ("GET", "/readyz", "/readyz", None),
    ("POST", "/v1/volumes/{name}/up", "/v1/volumes/datasets/up", None),
    ("POST", "/v1/volumes/{name}/up", "/v1/volumes/nothing/up", None),
    ("POST", "/v1/volumes/{name}/take", "/v1/volumes/datasets/take", None),
    ("POST", "/v1/volumes/{name}/publish", "/v1/volumes/datasets/publish", {"then_write": True}),
    ("POST", "/v1/stage-outs", "/v1/stage-outs", {"source": "/out/step-1", "destination": "datasets:step-1", "keep": 3}),
    ("GET", "/v1/outputs", "/v1/outputs", None),
    ("GET", "/v1/outputs/{name}", "/v1/outputs/run7", None),
    ("POST", "/v1/outputs/{name}/send", "/v1/outputs/run7/send", {"final": True}),
    ("GET", "/v1/outputs/{name}/latest", "/v1/outputs/run7/latest", None),
    ("GET", "/v1/outputs/{name}/latest/offline", "/v1/outputs/run7/latest/offline", None),
    ("POST", "/v1/plan", "/v1/plan", {"yaml": "version: 1\n"}),
    ("POST", "/v1/cache/move", "/v1/cache/move", {"path": "nowhere"}),
    ("POST", "/v1/cache/reset", "/v1/cache/reset", {"delete_copies": False}),
    ("POST", "/v1/reload", "/v1/reload", None),
    ("DELETE", "/v1/jobs/{id}", "/v1/jobs/1", None),
    ("GET", "/v1/jobs/{id}", "/v1/jobs/99", None),
    ("GET", "/v1/jobs", "/v1/jobs", None),
]


def routes_of_the_daemon():
    table = re.findall(r'\{\{"([A-Z]+)", "(/[^"]*)"(, true)?\}', (ROOT / "daemon/service/routes.cpp").read_text())
    return {(method, path): bool(alone) for method, path, alone in table}


def test_the_document_is_valid():
    assert API.document["openapi"] == "3.1.0"
    for schema in API.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for (method, path), operation in API.operations().items():
        assert operation["summary"] and operation["responses"], (method, path)
        asked = [API.resolved(parameter)["name"] for parameter in API.document["paths"][path].get("parameters", [])]
        assert asked == re.findall(r"\{(\w+)\}", path), path


def test_the_documented_routes_are_those_of_the_daemon():
    documented = {key: operation.get("x-root-alone", False) for key, operation in API.operations().items()}
    assert routes_of_the_daemon() == documented


def test_the_api_page_names_every_route():
    rows = [line for line in (ROOT / "docs/api.md").read_text().splitlines() if line.startswith("| `")]
    for method, path in API.operations():
        told = path.replace("{name}", "NAME").replace("{id}", "ID")
        short = "…/" + told.rsplit("/", 1)[1]
        assert any(f"{method} {told}" in row or (f"`{short}`" in row and told.rsplit("/", 1)[0] in row)
                   for row in rows), f"{method} {told}"


def test_the_version_is_that_of_the_program(busy_daemon):
    assert busy_daemon.ask("GET", "/v1/status")[1]["version"] == API.document["info"]["version"]


def test_every_answer_matches_its_schema(daemon):
    spoken = set()
    for method, path, asked, body in TALK:
        if "{lease}" in asked:
            rows = daemon.ask("GET", "/v1/datasets")[1]["datasets"]
            asked = asked.replace("{lease}", next(lease["id"] for row in rows for lease in row["leases"]))
        if body is not None:
            assert API.problems_of_body(method, path, body) == [], (method, asked)
        status, kind, content = daemon.exchange(method, asked, body)
        assert API.problems_of_answer(method, path, status, kind, content) == [], (method, asked, content[:2000])
        assert not content.startswith(b'{"error":{"kind":"not_found","what":"no ' + method.encode()), asked
        spoken.add((method, path))
    assert spoken == set(API.operations()), "every operation is tried"


def test_a_job_of_each_kind_ends_as_expected(daemon):
    kinds = {}
    for method, _, asked, body in TALK:
        if method == "POST" and "{" not in asked:
            status, job = daemon.ask(method, asked, body)
            if status == 202:
                daemon.exchange("GET", f"/v1/jobs/{job['id']}/events")
                ended = daemon.ask("GET", f"/v1/jobs/{job['id']}")[1]
                kinds.setdefault(ended["verb"], []).append(ended["state"])
    assert kinds["stage"] == ["done", "done", "failed", "done"], "the third is of a volume that is not there"
    assert kinds["prefetch"] == ["done"]
    assert (kinds["verify"], kinds["scrub"], kinds["drop"]) == (["done"], ["done"], ["done"])


@pytest.mark.parametrize("method, path", [("PUT", "/v1/status"), ("GET", "/v1/reload"), ("GET", "/v1/volumes/a/up"),
                                          ("DELETE", "/v1/jobs"), ("GET", "/"), ("GET", "/v1/jobs/1/events/more"),
                                          ("POST", "/v1/volumes/a/format"), ("GET", "/v2/status")])
def test_an_undocumented_route_is_not_found(busy_daemon, method, path):
    status, answer = busy_daemon.ask(method, path)
    assert status == 404
    assert answer["error"]["what"] == f"no {method} {path}"
    assert API.problems(API.document["components"]["schemas"]["ErrorAnswer"], answer) == []
