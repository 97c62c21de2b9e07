"""Some news is worth money, most is not, and only reading tells which.

A reader trades the tone of chosen items: in at the first open after publication, out at the close
of the last day of the horizon, equal weight, costs both ways. His daily returns are tested against
zero.
"""

import math
import re
from collections import defaultdict

import numpy as np
import pytest

SEEDS = (0, 1, 2)
COSTS = {"us": 0.0003, "ashare": 0.0012, "crypto": 0.0010}
MARKETS = tuple(COSTS)


def daily_returns(
    seen, items: list[tuple[int, int, int]], cost: float, horizon: int = 5
) -> np.ndarray:
    """Daily returns of a book that holds ``tone`` in ``column`` from the open of ``row`` on."""
    rows = seen.close.shape[0]
    gain, held = np.zeros(rows), np.zeros(rows)
    for row, column, tone in items:
        last = min(row + horizon, rows)
        if (
            not np.isfinite(seen.open[row, column])
            or not np.isfinite(seen.close[row:last, column]).all()
        ):
            continue
        path = np.concatenate([[seen.open[row, column]], seen.close[row:last, column]])
        moves = tone * (
            (path[1:] + seen.paid[row:last, column] * (np.arange(row, last) > row)) / path[:-1]
            - 1.0
        )
        moves[0] -= cost
        moves[-1] -= cost
        gain[row:last] += moves
        held[row:last] += 1.0
    return gain[held > 0] / held[held > 0]


def t_value(returns: np.ndarray) -> float:
    return float(returns.mean() / returns.std(ddof=1) * math.sqrt(returns.size))


def chosen(made, seen, kinds: set[str]) -> list[tuple[int, int, int]]:
    return [
        (seen.row[truth.session], seen.column[truth.symbol], truth.tone)
        for truth in made.key.facts.news
        if truth.kind in kinds and truth.tone
    ]


def pooled(world, market, name: str, kinds: set[str], **changes) -> tuple[list[float], float]:
    """The t-value of every seed, and of all of them together."""
    found = []
    for seed in SEEDS:
        made = world(name, seed, **changes)
        seen = market(made.panel)
        found.append(daily_returns(seen, chosen(made, seen, kinds), COSTS[name]))
    return [t_value(returns) for returns in found], t_value(np.concatenate(found))


def profits(single: list[float], together: float) -> bool:
    return together > 4.0 and min(single) > 1.5


def does_not_profit(single: list[float], together: float) -> bool:
    return together < 1.5 and max(single) < 2.5


@pytest.mark.journey
@pytest.mark.slow_for("crypto", "ashare")  # the other tests here need the US worlds too
@pytest.mark.parametrize("name", MARKETS)
def test_a_reader_of_facts_profits_after_costs(world, market, name):
    result = pooled(world, market, name, {"informative"})
    assert profits(*result), result
    assert not does_not_profit(*result)


@pytest.mark.slow_for(
    *(f"{kind}-{name}" for kind in ("noise", "rumour", "duplicate") for name in MARKETS),
    *(f"duplicate+noise+rumour-{name}" for name in MARKETS if name != "us"),
)
@pytest.mark.parametrize("name", MARKETS)
@pytest.mark.parametrize(
    "kinds",
    [{"noise"}, {"rumour"}, {"duplicate"}, {"noise", "rumour", "duplicate"}],
    ids=lambda kinds: "+".join(sorted(kinds)),
)
def test_a_reader_of_noise_does_not(world, market, name, kinds):
    result = pooled(world, market, name, kinds)
    assert does_not_profit(*result), result
    assert not profits(*result)


@pytest.mark.journey
def test_facts_without_strength_are_worth_nothing(world, market):
    """The criterion can fail: the same texts about facts that move nothing do not pass it."""
    from tradeassay_bench.data.synthetic import NewsModel

    result = pooled(
        world, market, "us", {"informative"}, names=60, sessions=400, news=NewsModel(strength=0.0)
    )
    assert not profits(*result) and does_not_profit(*result), result


def test_trading_against_rumours_pays(world, market):
    found = []
    for seed in SEEDS:
        made = world("us", seed)
        seen = market(made.panel)
        against = [(row, column, -tone) for row, column, tone in chosen(made, seen, {"rumour"})]
        found.append(daily_returns(seen, against, COSTS["us"]))
    assert t_value(np.concatenate(found)) > 4.0


