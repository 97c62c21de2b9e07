"""A property over whole days: what the checks accept, the exchange carries out, and the account can pay."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stockbench_game import PRICES, answer, pick, protocol, small_market

from tradeassay.core.events import Filled, Rejected, Trimmed

amounts = st.floats(0, 1500).map(lambda value: round(value, 2))


@st.composite
def wishes(draw: Any) -> dict[str, Any]:
    """Return decisions for some names, many of them wrong."""
    found = {}
    for symbol in draw(st.sets(st.sampled_from(sorted(PRICES)))):
        action = draw(st.sampled_from(["increase", "increase", "decrease", "close", "hold"]))
        made: dict[str, Any] = {"action": action, "reasons": [], "confidence": 0.5}
        if action in ("increase", "decrease"):
            made["target_cash_amount"] = target = draw(amounts)
            if draw(st.booleans()):
                made["target_shares"] = round(target / PRICES[symbol] * draw(st.floats(0.98, 1.02)), 4)
        found[symbol] = made
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(days=st.lists(wishes(), min_size=1, max_size=5), convention=st.sampled_from(["sound", "paper"]))
def test_what_is_accepted_can_be_paid(three: Any, days: list[dict[str, Any]], convention: str) -> None:
    market = small_market(three, convention=convention)
    made = protocol(market, convention=convention, attempts=1)
    seen = market.reset()
    for decisions in days:
        decision, _ = answer(made.dialogue(seen), (pick(), json.dumps({"decisions": decisions})))
        kinds = {failure.kind for failure in decision.failures} - {"no_target_shares"}
        assert (decision.status == "failed") == ("give_up" in kinds)
        assert kinds <= {"arithmetic", "liquidity", "give_up"}
        made.remember(seen, decision)
        record, following = market.step(decision)
        assert following is not None and market.ledger.cash >= 0
        fills = [event for event in record.events if isinstance(event, Filled)]
        for event in record.events:
            # Below one lot nothing trades; under ``paper`` each purchase has to fit alone, and the venue leaves
            # out what the cash does not cover any more.
            assert not isinstance(event, Rejected) or event.reason in ("lot", "no_change", "insufficient_cash")
            if isinstance(event, Rejected) and event.reason == "insufficient_cash":
                assert convention == "paper"
            if isinstance(event, Trimmed) and event.reason == "insufficient_cash":
                assert (event.asked - event.filled) * PRICES[event.symbol] <= 0.05
        for fill in fills:
            wanted = decisions[fill.symbol]
            assert (fill.quantity > 0) == (wanted["action"] == "increase")
            position = market.ledger.state().positions.get(fill.symbol)
            value = 0.0 if position is None else position.quantity * PRICES[fill.symbol]
            target = wanted.get("target_cash_amount", 0.0)
            assert abs(value - target) <= 0.0101 * target + 1.5
        seen = following
