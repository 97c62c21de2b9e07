"""The arena in a real browser: open, filter, drill down, watch a day arrive, change language and theme."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from browser import NEEDS_BROWSER, READY, opened as opened_at

pytestmark = NEEDS_BROWSER


class Served:
    """An arena on a free port, and the means to let it play on."""

    def __init__(self, base: str, play_on: Callable[[str], None], mark: Callable[[float], None]) -> None:
        self.base, self.play_on, self.mark = base, play_on, mark


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    from arena_sample import FAST, make_season, open_store, play
    from tests.arena.conftest import listening

    from tradeassay.arena.api.doors import Doors
    from tradeassay.arena.rounds.feed import SnapshotFeed
    from tradeassay.arena.rounds.health import Health, Mark
    from tradeassay.arena.web.app import Arena
    from tradeassay.arena.web.site import PageWriter

    store = open_store(tmp_path_factory.mktemp("browser") / "arena.db")
    site = tmp_path_factory.mktemp("pages")
    season = make_season()
    feed = SnapshotFeed.open(season)
    play(store, season, feed, "2022-06-01")
    own = Health(season.id, "me", live=True)
    writer, doors = PageWriter(store, site, FAST, own=lambda: own), Doors(store)
    writer.update()

    def play_on(day: str) -> None:
        play(store, season, feed, day)
        writer.update()

    def mark(growth: float) -> None:
        last = store.last_round(season.id, "AAJX")
        assert last is not None and last.phase == "executed"
        own.marks["AAJX"] = Mark(session=last.session, growth=growth, at="2022-06-02T15:00:00Z")
        writer.update()

    with listening(Arena(doors=doors, folder=site)) as port:
        yield Served(f"http://127.0.0.1:{port}", play_on, mark)
    store.engine.dispose()


def opened(driver: Any, served: Served, path: str, width: int = 1280, *, dark: bool = False) -> Any:
    return opened_at(driver, served.base + path, width, dark=dark)


def until(driver: Any, script: str, *arguments: object) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 120, poll_frequency=0.05).until(lambda d: d.execute_script(script, *arguments))


def complaints(driver: Any) -> list[str]:
    return [e["message"] for e in driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]


ROWS = "return [...document.querySelectorAll('#board tr[data-entry]')].map((one) => one.dataset.entry)"


def test_it_opens_with_named_lines_a_band_and_no_complaint(driver, served):
    opened(driver, served, "/")
    assert driver.current_url.endswith("/seasons/small/")
    chart = "document.querySelector('.plot.tall')"
    names = driver.execute_script(
        f"return [...{chart}.querySelectorAll('.period:not([hidden]) .name:not(.thin)')].map((e) => e.textContent)"
    )
    assert {"Investor · test/a", "Trading desk · test/a", "Buy and hold"} <= set(names) and len(names) == 6
    assert driver.execute_script(f"return {chart}.querySelectorAll('path.band').length") == 1
    assert driver.execute_script(f"return {chart}.querySelectorAll('path[stroke-dasharray=\"6 4\"]').length") == 1
    driver.execute_script("document.querySelector('.ranges [data-days=\"31\"]').click()")
    first = driver.execute_script(f"return {chart}.querySelector('svg.data').viewBox.baseVal.x")
    assert date.fromordinal(int(first)) == date(2022, 5, 2)  # the whole season is younger than a month
    assert driver.execute_script("return window.hacked") is None
    assert complaints(driver) == []


def test_an_asset_shows_what_the_chosen_agent_did_at_its_price(driver, served):
    opened(driver, served, "/seasons/small/")
    driver.execute_script("document.querySelector('.ticker a[href$=\"/assets/AHVQ/\"]').click()")
    until(driver, "return location.pathname.endsWith('/assets/AHVQ/')")
    until(driver, READY)
    assert len(driver.execute_script(ROWS)) == 6
    marks = "[...document.querySelectorAll('#actions [data-act]')]"
    drawn = f"return {marks}.map((one) => [one.dataset.act, one.textContent.length])"
    driver.execute_script(
        "const one = document.getElementById('whose'); one.value = arguments[0];"
        "one.dispatchEvent(new Event('change'))",
        "one-a",
    )
    acts = dict(driver.execute_script(drawn))
    assert set(acts) == {"B", "S", "fm"} and acts["B"] > 5
    driver.execute_script(
        "const one = document.getElementById('whose'); one.value = arguments[0];"
        "one.dispatchEvent(new Event('change'))",
        "buy-and-hold",
    )
    assert set(dict(driver.execute_script(drawn))) == {"B"}
    inside = (
        "const box = document.querySelector('#actions .plot > svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#actions [data-act]')].every((one) => {"
        "const at = one.getBoundingClientRect(); return at.top >= box.top - 12 && at.bottom <= box.bottom + 12 })"
    )
    assert driver.execute_script(inside)
    driver.execute_script("document.querySelector('#sessions a').click()")
    until(driver, "return /2022-0\\d-\\d\\d/.test(location.pathname)")
    assert complaints(driver) == []


def test_accounts_move_between_closes(driver, served):
    served.mark(1.02)
    opened(driver, served, "/seasons/small/")
    moving = "return document.querySelector('[data-moving=\"buy-and-hold\"]').textContent"
    told = until(driver, moving)
    assert told.startswith("+1.0") and "provisional" in told and "2022-06-02 15:00 UTC" in told
    assert complaints(driver) == []


def test_the_owner_of_an_agent_is_told_when_a_token_is_nobodys(driver, served):
    opened(driver, served, "/seat/")
    hidden = "return getComputedStyle(document.getElementById('seat-facts')).display"
    assert driver.execute_script(hidden) == "none"
    driver.execute_script("document.querySelector('form.seat [name=token]').value = 'nobody'")
    driver.execute_script("document.querySelector('form.seat button').click()")
    assert "not known" in until(driver, "return document.querySelector('form.seat [role=status]').textContent")
    assert driver.execute_script(hidden) == "none"
    complaints(driver)  # the refusal stands in the browser's log


def test_drilling_down_to_prompt_debate_and_outcome(driver, served):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened(driver, served, "/seasons/small/")
    driver.execute_script("document.querySelector('#board a[href$=\"/entries/one-a/\"]').click()")
    until(driver, "return location.pathname.endsWith('/entries/one-a/')")
    until(driver, READY)
    decision = driver.find_elements(By.CSS_SELECTOR, "#decisions details.decision")[5]
    decision.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    until(driver, "return arguments[0].querySelectorAll('.body h3').length >= 3", decision)
    said = decision.find_element(By.CSS_SELECTOR, ".body").text
    assert "because <script>window.hacked" in said and "The asset moved" in said and "analyst" in said.lower()
    prompt = decision.find_element(By.CSS_SELECTOR, "details.part")
    prompt.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    until(driver, "return arguments[0].querySelectorAll('pre').length >= 2", prompt)
    assert "2022-0" in prompt.find_element(By.CSS_SELECTOR, "pre").text
    assert driver.execute_script("return window.hacked") is None
    assert driver.execute_script("return document.querySelectorAll('main img').length") == 0
    assert complaints(driver) == []


def test_a_replayed_day_arrives_by_itself(driver, served):
    opened(driver, served, "/seasons/small/")
    until(driver, "return document.getElementById('pulse').dataset.state === 'on'")
    poll = "document.dispatchEvent(new Event('visibilitychange'))"  # as when a reader comes back to the tab
    before = driver.execute_script("return document.getElementById('progress').textContent")
    days = "return document.querySelector('.plot.tall path.ink').getAttribute('d').match(/[Ml]/g).length"
    drawn = driver.execute_script(days)
    newest = driver.execute_script("return document.querySelector('#latest [data-decision]').dataset.decision")
    served.play_on("2022-06-03")
    driver.execute_script(poll)
    until(driver, "return document.getElementById('progress').textContent !== arguments[0]", before)
    until(
        driver,
        "return document.querySelector('#latest [data-decision]').dataset.decision !== arguments[0]",
        newest,
    )
    until(driver, f"return (() => {{ {days} }})() > arguments[0]", drawn)
    assert "2022-06-03" in until(driver, "return document.getElementById('progress').textContent")
    assert complaints(driver) == []


def test_language_and_theme_switch_and_stay(driver, served):
    opened(driver, served, "/seasons/small/rules/")
    colour = "return getComputedStyle(document.body).backgroundColor"
    day = driver.execute_script(colour)
    driver.execute_script("document.querySelector('a[data-lang=zh]').click()")
    until(driver, "return document.documentElement.lang === 'zh-Hans'")
    until(driver, READY)
    assert "规则" in driver.title
    driver.execute_script("document.getElementById('theme').click()")
    night = driver.execute_script(colour)
    assert (
        night != day and driver.execute_script("return document.getElementById('theme').textContent") == "◐ 深色"
    )
    driver.execute_script("document.querySelector('nav.menu a').click()")  # both stay on the next page
    until(driver, "return location.pathname === '/zh/seasons/small/'")
    until(driver, READY)
    assert driver.execute_script("return document.documentElement.lang") == "zh-Hans"
    assert driver.execute_script(colour) == night
    line = "return getComputedStyle(document.querySelector('.plot.tall path.h0')).stroke"
    dark = driver.execute_script(line)
    driver.execute_script("document.getElementById('theme').click()")
    until(driver, f"return (() => {{ {line} }})() !== arguments[0]", dark)
    driver.execute_script("localStorage.clear()")
    opened(driver, served, "/seasons/small/feed/", dark=True)
    assert (
        driver.execute_script(colour) == night
        and driver.execute_script("return document.documentElement.lang") == "en"
    )


@pytest.mark.slow_for("390", "820", "1110")
@pytest.mark.parametrize("width", [390, 820, 1110])
def test_nothing_sticks_out(driver, served, width):
    round = "assets/AAJX/2022-05-27/"
    for path in (
        "",
        "split/",
        "feed/",
        "information/",
        "rules/",
        "published/",
        "entries/one-b/",
        "assets/AAJX/",
        round,
    ):
        opened(driver, served, f"/seasons/small/{path}", width)
        driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert (path, driver.execute_script("return document.documentElement.scrollWidth")) <= (path, width)
