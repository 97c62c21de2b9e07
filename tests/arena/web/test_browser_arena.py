"""The arena in a real browser: open, filter, drill down, watch a day arrive, change language and
theme.
"""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from browser import NEEDS_BROWSER, READY, opened as opened_at

pytestmark = [pytest.mark.journey, *NEEDS_BROWSER]


class Served:
    """An arena on a free port, and the means to let it play on."""

    def __init__(
        self, base: str, play_on: Callable[[str], None], mark: Callable[[float], None]
    ) -> None:
        self.base, self.play_on, self.mark = base, play_on, mark


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    from arena_sample import FAST, make_season, open_store, play
    from tests.arena.conftest import listening

    from tradeassay_arena.api.agent_api import AgentApi
    from tradeassay_arena.rounds.feed import SnapshotFeed
    from tradeassay_arena.rounds.health import Health, Mark
    from tradeassay_arena.web.app import Arena
    from tradeassay_arena.web.site import PageWriter

    store = open_store(tmp_path_factory.mktemp("browser") / "arena.db")
    site = tmp_path_factory.mktemp("pages")
    season = make_season()
    feed = SnapshotFeed.open(season)
    play(store, season, feed, "2022-06-01")
    own = Health(season.id, "me", live=True)
    writer, api = PageWriter(store, site, FAST, own=lambda: own), AgentApi(store)
    writer.update()

    def play_on(day: str) -> None:
        play(store, season, feed, day)
        writer.update()

    def mark(growth: float) -> None:
        last = store.last_round(season.id, "AAJX")
        assert last is not None and last.phase == "executed"
        own.marks["AAJX"] = Mark(session=last.session, growth=growth, at="2022-06-02T15:00:00Z")
        writer.update()

    with listening(Arena(api=api, folder=site)) as port:
        yield Served(f"http://127.0.0.1:{port}", play_on, mark)
    store.engine.dispose()


class Reader:
    """Somebody at a browser; what the browser complains about is an error."""

    def __init__(self, driver: Any, served: Served) -> None:
        self.driver, self.served, self.js = driver, served, driver.execute_script

    def open(self, path: str, width: int = 1280, *, dark: bool = False) -> None:
        opened_at(self.driver, self.served.base + path, width, dark=dark)

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    def until(self, script: str, *arguments: object) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(self.driver, 120, poll_frequency=0.05)
        return wait.until(lambda driver: driver.execute_script(script, *arguments))

    def arrives(self, path: str) -> None:
        self.until("return new RegExp(arguments[0]).test(location.pathname)", path)
        self.until(READY)

    def complaints(self) -> list[str]:
        return [
            e["message"]
            for e in self.driver.get_log("browser")
            if e["level"] in ("SEVERE", "WARNING")
        ]


@pytest.fixture
def reader(driver, served):
    made = Reader(driver, served)
    yield made
    assert made.complaints() == []


ROWS = (
    "return [...document.querySelectorAll('#board tr[data-entry]')].map((one) => one.dataset.entry)"
)


def test_it_opens_with_named_lines_and_no_complaint(reader):
    reader.open("/")
    assert reader.driver.current_url.endswith("/seasons/small/")
    chart = "document.querySelector('.plot.tall')"
    names = reader.js(
        f"return [...{chart}.querySelectorAll('.period:not([hidden]) .name:not(.thin)')].map((e) "
        "=> e.textContent)"
    )
    assert {"Investor · test/a", "Trading desk · test/a", "Buy and hold"} <= set(names) and len(
        names
    ) == 6
    assert (
        reader.js(f"return {chart}.querySelectorAll('path[stroke-dasharray=\"6 4\"]').length") == 1
    )
    reader.click('.ranges [data-days="31"]')
    first = reader.js(f"return {chart}.querySelector('svg.data').viewBox.baseVal.x")
    assert date.fromordinal(int(first)) == date(
        2022, 5, 2
    )  # the whole season is younger than a month
    assert reader.js("return window.hacked") is None


def test_an_asset_shows_what_the_chosen_agent_did_at_its_price(reader):
    reader.open("/seasons/small/")
    reader.click('.ticker a[href$="/assets/AHVQ/"]')
    reader.arrives("/assets/AHVQ/$")
    assert len(reader.js(ROWS)) == 6
    marks = "[...document.querySelectorAll('#actions [data-act]')]"
    drawn = f"return {marks}.map((one) => [one.dataset.act, one.textContent.length])"
    choose = (
        "const one = document.getElementById('whose'); one.value = arguments[0];"
        "one.dispatchEvent(new Event('change'))"
    )
    reader.js(choose, "one-a")
    acts = dict(reader.js(drawn))
    assert set(acts) == {"B", "S", "fm"} and acts["B"] > 5
    reader.js(choose, "buy-and-hold")
    assert set(dict(reader.js(drawn))) == {"B"}
    inside = (
        "const box = document.querySelector('#actions .plot > svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#actions [data-act]')].every((one) => {"
        "const at = one.getBoundingClientRect(); return at.top >= box.top - 12 && at.bottom <= "
        "box.bottom + 12 })"
    )
    assert reader.js(inside)
    reader.click("#sessions a")
    reader.until("return /2022-0\\d-\\d\\d/.test(location.pathname)")


