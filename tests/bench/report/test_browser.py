"""The page in a real browser: it opens alone, sorts, changes its theme, and fits a telephone."""

import base64
import json
import re
from datetime import date
from itertools import pairwise

import pytest
from browser import NEEDS_BROWSER, opened
from model_sample import model_report
from report_sample import report

from tradeassay_bench.report import write_html

pytestmark = [pytest.mark.journey, *NEEDS_BROWSER]
FIRST = ".panel:not([hidden]) "
NAMES = (
    f"[...document.querySelectorAll('{FIRST}.plot.tall .period:not([hidden]) .name:not(.thin)')]"
)
LINE = "return getComputedStyle(document.querySelector('#c0 .plot.tall path.ink')).stroke"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "plain": write_html(report(), folder / "plain.html"),
        "attack": write_html(report(attack=True), folder / "attack.html"),
        "models": write_html(model_report(), folder / "models.html"),
        "models-attack": write_html(model_report(attack=True), folder / "models-attack.html"),
    }


def test_it_opens_without_errors_and_names_lines_at_their_ends(driver, pages):
    opened(driver, pages["plain"])
    driver.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert [
        entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ] == []
    asked = [
        message["params"]["request"]["url"]
        for entry in driver.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    opened(driver, pages["plain"])
    names = driver.execute_script(f"return {NAMES}.map(e => e.textContent)")
    assert {"oracle-reader", "equal-weight", "random"} <= set(names) and "index IDX" not in names
    boxes = driver.execute_script(
        f"return {NAMES}.map(e => e.getBoundingClientRect()).map(b => [b.top, b.right])"
    )
    tops = sorted(top for top, _ in boxes)
    assert min(b - a for a, b in pairwise(tops)) > 9
    assert max(right for _, right in boxes) <= 1280


def agents(driver):
    script = (
        f"return [...document.querySelectorAll('{FIRST}table.board tbody th')].map(e => "
        "e.dataset.v)"
    )
    return list(driver.execute_script(script))


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", FIRST + selector)


def test_sorting(driver, pages):
    opened(driver, pages["plain"])
    by_return = agents(driver)
    assert (by_return[0], by_return[-1]) == ("oracle-reader", "silent-model")
    click(driver, "thead button[data-col='1']")
    assert agents(driver)[:-1] == by_return[:-1][::-1]
    assert agents(driver)[-1] == "silent-model"
    click(driver, "thead button[data-col='0']")
    assert agents(driver) == sorted(by_return)
    script = f"return document.querySelector('{FIRST}th[aria-sort]').textContent"
    assert driver.execute_script(script) == "Agent"
    click(driver, "thead button[data-col='3']")
    assert agents(driver)[-1] in ("cash", "silent-model")


@pytest.mark.slow
def test_the_theme_follows_the_system_and_the_switch(driver, pages):
    colour = "return getComputedStyle(document.body).backgroundColor"
    opened(driver, pages["plain"], dark=True)
    night = driver.execute_script(colour)
    opened(driver, pages["plain"])
    day = driver.execute_script(colour)
    assert day != night
    before = driver.execute_script(LINE)
    for expected in ("dark", "light", "auto"):
        driver.execute_script("document.getElementById('theme').click()")
        assert (
            driver.execute_script("return document.getElementById('theme').textContent")
            == f"Theme: {expected}"
        )
        assert driver.execute_script(colour) == (night if expected == "dark" else day)
        assert (driver.execute_script(LINE) == before) == (expected != "dark")


@pytest.mark.slow_for(
    "attack-1201",
    "attack-360",
    "models-360",
    "models-attack-768",
    "plain-1101",
    "plain-1340",
    "plain-768",
)
@pytest.mark.parametrize(
    ("which", "width"),
    [
        ("plain", 360),
        ("attack", 360),
        ("plain", 768),
        ("plain", 1101),
        ("attack", 1201),
        ("plain", 1340),
    ]
    + [(which, width) for which in ("models", "models-attack") for width in (360, 768, 1280)],
)
def test_nothing_sticks_out(driver, pages, which, width):
    opened(driver, pages[which], width)
    for step in ("", "document.querySelectorAll('details').forEach((one) => { one.open = true });"):
        driver.execute_script(step)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_tabs_by_keyboard(driver, pages):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened(driver, pages["plain"])
    shown = "return [...document.querySelectorAll('.panel')].filter(e => !e.hidden).map(e => e.id)"
    assert driver.execute_script(shown) == ["c0"]
    driver.find_element(By.ID, "tab-c0").send_keys(Keys.ARROW_RIGHT)
    assert driver.execute_script(shown) == ["c1"]
    assert driver.execute_script("return document.activeElement.id") == "tab-c1"
    drawn = "return document.querySelector('#c1 .plot.tall path.ink').getBoundingClientRect().width"
    assert driver.execute_script(drawn) > 500


def test_trades_are_put_on_the_price_of_the_chosen_symbol(driver, pages):
    opened(driver, pages["plain"])
    driver.execute_script(
        "document.querySelector(arguments[0]).open = true", FIRST + "details.agent"
    )
    select, chart = "select[data-trades=c0-a0-trades]", "#c0-a0-trades "
    price = f"return document.querySelector('{chart}path.ink').getAttribute('d')"
    marks = (
        f"return [...document.querySelectorAll('{chart}.mark')].map(e => e.textContent).join('')"
    )
    traded = (
        f"return JSON.parse(document.querySelector('{chart}').dataset.traded).map(e => e[1].length)"
    )
    before = driver.execute_script(price)
    for place, count in enumerate(driver.execute_script(traded)[:2]):
        driver.execute_script(
            "const s = document.querySelector(arguments[0]); s.selectedIndex = arguments[1];"
            "s.dispatchEvent(new Event('change'))",
            select,
            place,
        )
        assert len(driver.execute_script(marks)) == count
    assert driver.execute_script(price) != before
    inside = (
        f"const f = document.querySelector('{chart}svg').getBoundingClientRect();"
        f"return [...document.querySelectorAll('{chart}.mark')].map(e => e.getBoundingClientRect())"
        ".every(b => b.left > f.left - 9 && b.right < f.right + 9 && b.top > f.top - 9 && b.bottom "
        "< f.bottom + 9)"
    )
    assert driver.execute_script(inside)


def test_a_hidden_agent_leaves_the_chart_and_a_period_zooms_it(driver, pages):
    opened(driver, pages["plain"])
    seen = (
        f"return [...document.querySelectorAll('{FIRST}.plot [data-entry=oracle-reader]')]"
        ".filter(e => e.getBoundingClientRect().width > 0).length"
    )
    assert driver.execute_script(seen) == 5  # two lines with their marks, and a name
    click(driver, ".legend button[data-entry='oracle-reader']")
    assert driver.execute_script(seen) == 0
    click(driver, ".legend button[data-entry='oracle-reader']")
    assert driver.execute_script(seen) == 5
    opened(driver, pages["plain"])
    click(driver, ".ranges button[data-days='30']")
    for kind in ("tall", "low"):
        script = f"return document.querySelector('{FIRST}.plot.{kind} svg.data').viewBox.baseVal.x"
        assert date.fromordinal(int(driver.execute_script(script))).isoformat()[:7] == "2024-11"


def test_the_pointer_reads_values_out(driver, pages):
    opened(driver, pages["plain"])
    driver.execute_script(
        "const p = document.querySelector(arguments[0]); p.scrollIntoView();"
        "const f = p.firstElementChild.getBoundingClientRect();"
        "p.dispatchEvent(new PointerEvent('pointermove', "
        "{bubbles: true, clientX: f.right, clientY: f.top + 50}))",
        FIRST + ".plot.tall",
    )
    said = driver.execute_script(
        "return document.querySelector('.plot-tip').innerText"
    ).splitlines()
    row = next(agent for agent in report().settings[0].agents if agent.name == "oracle-reader")
    assert row.result.value is not None
    assert said[0] == report().settings[0].sessions[-1]
    assert " ".join(said[1].split()) == f"oracle-reader +{row.result.value:.1%}"


def test_words_of_others_do_not_run(driver, pages):
    opened(driver, pages["attack"])
    driver.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert driver.execute_script("return window.hacked") is None
    names = driver.execute_script(f"return {NAMES}.map(e => e.textContent)")
    assert any(name.startswith("<script>window") for name in names)
    # Even a script that got into the page could not run: the policy knows ours by their hashes.
    driver.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; "
        "document.body.append(s)"
    )
    assert driver.execute_script("return window.hacked") is None
    opened(driver, pages["models-attack"])
    driver.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert driver.execute_script("return window.hacked") is None
    assert driver.execute_script("return document.querySelectorAll('main img').length") == 0


