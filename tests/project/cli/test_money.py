"""One cap binds everything that a command starts, and what has no price is refused before the
first question.
"""

import json
import re

import pytest
from money_server import MODEL, OUTPUT_USD, PRICES, UNPRICED, billing

from tradeassay_bench.runs.play.progress import PacedCount

pytestmark = pytest.mark.journey


@pytest.fixture
def bill(place, monkeypatch):
    """The bill of a local server whose model has a price in ``prices.toml``."""
    with billing() as (address, sent):
        monkeypatch.setenv("PRICED_BASE_URL", address)
        monkeypatch.setenv("PRICED_API_KEY", "none")
        (place / "prices.toml").write_text(PRICES)
        yield sent


DAYS = "--first 2022-02-07 --last 2022-02-10"
ASKED = f"-m {MODEL} --prices prices.toml"
COMMANDS = {
    "run": (f"run ktdfin-v1 {ASKED} {DAYS} --executor inline --name x", 0.07, 1, "over_budget"),
    "record": (
        f"recordings record ktdfin-v1 {ASKED} {DAYS} --name x -o x.tar.xz",
        0.07,
        1,
        "1 episodes failed",
    ),
    "code": (
        f"code run quantcode-v1 {ASKED} --sample 12 --max-tokens 2000",
        0.03,
        1,
        "over_budget",
    ),
    "recall": (
        f"memory recall -m {MODEL} --dataset synthetic/us:7 --recordings kept",
        0.02,
        2,
        "a larger --max-usd",
    ),
    "probe": (
        f"memory probe --attackers {MODEL} --window W4 --recordings kept",
        0.06,
        2,
        "a larger --max-usd",
    ),
}
"""A command, its cap, its exit status, and what it says."""


@pytest.fixture
def own_prices(data_home):
    """The price in the user's own file, for commands without ``--prices``."""
    (data_home / "models.toml").write_text(PRICES)
    yield
    (data_home / "models.toml").unlink()


@pytest.mark.slow_for("probe")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_cap_of_a_command_binds_it_and_its_repetition(name, bill, own_prices, given):
    line, cap, status, said = COMMANDS[name]
    line = f"{line} --max-usd {cap}"
    assert said in given(line, status).err
    assert 0 < bill.requests and 0 < bill.usd <= cap
    asked = bill.requests
    given(line, status)
    # What the first time left of the cap, while other questions were under way, may be spent now.
    assert bill.usd <= cap and bill.requests - asked < asked


@pytest.mark.parametrize("text", ["inf", "nan", "-inf", "-1.0"])
def test_a_price_that_is_none_is_refused_before_the_first_question(text, bill, place, given):
    (place / "prices.toml").write_text(PRICES.replace(f"output = {OUTPUT_USD}", f"output = {text}"))
    said = given(f"run ktdfin-v1 {ASKED} {DAYS} --max-usd 5", 2).err
    assert len(said.strip().splitlines()) == 1 and "prices.toml" in said and "output" in said
    assert not bill.requests


SEASON = f"""id = "short"
first = "2022-03-01"
last = "2022-03-03"

[[assets]]
symbol = "AAA000"
kind = "stock"
dataset = "synthetic/us:7"

[[entries]]
id = "one"
architecture = "investor"
model = "{MODEL}"
"""


@pytest.fixture
def season(place):
    from tradeassay_arena.season import demo_season

    symbol = demo_season().assets[0].symbol
    (place / "season.toml").write_text(SEASON.replace("AAA000", symbol))
    return place / "season.toml"


def test_the_cap_of_a_paper_binds_its_seasons(bill, place, given):
    cap = 0.08
    line = f"reproduce ama -m {MODEL} --prices prices.toml --max-usd {cap}"
    said = given(line, 1).err
    assert 0 < bill.requests and 0 < bill.usd <= cap
    assert f"the cap of {cap:g} dollars is reached" in said and "--max-usd" in said
    asked, spent = bill.requests, bill.usd
    again = given(line, 1).err
    assert "the cap of" in again
    assert bill.usd <= cap and bill.requests - asked <= 3, (
        "what was spent counts when the command is repeated"
    )
    assert bill.usd >= spent
    assert (place / "runs/paper-ama/paper.html").is_file()


def test_a_season_of_a_paper_shows_its_progress(bill, season, given, monkeypatch):
    monkeypatch.setitem(PacedCount.__init__.__kwdefaults__, "interval", 0.0)
    said = given(f"reproduce ama --data {season} --prices prices.toml --max-usd 5").err
    assert "1 of 3 rounds" in said and "3 of 3 rounds" in said, said
    assert 0 < bill.usd < 5 and f"{bill.usd:.4f} of 5 dollars spent" in said


@pytest.mark.parametrize("how", ["-m MODEL", "--data season.toml"])
def test_a_season_without_a_price_is_refused_before_the_first_question(
    how, bill, season, place, given
):
    season.write_text(season.read_text().replace(MODEL, UNPRICED))
    line = f"reproduce ama {how.replace('MODEL', UNPRICED)} --prices prices.toml --max-usd 5"
    assert f"the price of {UNPRICED} is unknown" in given(line, 2).err
    assert not bill.requests and not (place / "runs/paper-ama/season.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "paper",
    [
        "stockbench --grid",
        "ktdfin --grid --probes 60 --recordings recorded/smollm2",
    ],
)
def test_one_cap_binds_every_part_of_a_paper(paper, bill, given):
    cap = 0.06
    line = f"reproduce {paper} -m {MODEL} --prices prices.toml --max-usd {cap} --no-attribution"
    said = given(line, 1).err
    assert 0 < bill.requests and 0 < bill.usd <= cap
    assert "the spending cap is reached" in said
    asked = bill.requests
    given(line, 1)
    assert bill.usd <= cap and bill.requests - asked <= 3, (
        "what was spent counts when the command is repeated"
    )


