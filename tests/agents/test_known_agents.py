"""The adapters of well-known agents, against stand-ins of the interfaces that they call."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tradeassay
from tradeassay.agents import own_agent
from tradeassay.agents.own_file import load_own
from tradeassay.core.errors import UserError

EXAMPLES = Path(__file__).parents[2] / "examples" / "known_agents"
ASKED: list[Any] = []


class Graph:
    """What TradingAgentsGraph offers (0.3.0): a state and one of five words. Older ones answer with three, in
    capitals.
    """

    def __init__(self, debug: bool = False, config: dict[str, Any] | None = None) -> None:
        assert config is not None and "llm_provider" in config

    def propagate(
        self, company_name: str, trade_date: str, asset_type: str = "stock"
    ) -> tuple[dict[str, Any], str]:
        ASKED.append((company_name, trade_date))
        words = ("**SELL**", "Buy", "Overweight", "BUY or SELL, who knows", "")
        later = ("Hold", "Underweight", "Sell", "", "Hold")
        chosen = words if len(ASKED) <= len(words) else later
        return {"final_trade_decision": "..."}, chosen[(len(ASKED) - 1) % len(words)]


class Spec(SimpleNamespace):
    """What load_spec returns: a mandate; here nothing of it matters."""


class SimBroker:
    """Its paper broker."""

    def __init__(self, cash: float) -> None:
        assert cash > 0
        self.money = cash


class FDClient:
    """Its data client, which wants to be closed."""

    def __enter__(self) -> FDClient:
        return self

    def __exit__(self, *args: object) -> None:
        return None


def run_cycle(fund: Any, as_of: str, broker: SimBroker, data_client: Any, universe: list[str]) -> SimpleNamespace:
    """What ai-hedge-fund 2.2.0 answers: weights after risk, shorts among them, and names that it cannot price."""
    assert isinstance(fund.spec, Spec) and isinstance(data_client.inner, FDClient)
    ASKED.append((tuple(universe), as_of))
    first, second, third, *_ = universe
    weights = {first: 0.25 if len(ASKED) == 1 else -0.1, second: -0.2, third: 0.04}
    return SimpleNamespace(as_of=as_of, final_weights=weights, skipped=[])


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    made: dict[str, dict[str, Any]] = {
        "tradingagents": {},
        "tradingagents.graph": {},
        "tradingagents.graph.trading_graph": {"TradingAgentsGraph": Graph},
        "tradingagents.default_config": {"DEFAULT_CONFIG": {"llm_provider": "openai"}},
        "hedge_fund": {},
        "hedge_fund.paths": {"EXAMPLE_MANDATE": Path("example.yaml")},
        "hedge_fund.fund": {"Fund": lambda spec: SimpleNamespace(spec=spec), "load_spec": lambda path: Spec()},
        "hedge_fund.brokers": {"SimBroker": SimBroker},
        "hedge_fund.data": {"FDClient": FDClient, "CachedDataClient": lambda inner: SimpleNamespace(inner=inner)},
        "hedge_fund.pipeline": {"run_cycle": run_cycle},
    }
    for name, content in made.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)


def played(file: str, cls: str, benchmark: str, last: str, tmp_path: Path) -> Any:
    name, params = own_agent(f"{EXAMPLES / file}:{cls}", {"names": 5, "every": 2})
    agent = {"name": name, "params": params, "label": cls}
    run = tradeassay.run(
        benchmark, agents=[agent], last=last, folder=tmp_path / "run", executor="inline", progress="none"
    )
    assert not run.failed
    assert not tradeassay.verify(run.folder).contradicted
    return run.frames("pandas")


@pytest.mark.slow_for("stockbench-v1-2022-06-29")
@pytest.mark.parametrize(("benchmark", "last"), [("stockbench-v1", "2022-06-29"), ("ktdfin-v1", "2022-02-10")])
def test_tradingagents_plays(benchmark: str, last: str, tmp_path: Path) -> None:
    frames = played("tradingagents_agent.py", "TradingAgents", benchmark, last, tmp_path)
    mine = frames.trades[frames.trades["agent"] == "rule from a file: TradingAgents"]
    decided = frames.decisions[frames.decisions["agent"] == "rule from a file: TradingAgents"]
    bought = mine[mine["side"] == "BUY"]
    full, half = ASKED[1][0], ASKED[2][0]
    assert set(bought["symbol"]) == {full, half}, decided[["session", "orders", "failures", "reason"]].to_string()
    assert set(mine["symbol"]) == {full, half}, "only what it was told to buy"
    spent = (bought["quantity"] * bought["price"]).abs().groupby(bought["symbol"]).first()
    assert 0.3 * spent[full] < spent[half] < 0.7 * spent[full], "Overweight is half the way"
    sold = mine[mine["side"] == "SELL"].groupby("symbol")["quantity"].first().abs()
    assert sold[full] < bought.groupby("symbol")["quantity"].first()[full], "Underweight is half of it"
    assert len(ASKED) % 5 == 0 and _known(decided) == [day for _, day in ASKED[::5]]


def _known(decided: Any) -> list[str]:
    """Return the day before each session that is decided on: a close that is still to come is asked of nobody."""
    asked = decided[decided["reason"].str.contains(": ")]
    days = [reason[:10] for reason in asked["reason"]]
    assert all(day < str(session)[:10] for day, session in zip(days, asked["session"], strict=True))
    return days


@pytest.mark.slow_for("stockbench-v1-2022-06-29")
@pytest.mark.parametrize(("benchmark", "last"), [("stockbench-v1", "2022-06-29"), ("daily-us-v1", "2022-01-14")])
def test_ai_hedge_fund_plays(benchmark: str, last: str, tmp_path: Path) -> None:
    frames = played("ai_hedge_fund_agent.py", "AiHedgeFund", benchmark, last, tmp_path)
    mine = frames.trades[frames.trades["agent"] == "rule from a file: AiHedgeFund"]
    first, second, third, *_ = ASKED[0][0]
    assert set(mine["symbol"]) == {first, third} and second not in set(mine["symbol"]), "nothing is sold short"
    assert set(mine[mine["symbol"] == first]["side"]) == {"BUY", "SELL"}
    _known(frames.decisions[frames.decisions["agent"] == "rule from a file: AiHedgeFund"])


@pytest.mark.parametrize(
    ("file", "cls", "package", "said"),
    [
        ("tradingagents_agent.py", "TradingAgents", "tradingagents", "TradingAgents is not installed"),
        ("ai_hedge_fund_agent.py", "AiHedgeFund", "hedge_fund.fund", "pip install aihf"),
    ],
)
def test_a_package_that_is_missing_is_told_before_anything_is_played(
    file: str, cls: str, package: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=said):
        own_agent(f"{EXAMPLES / file}:{cls}", {})
        load_own(str(EXAMPLES / file), cls)(object())