def test_a_decision_unfolds_to_its_prompt_and_its_calls(driver, pages):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait

    opened(driver, pages["models"])
    panel = driver.find_element(By.CSS_SELECTOR, ".panel:not([hidden])")
    row = next(
        e for e in panel.find_elements(By.CSS_SELECTOR, "details.agent") if "live model" in e.text
    )
    driver.execute_script(
        "arguments[0].open = true; arguments[0].querySelector('.viewer').scrollIntoView()", row
    )
    WebDriverWait(driver, 60).until(
        lambda _: row.find_elements(By.CSS_SELECTOR, ".viewer[data-state=open]")
    )
    listed = "return arguments[0].querySelectorAll('.decision').length"
    assert driver.execute_script(listed, row) == 3
    kind, find = (
        row.find_element(By.CSS_SELECTOR, f".viewer {one}") for one in ("[data-kind]", "input")
    )
    Select(kind).select_by_value("failed")
    assert driver.execute_script(listed, row) == 0
    Select(kind).select_by_value("refused")
    find.send_keys("manage a portfolio")
    assert driver.execute_script(listed, row) == 3
    decision = row.find_element(By.CSS_SELECTOR, "details.decision")
    decision.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    body = WebDriverWait(driver, 60).until(
        lambda _: decision.find_element(By.CSS_SELECTOR, ".body")
    )
    assert body.is_displayed()
    for words in (
        "bought 10 at 99.5",
        "refused: lot",
        "schema: no JSON",
        "timeout:",
        "price unknown",
    ):
        assert words in body.text
    for kind, inside in (("user", "It is day 7."), ("call", '{"names":["S01"]}')):
        part = body.find_element(By.CSS_SELECTOR, f"details.part.{kind}")
        hidden = part.find_elements(By.CSS_SELECTOR, "pre")[-1]
        assert not hidden.is_displayed()
        part.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
        assert hidden.is_displayed()
        assert inside in hidden.text
    assert [
        entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ] == []


def test_a_mask_leads_to_its_tab(driver, pages):
    opened(driver, pages["models"])
    driver.execute_script("[...document.querySelectorAll('.contrast thead a')][0].click()")
    shown = "return document.querySelector('.panel:not([hidden]) h2').textContent"
    assert driver.execute_script(shown) == "KTD-Fin, bright"


@pytest.mark.slow
def test_on_paper_the_answer_is_on_two_white_sheets(driver, pages):
    opened(driver, pages["plain"], dark=True)
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    try:
        assert (
            driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        heights = driver.execute_script(
            "return [...document.querySelectorAll('.panel')].map(e => e.clientHeight)"
        )
        assert heights[0] > 100 and heights[1:] == [0, 0]
        sheets = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
        assert len(re.findall(rb"/Type\s*/Page\b", sheets)) <= 2
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
