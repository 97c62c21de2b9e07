"""What a model is shown: news and fundamentals of the right days, ablations, the context limit,
and no future.
"""

from dataclasses import replace
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from stockbench_game import (
    ROWS,
    START,
    action,
    answer,
    at,
    day_of,
    decide,
    do,
    figure,
    item,
    payload_of,
    pick,
    play,
    protocol,
    small_market,
    small_panel,
)

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.stockbench import INPUTS, Prompt, StockbenchConfig
from tradeassay_bench.benchmarks.stockbench.payload import PER_MESSAGE, tokens_in, tokens_of
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm.scripted import scripted_models
from tradeassay_bench.play import Market, MarketConfig
from tradeassay_bench.testing.agent import rewrite_after

NEWS = (
    item(1, START - 3, 23.9, "A"),
    item(2, START - 2, 0.0, "A", body="on the first\nmoment of T-2"),
    item(3, START - 1, 23.9, "A", "B"),
    item(4, START, 0.0, "A"),
    *(item(10 + n, START - 1, n, "B") for n in range(7)),
)
FIGURES = (
    figure("A", "shares_outstanding", START - 8, 900.0, "2023-09-30"),
    figure("A", "shares_outstanding", START - 5, 1000.0),
    figure("A", "eps_ttm", START - 5, 0.5),
    figure("A", "eps_ttm", START + 1, 5.0, "2024-01-09"),
    figure("B", "eps_ttm", START - 5, -1.0),
)
ACTIONS = (
    action("A", "dividend", START - 4, 0.30),
    action("A", "split", START - 3, 2.0),
    action("A", "dividend", START - 2, 0.10),
    action("A", "dividend", START + 1, 0.50),
)


@pytest.fixture
def rich(store: Any) -> Snapshot:
    return store(small_panel(news=NEWS, fundamentals=FIGURES, actions=ACTIONS))


def day_one(snapshot: Snapshot, **changes: Any) -> list[AskModel]:
    market = small_market(snapshot)
    talk = protocol(market, **changes).dialogue(market.reset())
    _, asked = answer(talk, (pick("A", "B"), {"notes": {}}, decide(A=do("increase", 100.0))))
    return asked


def rows(request: AskModel) -> dict[str, Any]:
    return {row["symbol"]: row for row in payload_of(request)["symbols"]}


FIGURE_NAMES = ("market_cap", "pe", "dividend_yield", "high_52w", "low_52w", "dividend")


def figures(request: AskModel, symbol: str = "A") -> tuple[float | None, ...]:
    shown = rows(request)[symbol]["fundamentals"]
    assert tuple(shown) == FIGURE_NAMES
    return tuple(shown.values())


def test_news_is_of_the_two_days_before_newest_first_and_five_at_most(rich, store):
    overview, analysis, decision = day_one(rich)
    assert [news["title"] for news in rows(overview)["A"]["news"]] == ["title 3", "title 2"]
    assert [news["title"] for news in rows(overview)["B"]["news"]] == [
        f"title {n}" for n in (3, 16, 15, 14, 13)
    ]
    assert rows(overview)["C"]["news"] == [] and rows(overview)["A"]["news"][1]["text"] is None
    whole = {
        "published": "2024-01-09T00:00:00Z",
        "title": "title 2",
        "text": "on the first moment of T-2",
    }
    assert rows(analysis)["A"]["news"][1] == whole and "news" not in rows(decision)["A"]
    long = store(small_panel(news=(item(1, START - 1, 1.0, "A", body="word " * 500),)))
    text = rows(day_one(long, news_characters=50)[1])["A"]["news"][0]["text"]
    assert len(text) <= 50 and text.endswith("...")


def test_fundamentals_are_in_shares_of_today_and_only_for_the_picked(rich):
    overview, analysis, _ = day_one(rich, year_sessions=10)
    assert "fundamentals" not in rows(overview)["A"] and set(rows(analysis)) == {"A", "B"}
    # 1,000 shares became 2,000 at 10; earnings of 0.5 became 0.25; dividends 0.30 / 2 + 0.10 over the year.
    # Prices before the split are halved when it is undone: the year's range is 5 to 10.
    assert figures(analysis) == (20000.0, 40.0, 0.025, 10.0, 5.0, 0.25)
    assert figures(analysis, "B") == (None, None, 0.0, 20.0, 20.0, 0.0)


def test_what_nobody_knew_is_none_as_is_a_stale_figure_and_a_dividend_figure_stands_in(
    three, store
):
    assert set(figures(day_one(three)[1])) == {None}
    paid = figure("A", "dividend_per_share_ttm", START - 5, 0.4)  # where no actions are known
    old = figure("A", "shares_outstanding", 0, 10.0)
    old = msgspec.structs.replace(old, known_at=at(0, 0) - 600 * 24 * 3600 * 10**9)
    found = figures(day_one(store(small_panel(fundamentals=(paid, old))))[1])
    assert found == (None, None, 0.04, None, None, 0.4)


@pytest.mark.parametrize("inputs", INPUTS)
def test_an_ablation_takes_away_exactly_what_it_names(rich, inputs):
    config = StockbenchConfig(inputs=inputs)
    for whole, ablated in zip(day_one(rich), day_one(rich, inputs=inputs), strict=True):
        full, less = payload_of(whole), payload_of(ablated)
        for row in full["symbols"]:
            if not config.shows_news:
                row.pop("news", None)
            if not config.shows_fundamentals:
                row.pop("fundamentals", None)
        assert full == less
        before, after = (request.messages[-1].text for request in (whole, ablated))
        assert ("title 3" in after) == ("title 3" in before and config.shows_news)
        assert ("dividend_yield" in after) == (
            "dividend_yield" in before and config.shows_fundamentals
        )
        gone = set(before.splitlines()) - set(after.splitlines())
        assert not gone or not (config.shows_news and config.shows_fundamentals)


