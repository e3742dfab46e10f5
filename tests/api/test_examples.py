"""The curl examples of docs/api.md and docs/metrics.md, run unchanged against a real daemon."""
import json
import re
import subprocess

from metric_page import Page
from staged import PATIENCE_S, ROOT

SOCKET = "/run/spark-stage/api.sock"
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(script, daemon):
    assert SOCKET in script
    done = subprocess.run(["sh", "-euc", script.replace(SOCKET, str(daemon.socket))], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), script
    return done.stdout


def examples():
    """[(script, its documented answer or None)] in the page's order."""
    found = []
    for kind, text in BLOCK.findall((ROOT / "docs/api.md").read_text()):
        if kind == "sh":
            found.append((text, None))
        else:
            found[-1] = (found[-1][0], text)
    return found


def test_the_page_shows_every_kind_of_request():
    told = " ".join(script for script, _ in examples())
    for path in ("/v1/status", "/v1/stagings", "/v1/jobs", "/events", "/verify", "/v1/scrubs", "/v1/leases/", "/evict",
                 "/down", "/up", "/v1/reload", "/readyz"):
        assert path in told


def test_every_example_of_the_api_page_works_in_its_order(daemon):
    for script, wanted in examples():
        said = run(script, daemon)
        if wanted is not None:
            assert said == wanted, script
            continue
        answers = [json.loads(line) for line in said.splitlines()]
        assert answers, script
        for answer in answers:
            assert not answer.get("error") and answer.get("state") != "failed", (script, answer)
        daemon.wait_until(lambda: all(job["state"] != "running" for job in daemon.ask("GET", "/v1/jobs")[1]["jobs"]),
                          "ended its jobs")
    states = {row["name"]: row["state"] for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"]}
    assert states == {"imagenet": "absent", "models": "absent"}


def test_the_example_of_the_metrics_page_works(busy_daemon):
    text = (ROOT / "docs/metrics.md").read_text()
    commands = re.findall(r"^curl .*$", text, re.MULTILINE)
    assert len(commands) == 1
    assert "spark_stage_build_info" in Page(run(commands[0], busy_daemon)).types
