"""Nothing real is ever said under a mask, whatever a model asks for; and nothing depends on the
future.
"""

import json
import re
from typing import Any

import ktdfin_game as game
import numpy as np
import pytest
from ktdfin_game import DONE, Game, call, order, submit

from tradeassay_bench.benchmarks.ktdfin import MODES, KtdfinConfig
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.data import Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.masking import Truth, find_leaks
from tradeassay_bench.masking.scales import BLUR
from tradeassay_bench.testing.agent import rewrite_after

MASKS = ("stock-blind", "date-blind", "blinded")


def bad_submissions(play: Game) -> list[ModelReply]:
    """Return submissions that break every rule of form and content, real names and dates among
    them.
    """
    symbols = play.symbols(6)
    shown, real = [play.shown(symbol) for symbol in symbols], symbols[0]
    some = [
        submit(order("asset_9999")),
        submit(order("600519")),
        submit(order(real, target_weight=0.9)),
        submit(order(play.shown("IDXF"))),
        call(("submit_action", "{")),
        call(("submit_action", {"orders": [], real: 1})),
        submit(order(shown[0], **{real: 2, "since": "2022-03-03"})),
        submit(order(shown[0], target_weight=0.9), order(shown[1], shares=50), order(shown[1])),
        submit(order(shown[2], "SELL", shares=100)),
        submit(*[order(s, target_weight=0.1) for s in shown] * 9),
        ModelReply(text="no"),
        call(("portfolio_state", {})),
    ]
    for held in map(play.shown, list(play.now.account.positions)[:1]):
        some.append(
            submit(order(held, "SELL", shares=10**7), order(held, "BUY", target_weight=0.001))
        )
    return some


def go_wrong(play: Game, days: int) -> list[str]:
    """Go through every call and every bad submission, buying a little in between; return what
    was said.
    """
    start: list[ModelReply] = []
    for _ in range(days):
        stocks = [play.shown(symbol) for symbol in play.symbols(3)]
        research = [call(*group) for group in game.batches(game.mischief(stocks), 11)]
        bad = bad_submissions(play)
        for turn, refused in enumerate(bad):
            if play.config.mode == "open-research":
                start = [research[turn % len(research)], DONE]
            decision = play.decide([*start, refused, *bad[:3], submit()])
            assert play.config.convention == "corrected" or decision.status == "failed"
        fresh = next(s for s in play.symbols(9) if s not in play.now.account.positions)
        decision = play.decide([*start[1:], submit(order(play.shown(fresh), target_weight=0.06))])
        assert decision.status == "ok", decision
        play.go(decision)
    play.decide([*start[1:], submit()])
    return game.texts(play.asked)


def truth_of(play: Game, mask: Any = None) -> Truth:
    """Return what a mask of an episode hides, its own where none is given."""
    config = KtdfinConfig(mask=mask) if mask else play.config
    return Truth.of(play.now.view, config.mask_config, history=280, ahead=60)


def leaks_in(text: str, truth: Truth) -> list[Any]:
    """Return what is real in a text.

    Numbers of a table are judged as data: a volume may look like a code.
    """
    if text.startswith("{"):
        return list(find_leaks(json.loads(text), truth))
    return list(
        find_leaks(re.sub(r"(?<=\| )[\d.-]+(?= \||$)", "", text, flags=re.MULTILINE), truth)
    )


SLOW = [f"{mask}-{mode}-{arm}" for mask in MASKS for mode in MODES for arm in ("corrected", "hard")]
SLOW += ["date-blind-fixed-candidate-paper", "date-blind-open-research-paper"]
SLOW += ["blinded-fixed-candidate-paper", "blinded-memory-only-paper"]


