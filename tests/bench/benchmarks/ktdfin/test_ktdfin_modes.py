"""What each mode shows, and what it does not."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from ktdfin_game import DONE, Game, submit

from tradeassay.factors import FACTOR_NAMES
from tradeassay_bench.benchmarks.ktdfin import MODES, KtdfinConfig
from tradeassay_bench.data import Snapshot

ACCOUNT = {
    *"kind mode step as_of trade_day account performance last_fills last_rejections constraints".split()
}


def seen(
    snapshot: Snapshot, mode: str, days: int = 0, **config: Any
) -> tuple[Game, dict[str, Any]]:
    """Return an episode after some days of purchases, and what it shows today."""
    play = Game(snapshot, KtdfinConfig(mode=mode, **config))
    for _ in range(days):
        play.buy(2)
    play.decide([DONE, submit()] if mode == "open-research" else [submit()])
    return play, json.loads(play.asked[-1].given.observation)  # type: ignore[union-attr]


def test_memory_only_shows_ids_and_the_account_and_no_tool(ashares):
    play, shown = seen(ashares, "memory-only")
    assert set(shown) == {*ACCOUNT, "universe"}
    assert len(shown["universe"]) == len(play.now.universe) and all(
        isinstance(s, str) for s in shown["universe"]
    )
    assert [request.purpose for request in play.asked] == ["submit"]
    assert shown["constraints"]["tool_calls"] == 0
    assert not any(name in play.asked[0].messages[1].text for name in FACTOR_NAMES)


def test_open_research_shows_the_account_alone_and_a_table_cut_short_favours_no_factor(ashares):
    play, shown = seen(ashares, "open-research")
    assert set(shown) == ACCOUNT and shown["constraints"]["tool_calls"] == 12
    assert len(play.asked[0].tools) == 6
    assert len(seen(ashares, "fixed-candidate", table_size=9, table_top=5)[1]["candidates"]) <= 9


def test_fixed_candidate_shows_the_leaders_by_every_factor(ashares):
    play, shown = seen(ashares, "fixed-candidate", days=1)
    assert set(shown) == {*ACCOUNT, "candidates", "held"}
    ids = [row["stock_id"] for row in shown["candidates"]]
    assert ids == sorted(ids) and len(ids) <= 30
    assert [row["stock_id"] for row in shown["held"]] == [
        p["stock_id"] for p in shown["account"]["positions"]
    ]
    day_view = play.protocol.day_view(play.now)
    columns = play.now.columns[
        day_view.tradable[play.now.columns] & ~day_view.at_limit_up[play.now.columns]
    ]
    for k, name in enumerate(FACTOR_NAMES):
        best = columns[np.nanargmax(day_view.factors[k, columns])]
        assert play.shown(day_view.roster.symbols[best]) in ids, name
    row = shown["candidates"][0]
    assert set(row["factors"]) == set(FACTOR_NAMES)
    assert set(row["last_bar"]) == {"open", "high", "low", "close", "volume", "amount"}


def test_news_is_shown_only_where_the_benchmark_has_it(us):
    quiet, loud = (
        seen(us, "fixed-candidate", news=n, news_days=60)[1]["candidates"] for n in (False, True)
    )
    assert not any("news" in row for row in quiet)
    rows = [row for row in loud if row.get("news")]
    assert rows and all(len(row["news"]) <= 5 for row in rows)
    item = rows[0]["news"][0]
    assert set(item) == {"day", "stock_ids", "title"} and item["day"].startswith("day_-")


@pytest.mark.parametrize("mode", MODES)
def test_us_rules_are_told_as_they_are(us, mode):
    play, shown = seen(us, mode)
    limits = shown["constraints"]
    assert limits["lot"] == 1.0 and limits["t_plus_1"] is False
    if mode == "open-research":
        answer = play.ask("get_stock_snapshot", {"stock_id": play.shown(play.symbols(1)[0])})
        assert (
            answer["limit_up"] is None
            and answer["limit_down"] is None
            and answer["board"] == "none"
        )


def test_the_config_is_frozen_and_checked():
    config = KtdfinConfig()
    assert (config.tool_calls, config.retries, config.max_candidates, config.max_positions) == (
        12,
        3,
        30,
        20,
    )
    assert (config.max_weight, config.min_reason, config.temperature, config.max_tokens) == (
        0.10,
        1,
        0.0,
        4096,
    )
    assert (config.timeout_s, config.table_top, config.table_size) == (120.0, 5, 30)
    assert (
        msgspec.convert({"mode": "memory-only", "mask": "bright"}, KtdfinConfig).mode
        == "memory-only"
    )
    for wrong in (
        {"tool_calls": 0},
        {"max_weight": 1.5},
        {"mode": "psychic"},
        {"colour": "red"},
        {"mask": "none"},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, KtdfinConfig)