def test_the_worth_is_in_the_words(world, market):
    """Without the key: learn from the first half which wordings pay, trade the second half."""
    found = []
    for seed in SEEDS:
        made = world("us", seed)
        seen = market(made.panel)
        names = {entry.instrument.symbol: entry.instrument.name for entry in made.panel.listings}
        worth: dict[str, list[float]] = defaultdict(list)
        later: list[tuple[int, int, str]] = []
        told: set[tuple[str, str]] = set()
        for item in made.panel.news:
            row = int(np.searchsorted(made.panel.open_time, item.published_at, side="right"))
            symbol = item.symbols[0]
            if row + 5 > made.panel.sessions.size or (symbol, item.body) in told:
                continue  # a repetition
            told.add((symbol, item.body))
            column = seen.column[symbol]
            wording = re.sub(
                r"\d+(\.\d+)?", "#", item.body.replace(names[symbol], "~").replace(symbol, "~")
            )
            if row < made.panel.sessions.size // 2:
                worth[wording].append(seen.close[row + 4, column] / seen.open[row, column] - 1.0)
            else:
                later.append((row, column, wording))
        score = {}
        for wording, moves in worth.items():
            sample = np.array([move for move in moves if math.isfinite(move)])
            if sample.size >= 5 and abs(t_value(sample)) > 1.0:
                score[wording] = int(np.sign(sample.mean()))
        trades = [
            (row, column, score[wording]) for row, column, wording in later if wording in score
        ]
        found.append(daily_returns(seen, trades, COSTS["us"]))
    assert t_value(np.concatenate(found)) > 3.0


@pytest.mark.journey
@pytest.mark.parametrize("name", MARKETS)
def test_no_label_gives_the_worth_away(world, name):
    made = world(name)
    truth = {entry.id: entry for entry in made.key.facts.news}
    items = made.panel.news
    assert [item.id for item in items] == sorted(item.id for item in items)
    assert [item.published_at for item in items] == sorted(item.published_at for item in items)
    assert {item.id for item in items} == set(truth)
    kinds_of_source = defaultdict(set)
    for item in items:
        kinds_of_source[item.source].add(truth[item.id].kind)
        assert item.url.endswith(item.id[1:]) and item.url.startswith("https://news.example/")
        words = f"{item.title} {item.body} {item.source}".lower()
        assert not any(
            word in words for word in ("informative", "noise", "duplicate", "synthetic", "planted")
        )
    assert all(len(kinds) == 4 for kinds in kinds_of_source.values()) and len(kinds_of_source) == 5
    facts = np.array([truth[item.id].kind == "informative" for item in items])
    for base in (2, 5, 10):
        shares = [
            facts[[int(item.id[1:]) % base == k for item in items]].mean() for k in range(base)
        ]
        assert max(shares) - min(shares) < 8 * math.sqrt(0.25 * base / facts.size)


@pytest.mark.parametrize("name", MARKETS)
def test_items_can_be_read_before_they_matter(world, name):
    made = world(name)
    panel = made.panel
    row_of = {str(day): row for row, day in enumerate(panel.sessions)}
    listed = {entry.instrument.symbol: entry for entry in panel.listings}
    text = {item.id: item for item in panel.news}
    hour = 3_600_000_000_000
    for truth in made.key.facts.news:
        item, row = text[truth.id], row_of[truth.session]
        assert item.published_at <= panel.open_time[row] - 2 * hour + 1
        assert item.published_at > panel.open_time[row - 1]
        assert (
            listed[truth.symbol].listed < truth.session <= (listed[truth.symbol].delisted or "9999")
        )
        assert item.title and item.body and "{" not in item.title + item.body
        if truth.kind in ("noise", "duplicate"):
            assert truth.gap == 0.0 == truth.drift
        elif truth.kind == "informative":
            assert truth.drift * truth.tone > 0 and truth.gap * truth.tone > 0
        else:
            assert truth.drift == -truth.gap and truth.gap * truth.tone > 0


def test_a_duplicate_repeats_an_older_item_when_its_effect_is_over(world):
    made = world("us")
    row_of = {str(day): row for row, day in enumerate(made.panel.sessions)}
    truth = {entry.id: entry for entry in made.key.facts.news}
    text = {item.id: item for item in made.panel.news}
    repeats = [entry for entry in truth.values() if entry.kind == "duplicate"]
    assert len(repeats) > 300
    for entry in repeats:
        first = truth[entry.repeats or ""]
        assert first.kind == "informative" and first.symbol == entry.symbol
        assert row_of[entry.session] >= row_of[first.session] + first.horizon
        assert (
            text[entry.id].body == text[first.id].body
            and text[first.id].title in text[entry.id].title
        )


def test_earnings_texts_tell_the_size_of_the_surprise(world):
    made = world("us")
    text = {item.id: item for item in made.panel.news}
    told, true = [], []
    for entry in made.key.facts.news:
        if entry.theme == "earnings" and entry.kind == "informative":
            told.append(entry.tone * float(re.search(r"(\d+\.\d)%", text[entry.id].body)[1]))
            true.append(entry.gap + entry.drift)
    assert np.corrcoef(told, true)[0, 1] > 0.99