@pytest.mark.slow_for(*SLOW)
@pytest.mark.parametrize("arm", ["paper", "corrected", "hard"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mask", MASKS)
def test_no_prompt_tool_error_or_byte_says_anything_real(ashares, us, mask, mode, arm):
    """Under the paper's convention one bad order refuses the whole action; ``hard`` masks hide
    levels too.
    """
    hardening = dict.fromkeys(("rebase_prices", "scale_volumes", "scrub_news"), arm == "hard")
    convention = "paper" if arm == "paper" else "corrected"
    for world, news in [(ashares, False)] if arm == "paper" else [(ashares, False), (us, True)]:
        how = {"mask": mask, "mode": mode, "convention": convention, "news": news, "news_days": 30}
        play = Game(world, KtdfinConfig(**how, **hardening))
        truth = truth_of(play)
        said = go_wrong(play, 2 if arm == "paper" else 1)
        assert len(said) > 10
        for text in (*said, *(request.given.observation for request in play.asked)):  # type: ignore[union-attr]
            assert leaks_in(text, truth) == []
        if play.config.mask_config.hides_stocks and not news:
            assert "IDX" not in "".join(said), "the index has a name too"


def test_the_search_would_find_something(ashares):
    """Without a mask the same search finds names and dates in nearly everything."""
    play = Game(ashares, KtdfinConfig(mask="bright"))
    truth, shown = truth_of(play, "blinded"), play.shown(play.symbols(1)[0])
    for tool, arguments in (
        ("get_market_context", {}),
        ("screen_candidates", {"factors": ["RV_60"]}),
        ("get_stock_snapshot", {"stock_id": shown}),
    ):
        assert leaks_in(json.dumps(play.ask(tool, arguments)), truth), tool


@pytest.mark.parametrize("hard", [False, True])
def test_news_is_masked_like_everything_else(us, hard):
    play, headlines = Game(us, KtdfinConfig(news=True, news_days=30, scrub_news=hard)), 0
    truth = truth_of(play)
    for _ in range(3):
        for symbol in play.symbols(6):
            answer = play.ask("get_stock_snapshot", {"stock_id": play.shown(symbol), "lookback": 3})
            headlines += len(answer.get("news", ()))
        play.go(play.decide([DONE, submit()]))
    assert headlines > 5
    for text in game.texts(play.asked):
        assert leaks_in(text, truth) == []


def test_a_hardened_mask_shows_other_levels_and_what_follows_from_them(ashares):
    plain, hard = (
        Game(ashares, KtdfinConfig(rebase_prices=h, scale_volumes=h)) for h in (False, True)
    )
    symbol = plain.symbols(1)[0]
    seen = []
    for play in (plain, hard):
        play.go(play.decide([DONE, submit(order(play.shown(symbol)))]))
        seen.append(
            play.ask("get_stock_snapshot", {"stock_id": play.shown(symbol), "lookback": 20})
        )
    one, other = ([row[4] for row in answer["bars"]] for answer in seen)
    assert one != other
    true, shown = (answer["factors"] for answer in seen)
    # Factors are those of the shown bars: near the true ones, but for the level of what is traded.
    for name in ("MOM_12_1", "RV_60", "REV_ON", "MOM_ID", "HIGH_52W"):
        assert true[name] != shown[name] and true[name] == pytest.approx(shown[name], abs=0.02), (
            name
        )
    assert abs(true["ILLIQ"] - shown["ILLIQ"]) > 0.3
    # Both closes of a return are blurred and on a grid of a cent: that is what it may be off by.
    np.testing.assert_allclose(np.diff(np.log(one)), np.diff(np.log(other)), atol=2.1 * BLUR)
    accounts = [play.ask("portfolio_state") for play in (plain, hard)]
    (a,), (b,) = (account["positions"] for account in accounts)
    assert b["value"] % 5000 == 0 and b["value"] == pytest.approx(a["value"], abs=2500)
    assert b["weight"] == pytest.approx(a["weight"], abs=0.0025)
    assert a["shares"] != b["shares"] and b["shares"] * b["price"] == pytest.approx(
        a["value"], rel=0.06
    )
    sold = hard.decide([DONE, submit(order(hard.shown(symbol), "SELL", shares=b["sellable"]))])
    # Shares are shown in two digits: all of them are sold whatever is left by them.
    assert sold.status == "ok" and (sold.orders[0].unit, sold.orders[0].amount) == (
        "target_weight",
        0.0,
    )


def test_no_search_with_a_tool_finds_the_price_of_a_lot(ashares):
    play = Game(ashares, KtdfinConfig(rebase_prices=True, scale_volumes=True))
    least = []
    for symbol in play.symbols(8):
        low, high = 0.0, 0.1
        for _ in range(12):
            middle = (low + high) / 2
            answer = play.ask("risk_check", {"target_weights": {play.shown(symbol): middle}})
            low, high = (low, middle) if answer["allowed"] else (middle, high)
        least.append(round(high, 3))
    assert set(least) == {0.01}


def play_some(
    snapshot: Snapshot, config: KtdfinConfig, days: int, **market: Any
) -> list[list[str]]:
    """Return everything that is said to a model that tries all tools and holds a few names, day
    by day.
    """
    play = Game(snapshot, config, **market)
    said = []
    for day in range(days):
        play.asked.clear()
        stocks = [play.shown(symbol) for symbol in play.symbols(3)]
        research = (
            [call(*game.mischief(stocks)[day * 4 : day * 4 + 12]), DONE]
            if config.mode == "open-research"
            else []
        )
        fresh = [s for s in play.symbols(9) if s not in play.now.account.positions][:2]
        buys = [order(play.shown(symbol), target_weight=0.05) for symbol in fresh]
        play.go(play.decide([*research, call(("submit_action", "{")), submit(*buys)]))
        said.append(game.texts(play.asked))
    return said


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cut", [0, 2, 5])
def test_what_is_said_does_not_depend_on_the_future(panel, ashares, tmp_path, mode, cut):
    other = rewrite_after(panel, game.HISTORY + cut, np.random.default_rng(cut), "pre_open")
    write_snapshot(other, tmp_path / "other", allow_faults=True)
    config = KtdfinConfig(mode=mode, mask="blinded" if cut else "bright", rebase_prices=cut == 5)
    here, there = (
        play_some(one, config, cut + 2) for one in (ashares, open_snapshot(tmp_path / "other"))
    )
    assert here[: cut + 1] == there[: cut + 1]
    assert here[cut + 1] != there[cut + 1], "a day later the rewritten one is seen"


def test_aliases_differ_between_episodes_and_stay_inside_one(ashares):
    one, same, other = Game(ashares, seed=1), Game(ashares, seed=1), Game(ashares, seed=2)
    symbols = one.symbols(5)
    first = [one.shown(symbol) for symbol in symbols]
    assert (
        first
        == [same.shown(symbol) for symbol in symbols]
        != [other.shown(symbol) for symbol in symbols]
    )
    for _ in range(3):
        one.go(one.decide([DONE, submit()]))
    assert first == [one.shown(symbol) for symbol in symbols]


def test_names_do_not_stand_in_the_order_of_their_symbols(ashares):
    play = Game(ashares, KtdfinConfig(mode="memory-only"))
    play.decide([submit()])
    payload = json.loads(play.asked[0].given.observation)  # type: ignore[union-attr]
    real = [play.protocol.wire(play.now).gate.symbol(alias) for alias in payload["universe"]]
    assert sorted(real) == sorted(play.now.universe) and real != sorted(real)
    assert payload["universe"] == sorted(payload["universe"])