@pytest.mark.parametrize(
    "paper", ["stockbench --grid", "ktdfin --grid", "quantcode --sample 1", "systrade --sample 1"]
)
def test_a_paper_without_a_price_is_refused_before_the_first_question(paper, bill, given):
    line = f"reproduce {paper} -m {UNPRICED} --prices prices.toml --max-usd 5"
    assert f"the price of {UNPRICED} is unknown" in given(line, 2).err
    assert not bill.requests


def test_a_season_with_a_budget_and_no_price_is_refused_before_the_first_question(
    bill, season, place, given
):
    season.write_text(
        season.read_text().replace(MODEL, UNPRICED) + "[budget]\nusd_per_entry = 1.0\n"
    )
    for line in ("arena run --speed max", "arena serve --port 8977"):
        said = given(f"{line} --season {season} --db arena.db", 2).err
        assert f"the price of {UNPRICED} is unknown" in said and "models.toml" in said
    assert not bill.requests


def test_nobody_joins_a_season_with_a_budget_without_a_price(bill, season, given):
    season.write_text(
        season.read_text().replace(MODEL, "scripted/sensible") + "[budget]\nusd = 1.0\n"
    )
    given(f"arena run --season {season} --db arena.db --until 2022-03-01")
    join = (
        f"arena amend join two architecture=investor model={UNPRICED} --day 2022-03-03 --db "
        "arena.db"
    )
    assert f"the price of {UNPRICED} is unknown" in given(join, 2).err


def test_a_season_whose_decisions_fail_for_want_of_money_says_so_and_exits_with_1(
    bill, season, given
):
    season.write_text(season.read_text() + "[budget]\ntokens = 10\n")
    line = f"arena run --season {season} --db arena.db"
    for said in (given(line, 1).err, given(line, 1).err):
        assert "2 of 3 decisions of models failed: 2 over_budget" in said
    assert bill.requests


def test_log_probabilities_are_paid_for_like_answers(bill, own_prices, told):
    line = f"memory recall -m {MODEL} --dataset synthetic/us:7 --questions 20 --recordings"
    free = told(f"{line} kept")
    # A connection that breaks on a busy machine may have cost something, and is counted as if it had.
    assert bill.usd <= free["usd"] <= 1.5 * bill.usd
    whole, bill.usd = bill.usd, 0.0
    cap = 0.7 * whole
    capped = told(f"{line} other --max-usd {cap}")
    assert 0 < bill.usd <= cap and capped["usd"] <= cap
    assert "give a larger cap on dollars" in capped["propensity"]["sentence"], (
        "in a command's words and in Python's"
    )


def _buy_the_first_candidate(body):
    shown = " ".join(str(message["content"]) for message in body["messages"])
    found = re.search(r"^(\d{6}) \| main", shown, re.MULTILINE)
    order = {
        "stock_id": found and found[1],
        "target_weight": 0.1,
        "confidence": 0.5,
        "reason": "it may rise",
    }
    return json.dumps({"orders": [order], "overall_reason": "one stock"})


def test_one_cap_binds_a_run_and_what_its_model_remembers(bill, own_prices, given):
    bill.answer = _buy_the_first_candidate
    cell = f"{DAYS} --mask bright --mode fixed-candidate"
    line = f"run ktdfin-v1 {ASKED} {cell} --executor inline --name x"
    given(line)
    asked, cap = bill.requests, bill.usd + 0.0005
    said = given(f"{line} --with recall --max-usd {cap}", 2).err
    assert "a larger --max-usd" in said and "was not queried" in said
    assert bill.requests == asked, "the run itself has spent nearly all of the cap"
    said = given("memory counterfactual runs/x --share 1 --max-usd 0.001 --recordings kept", 2).err
    assert "was not queried" in said and bill.requests == asked


@pytest.mark.parametrize(
    "line",
    [
        f"run ktdfin-v1 -m {MODEL} -m {UNPRICED} {DAYS}",
        f"code run quantcode-v1 -m {MODEL} --judge {UNPRICED} --sample 1",
        f"memory recall -m {UNPRICED} --dataset synthetic/us:7",
        f"memory probe --attackers {MODEL},{UNPRICED} --window W4 --probes 5",
    ],
)
def test_a_model_without_a_price_is_refused_before_the_first_question_to_anybody(
    line, bill, own_prices, given
):
    assert f"the price of {UNPRICED} is unknown" in given(f"{line} --max-usd 5", 2).err
    assert not bill.requests


def test_a_resumed_run_counts_what_it_has_spent(bill, given):
    cap = 0.07
    given(f"run ktdfin-v1 {ASKED} {DAYS} --executor inline --name x --max-usd {cap}", 1)
    asked = bill.requests
    said = given(f"resume runs/x --retry-failed --prices prices.toml --max-usd {cap}", 1).err
    assert "over_budget" in said and bill.usd <= cap and bill.requests - asked <= 3
    given(f"resume runs/x --retry-failed --prices prices.toml --max-usd {2 * cap}", 1)
    assert bill.requests > asked + 3 and bill.usd <= 2 * cap


def test_a_season_that_reaches_no_model_says_so_and_exits_with_1(bill, season, given, monkeypatch):
    monkeypatch.delenv("PRICED_API_KEY")
    said = given(f"arena run --season {season} --db arena.db", 1).err
    assert "3 of 3 decisions of models failed: 3 rejected" in said and not bill.requests
