"""The account against plain books that share no code with it: every venue, ten thousand random
sessions, 1e-12.
"""

import ast
from pathlib import Path

import msgspec
import numpy as np
import plain_books
import pytest
from exchange_checker import rough_market, rough_orders
from plain_books import TERMS, Differs, PlainBooks

from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.account import BUILTIN, Exchange, Ledger, Venue

SESSIONS = 70
CASH = 250_000.0
ids = pytest.mark.parametrize("venue", BUILTIN, ids=lambda venue: venue.id)


def differences(venue: Venue, sessions: int, first_seed: int) -> int:
    """Play random sessions and compare; return how many sums were compared."""
    compared = 0
    for seed in range(first_seed, first_seed + -(-sessions // SESSIONS)):
        rng = np.random.default_rng(seed)
        fill = "close" if seed % 3 == 2 else "open"
        exchange, account = Exchange(venue), Ledger(CASH, terms=venue.terms)
        books, orders = PlainBooks(venue.id, CASH), {}
        for step, session in enumerate(rough_market(rng, SESSIONS)):
            bars = session.bars
            events = exchange.open_session(
                bars, session.actions, account, delisted=session.delisted
            )
            placed = [
                (f"{step}.{n}", order)
                for n, order in enumerate(rough_orders(rng, bars, account.state()))
            ]
            orders.update(placed)
            events += exchange.execute(placed, bars, account, fill=fill)
            events += exchange.close_session(bars, account)
            books.follow(bars, session.actions, session.delisted, orders, events)
        compared += books.sums
    return compared


@ids
def test_a_sample_agrees(venue):
    assert differences(venue, 2 * SESSIONS, 100) > 4 * SESSIONS


@pytest.mark.slow
@ids
def test_ten_thousand_sessions_agree(venue):
    assert differences(venue, 10_000, 1_000) > 30_000


def test_the_plain_books_import_nothing_that_books_money():
    tree = syntax_tree(Path(plain_books.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    ]
    assert not [module for module in modules if str(module).startswith("tradeassay")]
    assert set(TERMS) == {venue.id for venue in BUILTIN}


@ids
def test_a_fee_that_is_a_billionth_wrong_is_found(venue):
    """The comparison can fail."""
    fees = msgspec.structs.replace(venue.fees, sell_bps=venue.fees.sell_bps * (1 + 1e-6) + 1e-6)
    wrong: dict[str, object] = {"fees": fees}
    if venue.eras is not msgspec.UNSET:
        wrong["eras"] = tuple(
            msgspec.structs.replace(
                era, fees=msgspec.structs.replace(era.fees, sell_bps=era.fees.sell_bps * (1 + 1e-6))
            )
            for era in venue.eras
        )
    with pytest.raises(Differs, match="fee"):
        differences(msgspec.structs.replace(venue, **wrong), 3 * SESSIONS, 100)