def test_a_prompt_changes_words_and_no_data(rich):
    asked = [day_one(rich, prompt=one) for one in get_args(Prompt)]
    assert all(
        [payload_of(request) for request in one] == [*map(payload_of, day_one(rich))]
        for one in asked
    )
    texts = {one[0].messages[0].text for one in asked}
    assert len(texts) == 3 and all("0.03 %" in text for text in texts)


# -- the context limit -----------------------------------------------------------------------------


def test_tokens_are_counted_carefully():
    assert tokens_of("") == 0
    assert tokens_of("word and more words") == 5  # w-o-r-d, and, more, word+s
    assert tokens_of("1234.5,") == 5  # 123, 4, ., 5, and the comma
    assert tokens_of("a\n\nb") == 3
    assert tokens_of("\u4e2d") == 3  # one sign, three bytes
    assert (
        tokens_in((Message(role="user", text="ab"), Message(role="user", text="")))
        == 1 + 2 * PER_MESSAGE
    )


def test_what_does_not_fit_is_left_out_in_order_and_recorded(rich):
    market = small_market(rich)
    lengths = [tokens_in(request.messages) for request in day_one(rich)]

    def cut(room: int) -> tuple[list[str], list[AskModel]]:
        made = protocol(market, context_tokens=room + 1, max_tokens=1)
        decision, asked = answer(
            made.dialogue(market.reset()), (pick("A", "B"), {"notes": {}}, decide())
        )
        assert decision.status == "ok"
        return [f.detail for f in decision.failures if f.kind == "context_cut"], asked

    assert cut(max(lengths)) == ([], day_one(rich))
    notes, asked = cut(lengths[2] - 1)
    assert (
        notes == ["decision: without what was said in the overview"] and len(asked[2].messages) == 4
    )
    notes, asked = cut(lengths[0] - 1)
    assert (
        "overview: without the texts of news" in notes
        and "overview: without the history of own actions" in notes
    )
    assert "history" not in payload_of(asked[0]) and tokens_in(asked[0].messages) < lengths[0]
    notes, asked = cut(50)
    assert [note for note in notes if note.startswith("decision")][-1] == (
        "decision: without the closes before the last one"
    )
    assert any(note.endswith("tokens, 50 are allowed") for note in notes)
    row = rows(asked[0])["A"]
    assert row["closes"] == [10.0] and "news" not in row and row["open"] == 10.0


# -- time ------------------------------------------------------------------------------------------


def test_no_prompt_of_a_day_changes_when_the_future_is_rewritten(us_panel, store):
    """Prices, news, figures, actions, memberships and delistings after the open of a day become
    something else.
    """
    cut, first = 6, 300
    config = MarketConfig(
        venue="us-fractional-v1",
        universe="IDX:10",
        index="IDX",
        cash=100_000.0,
        decide="at_open",
        first=str(us_panel.sessions[first]),
        last=str(us_panel.sessions[first + 11]),
    )
    said = []
    for panel in (us_panel, rewrite_after(us_panel, first + cut, np.random.default_rng(1), "open")):
        market = Market(store(panel), config)
        said.append(play(market, protocol(market), scripted_models.get("sensible")().answer)[1])
    assert said[0][: cut + 1] == said[1][: cut + 1]
    assert said[0][cut + 1] != said[1][cut + 1], "the rewriting changed nothing"
    shown = [request.given.observation for day in said[0] for request in day]  # type: ignore[union-attr]
    assert any('"pe":' in one for one in shown) and any('"title":' in one for one in shown)


def test_a_resumed_protocol_says_the_same(us):
    first, last = map(str, us.sessions[[300, 311]])
    config = MarketConfig(
        venue="us-fractional-v1",
        universe="IDX:5",
        cash=100_000.0,
        decide="at_open",
        first=first,
        last=last,
    )
    market, again = Market(us, config), Market(us, config)
    records, asked = play(market, protocol(market), scripted_models.get("sensible")().answer)
    made = protocol(again)
    seen = again.restore(
        records[:6], lambda observation, record: made.remember(observation, record.decision)
    )
    assert seen is not None and next(made.dialogue(seen)) == asked[6][0]


def test_it_is_played_at_the_open_and_within_its_bounds(three):
    market = Market(
        three,
        MarketConfig(
            venue="us-fractional-v1", first=day_of(START), last=day_of(ROWS - 1), cash=1000.0
        ),
    )
    with pytest.raises(UserError, match="needs decisions at the open"):
        protocol(market).dialogue(market.reset())
    config = protocol(small_market(three), attempts=np.int64(2), year_coverage=1).config
    assert (type(config.attempts), type(config.year_coverage)) == (int, float)
    for wrong in ({"attempts": 0}, {"tolerance": 2.0}, {"inputs": "some"}, {"prompt": "loud"}):
        with pytest.raises(UserError):
            protocol(small_market(three), **wrong)


def test_the_opening_gap_is_seen_and_the_close_is_not(store):
    panel = small_panel()
    bars = {name: values.copy() for name, values in panel.bars.items()}
    bars["open"][START, 0], bars["close"][START, 0] = 11.0, 12.5
    bars["high"][START, 0] = 12.5
    row = rows(day_one(store(replace(panel, bars=bars)))[0])["A"]
    assert row["open"] == 11.0 and row["closes"] == [10.0] * 7


def test_models_answer_is_kept_as_it_was(three):
    market = small_market(three)
    text = '  {"analyse": []}  '
    _, asked = answer(protocol(market).dialogue(market.reset()), (ModelReply(text=text), decide()))
    assert asked[1].messages[2] == Message(role="assistant", text=text)
