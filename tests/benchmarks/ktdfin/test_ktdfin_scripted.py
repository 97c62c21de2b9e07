"""The scripted models that ship play every mode under every mask, and their mistakes are counted."""

import pytest
from ktdfin_game import Game

from tradeassay.benchmarks.ktdfin import MODES, KtdfinConfig
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.llm.scripted import scripted_models

EXPECTED = {"broken-json": {"schema", "no_submit"}, "never-submits": {"no_submit"}, "overspender": {"constraint"}}


def days(snapshot: Snapshot, name: str, config: KtdfinConfig, count: int) -> list[Decision]:
    play, model = Game(snapshot, config), scripted_models.get(name)()
    decisions = []
    for _ in range(count):
        decisions.append(play.decide(model.answer))
        play.go(decisions[-1])
    return decisions


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mask", ["bright", "blinded"])
def test_the_sensible_one_trades_without_a_mistake(ashares, mask, mode):
    decisions = days(ashares, "sensible", KtdfinConfig(mask=mask, mode=mode), 5)
    assert all(decision.status == "ok" for decision in decisions) and decisions[0].orders
    assert not any(decision.failures for decision in decisions)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in scripted_models.names()
        if name != "away" and "coder" not in name and not name.startswith("tiny-")
    ],
)
def test_each_of_them_can_play(ashares, name):
    decisions = days(ashares, name, KtdfinConfig(), 4)
    kinds = {failure.kind for decision in decisions for failure in decision.failures}
    if name in EXPECTED:
        assert kinds & EXPECTED[name], kinds


def test_who_asks_for_the_future_is_refused_and_counted(ashares):
    first = days(ashares, "future-asker", KtdfinConfig(), 1)[0]
    kinds = [failure.kind for failure in first.failures]
    assert len(kinds) >= 4 and set(kinds) <= {"tool", "parse"} and first.status == "ok"


def test_masks_do_not_change_what_a_rule_does(ashares):
    """The same numbers under other names: a model that only reads numbers trades the same."""
    bright, blind = (days(ashares, "sensible", KtdfinConfig(mask=mask), 4) for mask in ("bright", "blinded"))
    assert [[(o.symbol, o.amount) for o in d.orders] for d in bright] == [
        [(o.symbol, o.amount) for o in d.orders] for d in blind
    ]
