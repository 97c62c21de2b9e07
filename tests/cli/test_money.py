"""One cap binds everything that a command starts, and what has no price is refused before the first question."""

import pytest
from money_server import MODEL, PRICES, UNPRICED, billing

from tradeassay.runs.play.progress import PacedCount


@pytest.fixture
def bill(place, monkeypatch):
    """The bill of a local server whose model has a price in ``prices.toml``."""
    with billing() as (address, sent):
        monkeypatch.setenv("PRICED_BASE_URL", address)
        monkeypatch.setenv("PRICED_API_KEY", "none")
        (place / "prices.toml").write_text(PRICES)
        yield sent


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
    from tradeassay.arena.season import demo_season

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
    assert bill.usd <= cap and bill.requests - asked <= 3, "what was spent counts when the command is repeated"
    assert bill.usd >= spent
    assert (place / "runs/paper-ama/paper.html").is_file()


def test_a_season_of_a_paper_shows_its_progress(bill, season, given, monkeypatch):
    monkeypatch.setitem(PacedCount.__init__.__kwdefaults__, "interval", 0.0)
    said = given(f"reproduce ama --data {season} --prices prices.toml --max-usd 5").err
    assert "1 of 3 rounds" in said and "3 of 3 rounds" in said, said
    assert 0 < bill.usd < 5 and f"{bill.usd:.4f} of 5 dollars spent" in said


@pytest.mark.parametrize("how", ["-m MODEL", "--data season.toml"])
def test_a_season_without_a_price_is_refused_before_the_first_question(how, bill, season, place, given):
    season.write_text(season.read_text().replace(MODEL, UNPRICED))
    line = f"reproduce ama {how.replace('MODEL', UNPRICED)} --prices prices.toml --max-usd 5"
    assert f"the price of {UNPRICED} is unknown" in given(line, 2).err
    assert not bill.requests and not (place / "runs/paper-ama/season.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "paper",
    [
        "stockbench --grid",
        "ktdfin --grid --probes 60 --cassettes recorded/smollm2",
    ],
)
def test_one_cap_binds_every_part_of_a_paper(paper, bill, given):
    cap = 0.06
    line = f"reproduce {paper} -m {MODEL} --prices prices.toml --max-usd {cap} --no-attribution"
    said = given(line, 1).err
    assert 0 < bill.requests and 0 < bill.usd <= cap
    assert "the cap on dollars is reached" in said
    asked = bill.requests
    given(line, 1)
    assert bill.usd <= cap and bill.requests - asked <= 3, "what was spent counts when the command is repeated"


@pytest.mark.parametrize(
    "paper", ["stockbench --grid", "ktdfin --grid", "quantcode --sample 1", "systrade --sample 1"]
)
def test_a_paper_without_a_price_is_refused_before_the_first_question(paper, bill, given):
    line = f"reproduce {paper} -m {UNPRICED} --prices prices.toml --max-usd 5"
    assert f"the price of {UNPRICED} is unknown" in given(line, 2).err
    assert not bill.requests


def test_a_season_with_a_budget_and_no_price_is_refused_before_the_first_question(bill, season, place, given):
    season.write_text(season.read_text().replace(MODEL, UNPRICED) + "[budget]\nusd_per_entry = 1.0\n")
    for line in ("arena run --speed max", "arena serve --port 8977"):
        said = given(f"{line} --season {season} --db arena.db", 2).err
        assert f"the price of {UNPRICED} is unknown" in said and "models.toml" in said
    assert not bill.requests


def test_nobody_joins_a_season_with_a_budget_without_a_price(bill, season, given):
    season.write_text(season.read_text().replace(MODEL, "scripted/sensible") + "[budget]\nusd = 1.0\n")
    given(f"arena run --season {season} --db arena.db --until 2022-03-01")
    join = f"arena amend join two architecture=investor model={UNPRICED} --day 2022-03-03 --db arena.db"
    assert f"the price of {UNPRICED} is unknown" in given(join, 2).err


def test_a_season_whose_decisions_fail_for_want_of_money_says_so_and_exits_with_1(bill, season, given):
    season.write_text(season.read_text() + "[budget]\ntokens = 10\n")
    line = f"arena run --season {season} --db arena.db"
    for said in (given(line, 1).err, given(line, 1).err):
        assert "2 of 3 decisions of models failed: 2 over_budget" in said
    assert bill.requests
