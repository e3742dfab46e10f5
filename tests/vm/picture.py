"""Makes docs/pictures/prometheus.png: five minutes of metrics from a real host, in which its target is unplugged, queried with
the dashboard's own queries in a real Prometheus. Usage: /usr/bin/python3 tests/vm/picture.py"""
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from rig import image
from rig.house import House
from rig.product import SOCKET
from rig.settings import REPOSITORY
from rig.topology import Topology

PICTURE = REPOSITORY / "docs/pictures/prometheus.png"
DASHBOARD = REPOSITORY / "configs/grafana/spark-stage.json"
# The panel, and the index of its query.
PANELS = [("Volumes ready", 0), ("Paths", 0), ("Read latency", 0), ("Outages in an hour", 0), ("Cache", 1),
          ("Stagings in an hour", 0)]
LABELS = 'job="spark-stage",instance="spark1:9464"'
SECONDS, EVERY_S = 300, 3
PORT = 9464

# Two columns of graphs, each with its panel's name and query; interactive elements are hidden.
AS_A_PAGE = """
const style = document.createElement('style');
style.textContent = `#graph_container { display: grid; grid-template-columns: 1fr 1fr; gap: 0 24px; }
  .graph_wrapper { min-width: 0; overflow: hidden; } h5 { margin: 18px 0 4px; } body { padding: 0 16px 16px !important; }
  .col-lg-10 { flex: 0 0 100%; max-width: 100%; } textarea { font-size: 13px !important; }
  .rickshaw_legend { font-size: 10px !important; max-width: 100%; } body { margin-top: 0 !important; }
  nav, .form-inline, .nav-tabs, .col-lg-2, .text-right, .tab-content .clearfix { display: none !important; }`;
document.head.append(style);
const page = document.querySelector('#graph_container');
for (const other of [...page.parentElement.children, ...page.children])
  if (other !== page && !other.classList.contains('graph_wrapper')) other.remove();
page.querySelectorAll('.graph_wrapper').forEach((graph, at) => {
  const title = document.createElement('h5');
  title.textContent = arguments[0][at];
  graph.prepend(title);
});
"""


def labelled(sample, at):
    """A line of /metrics in OpenMetrics format with a timestamp; the labels added by a scrape come first."""
    name, value = sample.rsplit(" ", 1)
    bare, brace, rest = name.partition("{")
    return f"{bare}{{{LABELS}{',' if brace else ''}{rest or '}'} {value} {at}\n"


def live_through_an_outage(house, file):
    """Records the host's metrics while datasets are staged and the cable is unplugged for half a minute."""
    target = house.target_machine
    events = [(30, lambda: stage(house, "images")),
              (90, lambda: target.set_link(False)), (120, lambda: target.set_link(True)),
              (160, lambda: stage(house, "slow")), (240, lambda: house.product.run("evict images"))]
    began = time.time()
    while (passed := time.time() - began) < SECONDS:
        while events and events[0][0] <= passed:
            events.pop(0)[1]()
        status, page = house.host.http(SOCKET, "GET", "/metrics")
        assert status == 200, page
        at = time.time()
        file.writelines(labelled(line, f"{at:.3f}") for line in page.splitlines() if line and line[0] != "#")
        time.sleep(EVERY_S)
    file.write("# EOF\n")


def stage(house, name):
    house.host.spawn(f"spark-stage stage {name}")


def record(path):
    with Topology(install_tree=image.install_product()) as rig:
        house = House(rig)
        house.start_host()
        house.start_target()
        house.wait_ready()
        with open(path, "w", encoding="utf-8") as file:
            live_through_an_outage(house, file)


def queries():
    """The queries as sent by Grafana with all variables set to "all"."""
    targets = {panel["title"]: panel.get("targets") for panel in json.loads(DASHBOARD.read_text())["panels"]}
    asked = [targets[title][which]["expr"] for title, which in PANELS]
    return [re.sub(r"\$(job|instance|volume)", ".*", query) for query in asked]


def start_prometheus(folder, samples):
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", samples, folder / "data"], check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "prometheus.yml").write_text("global: {}\n")
    process = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         "--storage.tsdb.retention.time=10y", f"--web.listen-address=127.0.0.1:{PORT}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/-/ready", timeout=5).close()
            return process
        except OSError:
            time.sleep(0.2)
    process.kill()
    sys.exit("picture: prometheus did not start")


def take(samples):
    last = samples.read_text().splitlines()[-2].rsplit(" ", 1)[1]
    end = datetime.datetime.fromtimestamp(float(last), datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    asked = {}
    for at, query in enumerate(queries()):
        asked |= {f"g{at}.expr": query, f"g{at}.tab": "0", f"g{at}.stacked": "0", f"g{at}.range_input": f"{SECONDS}s",
                  f"g{at}.end_input": end}
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                     "--window-size=1600,1300"):
        options.add_argument(argument)
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    try:
        browser.get(f"http://127.0.0.1:{PORT}/graph?{urllib.parse.urlencode(asked)}")
        time.sleep(5)  # time to draw
        browser.execute_script(AS_A_PAGE, [title for title, _ in PANELS])
        browser.execute_script("window.dispatchEvent(new Event('resize'))")
        time.sleep(2)
        browser.set_window_size(1600, browser.execute_script("return document.querySelector('#graph_container').scrollHeight") + 180)
        browser.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
        PICTURE.parent.mkdir(exist_ok=True)
        browser.save_screenshot(str(PICTURE))
    finally:
        browser.quit()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        samples = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "samples.txt"
        if not samples.exists():
            record(samples)
        prometheus = start_prometheus(folder, samples)
        try:
            take(samples)
        finally:
            prometheus.terminate()
            prometheus.wait(10)
    print(f"picture: {PICTURE}")


if __name__ == "__main__":
    main()
