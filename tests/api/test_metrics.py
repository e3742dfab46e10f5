"""/metrics of a real daemon: promtool accepts it, the documentation lists every metric, and the values are right."""
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from metric_page import Page
from staged import ROOT


def test_promtool_finds_no_problem_in_the_metrics(busy_daemon):
    checked = subprocess.run(["promtool", "check", "metrics"], input=busy_daemon.metrics(), capture_output=True,
                             text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_socket_serves_prometheus_text(busy_daemon):
    status, kind, _ = busy_daemon.exchange("GET", "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")


def test_stagings_evictions_and_leases_are_counted(busy_daemon):
    page = Page(busy_daemon.metrics())
    size = sum(file.stat().st_size for file in (busy_daemon.folder / "imagenet/train").iterdir())
    assert page.value("spark_stage_stagings_total", result="copied") == 2
    assert page.value("spark_stage_stagings_total", result="cached") == 1
    assert page.value("spark_stage_stagings_total", result="failed") == 1
    assert page.value("spark_stage_staging_copied_bytes_total") == 2 * size
    assert page.value("spark_stage_staging_copied_seconds_total") > 0
    assert page.value("spark_stage_cache_verifications_total", result="good") == 1
    assert page.value("spark_stage_cache_evictions_total", reason="request") == 1
    assert page.value("spark_stage_cache_evicted_bytes_total", reason="request") >= size
    assert page.value("spark_stage_datasets", state="ready") == 1
    assert page.value("spark_stage_leases") == 1
    assert page.value("spark_stage_cache_up") == 1
    assert page.value("spark_stage_cache_used_bytes") >= size
    assert page.value("spark_stage_workers_started_total") >= 6


def test_an_unavailable_volume_is_in_exactly_one_state(busy_daemon):
    page = Page(busy_daemon.metrics())
    states = {labels["state"]: value for name, labels, value in page.samples if name == "spark_stage_volume_state"}
    status, shown = busy_daemon.ask("GET", "/v1/status")
    assert status == 200
    assert sorted(states) == sorted("waiting connecting mounting ready stalled lost recovering refused down".split())
    assert sum(states.values()) == 1
    assert states[shown["volumes"][0]["state"]] == 1 or states["waiting"] + states["connecting"] == 1
    assert page.value("spark_stage_volume_outages_total", volume="datasets") == 0


def test_the_process_metrics_describe_the_daemon(busy_daemon):
    page = Page(busy_daemon.metrics())
    pid = busy_daemon.process.pid
    resident = int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{pid}/status").read())[1]) * 1024
    assert page.value("process_resident_memory_bytes") == pytest.approx(resident, rel=0.2)
    assert 3 < page.value("process_open_fds") < page.value("process_max_fds")


def test_the_address_serves_metrics_and_nothing_else(busy_daemon):
    base = f"http://127.0.0.1:{busy_daemon.port}"
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
        assert Page(answer.read().decode()).types == Page(busy_daemon.metrics()).types
    for path in ("/", "/v1/status", "/v1/config", "/healthz", "/v1/jobs"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(base + path, timeout=10)
        assert refused.value.code == 404, path


def test_the_documentation_lists_every_family_and_no_other(busy_daemon):
    rows = re.findall(r"^\| `(\w+)`[^|]*\| (\w+) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    assert dict(rows) == Page(busy_daemon.metrics()).types
    assert len(dict(rows)) == len(rows)


def test_a_reload_moves_the_address_and_a_bad_file_changes_one_metric_only(daemon):
    before = f'"127.0.0.1:{daemon.port}"'
    text = daemon.config.read_text()
    daemon.config.write_text(text.replace(before, "off"))
    assert daemon.ask("POST", "/v1/reload", {})[0] == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}/metrics", timeout=10)
    in_force = daemon.ask("GET", "/v1/config")
    daemon.config.write_text(text + "nonsense: 1\n")
    status, answer = daemon.ask("POST", "/v1/reload", {})
    assert status == 400 and f":{len(text.splitlines()) + 1}:1" in answer["error"]["what"], answer
    assert daemon.ask("GET", "/v1/config") == in_force
    page = Page(daemon.metrics())
    assert page.value("spark_stage_config_last_reload_successful") == 0
    daemon.config.write_text(text)
    assert daemon.ask("POST", "/v1/reload", {})[0] == 200
    assert Page(daemon.metrics()).value("spark_stage_config_last_reload_successful") == 1
    urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}/metrics", timeout=10).close()
