"""Alert rules and dashboard: every query uses metrics that the daemon exposes, and a real Prometheus answers it."""
import json
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from metric_page import Page, problems_of
from staged import PATIENCE_S, ROOT, free_port

ALERTS = ROOT / "configs/prometheus/alerts.yml"
DASHBOARD = ROOT / "configs/grafana/spark-stage.json"
# Without data, since no target offers the volume.
EMPTY_HERE = {"Read latency", "Paths", "Length of the last outage"}


def alerts():
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def as_grafana_would(expression):
    for variable, value in (("$__rate_interval", "10s"), ("$job", ".*"), ("$instance", ".*"), ("$volume", ".*")):
        expression = expression.replace(variable, value)
    return expression


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alert_rules_are_valid_and_fire_as_expected():
    promtool("check", "rules", str(ALERTS))
    promtool("test", "rules", str(ROOT / "tests/api/alerts_test.yml"))


def test_every_alert_has_a_case_that_fires():
    cases = (ROOT / "tests/api/alerts_test.yml").read_text()
    assert [rule["alert"] for rule in alerts() if rule["alert"] not in cases] == []


@pytest.mark.parametrize("rule", [rule for rule in alerts() if rule["alert"] != "SparkStageDown"],
                         ids=lambda rule: rule["alert"])
def test_an_alert_uses_existing_metrics(busy_daemon, rule):
    assert problems_of(rule["expr"], Page(busy_daemon.metrics())) == []


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_uses_existing_metrics(busy_daemon, panel):
    page = Page(busy_daemon.metrics())
    assert [problem for target in panel["targets"] for problem in problems_of(target["expr"], page)] == []


def test_the_panels_do_not_overlap():
    taken = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


class Prometheus:
    def __init__(self, folder, target):
        self.port = free_port()
        scrape = yaml.safe_load((ROOT / "configs/prometheus/scrape.yml").read_text())
        scrape["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        scrape["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
        scrape["rule_files"] = [str(ALERTS)]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(scrape))
        self.log = open(folder / "prometheus.log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=subprocess.STDOUT)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.loads(answer.read())["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def scrapes(self):
        try:
            found = self.query("count_over_time(spark_stage_build_info[10m])")
        except OSError:
            return 0
        return int(found[0]["value"][1]) if found else 0


@pytest.fixture(scope="module")
def prometheus(busy_daemon, tmp_path_factory):
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{busy_daemon.port}")
    try:
        busy_daemon.wait_until(lambda: running.scrapes() >= 2, "was scraped twice")
        busy_daemon.finish("/v1/stagings", {"datasets": ["models"]})
        before = running.scrapes()  # a staging takes seconds on a busy computer
        busy_daemon.wait_until(lambda: running.scrapes() >= before + 4, "was scraped after a staging")
        yield running
    finally:
        running.stop()


def test_prometheus_accepts_the_scrape_configuration_and_reaches_the_daemon(prometheus):
    assert [sample["value"][1] for sample in prometheus.query('up{job="spark-stage"}')] == ["1"]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_has_data_in_a_real_prometheus(prometheus, panel):
    for target in panel["targets"]:
        result = prometheus.query(as_grafana_would(target["expr"]))
        assert bool(result) != (panel["title"] in EMPTY_HERE), target["expr"]


def test_the_dashboards_variables_have_values(prometheus):
    for label, wanted in (("job", ["spark-stage"]), ("volume", ["datasets"])):
        assert prometheus.get(f"label/{label}/values", **{"match[]": "spark_stage_volume_info"}) == wanted


def test_the_alerts_are_evaluated_and_an_unoffered_volume_is_pending(prometheus, busy_daemon):
    def rules():
        return {rule["name"]: rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]}

    busy_daemon.wait_until(lambda: rules()["SparkStageVolumeNotReady"]["state"] == "pending", "led to an alert")
    assert {rule["health"] for rule in rules().values()} == {"ok"}
    assert rules()["SparkStageVolumeRefused"]["state"] == "inactive"