def test_accounts_move_between_closes(reader):
    reader.served.mark(1.02)
    reader.open("/seasons/small/")
    moving = "return document.querySelector('[data-moving=\"buy-and-hold\"]').textContent"
    told = reader.until(moving)
    assert told.startswith("+1.0") and "provisional" in told and "2022-06-02 15:00 UTC" in told


def test_the_owner_of_an_agent_is_told_when_a_token_is_nobodys(reader):
    reader.open("/seat/")
    hidden = "return getComputedStyle(document.getElementById('seat-facts')).display"
    assert reader.js(hidden) == "none"
    reader.js("document.querySelector('form.seat [name=token]').value = 'nobody'")
    reader.click("form.seat button")
    assert "not known" in reader.until(
        "return document.querySelector('form.seat [role=status]').textContent"
    )
    assert reader.js(hidden) == "none"
    assert reader.complaints()  # the refusal stands in the browser's log


def test_drilling_down_to_prompt_debate_and_outcome(reader):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    reader.open("/seasons/small/")
    reader.click('#board a[href$="/entries/one-a/"]')
    reader.arrives("/entries/one-a/$")
    decision = reader.driver.find_elements(By.CSS_SELECTOR, "#decisions details.decision")[5]
    decision.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    reader.until("return arguments[0].querySelectorAll('.body h3').length >= 3", decision)
    said = decision.find_element(By.CSS_SELECTOR, ".body").text
    assert (
        "because <script>window.hacked" in said
        and "The asset moved" in said
        and "analyst" in said.lower()
    )
    prompt = decision.find_element(By.CSS_SELECTOR, "details.part")
    prompt.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    reader.until("return arguments[0].querySelectorAll('pre').length >= 2", prompt)
    assert "2022-0" in prompt.find_element(By.CSS_SELECTOR, "pre").text
    assert reader.js("return window.hacked") is None
    assert reader.js("return document.querySelectorAll('main img').length") == 0


def test_a_replayed_day_arrives_by_itself(reader):
    reader.open("/seasons/small/")
    reader.until("return document.getElementById('pulse').dataset.state === 'on'")
    poll = "document.dispatchEvent(new Event('visibilitychange'))"  # as when a reader comes back to the tab
    before = reader.js("return document.getElementById('progress').textContent")
    days = (
        "return document.querySelector('.plot.tall "
        "path.ink').getAttribute('d').match(/[Ml]/g).length"
    )
    drawn = reader.js(days)
    newest = reader.js("return document.querySelector('#latest [data-decision]').dataset.decision")
    reader.served.play_on("2022-06-03")
    reader.js(poll)
    reader.until("return document.getElementById('progress').textContent !== arguments[0]", before)
    reader.until(
        "return document.querySelector('#latest [data-decision]').dataset.decision !== "
        "arguments[0]",
        newest,
    )
    reader.until(f"return (() => {{ {days} }})() > arguments[0]", drawn)
    assert "2022-06-03" in reader.until("return document.getElementById('progress').textContent")


def test_language_and_theme_switch_and_stay(reader):
    reader.open("/seasons/small/rules/")
    colour = "return getComputedStyle(document.body).backgroundColor"
    day = reader.js(colour)
    reader.click("a[data-lang=zh]")
    reader.until("return document.documentElement.lang === 'zh-Hans'")
    reader.until(READY)
    assert "规则" in reader.driver.title
    reader.click("#theme")
    night = reader.js(colour)
    assert (
        night != day
        and reader.js("return document.getElementById('theme').textContent") == "◐ 深色"
    )
    reader.click("nav.menu a")  # both stay on the next page
    reader.arrives("/zh/seasons/small/$")
    assert reader.js("return document.documentElement.lang") == "zh-Hans"
    assert reader.js(colour) == night
    line = "return getComputedStyle(document.querySelector('.plot.tall path.h0')).stroke"
    dark = reader.js(line)
    reader.click("#theme")
    reader.until(f"return (() => {{ {line} }})() !== arguments[0]", dark)
    reader.js("localStorage.clear()")
    reader.open("/seasons/small/feed/", dark=True)
    assert reader.js(colour) == night and reader.js("return document.documentElement.lang") == "en"


@pytest.mark.slow_for("390", "820", "1110")
@pytest.mark.parametrize("width", [390, 820, 1110])
def test_nothing_sticks_out(reader, width):
    paths = (
        "feed/ information/ rules/ published/ entries/one-b/ assets/AAJX/ assets/AAJX/2022-05-27/"
    )
    for path in ("", *paths.split()):
        reader.open(f"/seasons/small/{path}", width)
        reader.js("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert (path, reader.js("return document.documentElement.scrollWidth")) <= (path, width)
