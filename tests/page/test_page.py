"""The benchmark's page in a real browser: it fits, it is quiet, and it asks nobody for anything."""
import base64
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import sample

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SPARK_PAGE_PROGRAM", ROOT / "build/release/cli/spark-stage"))
SCREENSHOTS = ROOT / "build/page"
WIDTHS = (400, 1200)

# Elements whose text sticks out of the window, or is cut by their own box.
TOO_WIDE = """
const wide = [];
for (const e of document.querySelectorAll('body *')) {
  const box = e.getBoundingClientRect();
  if (box.width && (box.right > innerWidth + 1 || box.left < -1)) wide.push(e.tagName + ' ' + e.textContent.slice(0, 60));
}
return wide;
"""
SMALLEST_CHART_TEXT = """
return Math.min(...[...document.querySelectorAll('svg text')].filter(e => e.textContent.trim() && e.getClientRects().length && e.getBoundingClientRect().height)
  .map(e => e.getBoundingClientRect().height));
"""
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "record.json").write_text(json.dumps(sample.record()))
    made = subprocess.run([PROGRAM, "bench", "report", folder / "record.json", "--html", folder / "page.html"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    return folder / "page.html"


def test_the_examples_of_the_documentation_match_the_programs_output(page):
    printed = subprocess.run([PROGRAM, "bench", "report", page.parent / "record.json"], capture_output=True, text=True,
                             timeout=60, check=True).stdout.splitlines()
    text, models = (ROOT / "docs/read-the-benchmark.md").read_text().split("## Loading a model")  # of another record
    examples = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 2 and "--like model-load" in models
    assert not [line for example in examples for line in example.splitlines() if line not in printed]


@pytest.fixture(scope="module", params=["light", "dark"])
def browser(request, tmp_path_factory):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                     f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"features": [{"name": "prefers-color-scheme", "value": request.param}]})
    driver.scheme = request.param
    yield driver
    driver.quit()


def show(browser, page, width, what="screen"):
    """Opens the page at that width; a screenshot of all of it is kept for eyes."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    browser.get(page.as_uri())
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(SCREENSHOTS / f"{what}-{browser.scheme}-{width}.png"))


def requests_of(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [message["params"]["request"]["url"] for message in messages
            if message["method"] == "Network.requestWillBeSent"]


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_fits_the_window(browser, page, width):
    show(browser, page, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(TOO_WIDE) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_text_in_charts_can_be_read(browser, page, width):
    show(browser, page, width)
    assert browser.execute_script(SMALLEST_CHART_TEXT) >= 10


def test_the_page_logs_nothing_and_sends_no_requests(browser, page):
    browser.get_log("performance")
    browser.get_log("browser")
    show(browser, page, 1200)
    assert browser.get_log("browser") == []
    assert [url for url in requests_of(browser) if not url.startswith(("file:", "data:"))] == []


def test_the_page_follows_the_readers_colour_scheme(browser, page):
    show(browser, page, 1200)
    dark = browser.execute_script(BACKGROUND) == "rgb(13, 17, 23)"
    assert dark == (browser.scheme == "dark")


def test_the_page_gives_its_advice_and_shows_every_scenario(browser, page):
    show(browser, page, 1200)
    text = browser.execute_script("return document.body.innerText")
    assert "Stage first" in text or "No clear difference" in text or "Train directly" in text
    charts = browser.execute_script("return [...document.querySelectorAll('svg')].filter(e => e.checkVisibility()).length")
    assert charts == 1 + len(sample.SCENARIOS)
    assert "break-even:" in text


def test_the_verdicts_chart_spans_the_width_of_the_page(browser, page):
    show(browser, page, 1200)
    chart, table = (browser.execute_script(f"return document.querySelector('{name}').getBoundingClientRect().width")
                    for name in (".wide svg", "table"))
    assert chart > 0.9 * table


def test_each_remark_appears_once(browser, page):
    show(browser, page, 1200)
    text = browser.execute_script("return document.body.innerText")
    assert text.count("nothing may be written there: mounted read-only") == 1
    assert text.count("this is the path that the others are staged to") == 1


def test_the_page_prints_on_two_sheets(browser, page):
    """In black on white, whatever the screen is."""
    show(browser, page, 1200)
    pdf = base64.b64decode(browser.execute_cdp_cmd(
        "Page.printToPDF", {"preferCSSPageSize": False, "paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True})["data"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    show(browser, page, 716, "print")  # A4 at 96 dots an inch, without its margins
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                            {"media": "", "features": [{"name": "prefers-color-scheme", "value": browser.scheme}]})
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2
