"""The adapters of well-known agents, against stand-ins of the interfaces that they call."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tradeassay
from tradeassay.agents import own_agent

EXAMPLES = Path(__file__).parents[2] / "examples" / "known_agents"
ASKED: list[Any] = []


class Graph:
    """What TradingAgentsGraph offers: a state and a word."""

    def __init__(self, debug: bool = False, config: dict[str, Any] | None = None) -> None:
        assert config is not None and "llm_provider" in config

    def propagate(self, company_name: str, trade_date: str) -> tuple[dict[str, Any], str]:
        ASKED.append((company_name, trade_date))
        words = ("BUY", "**SELL**", "Hold", "BUY or SELL, who knows", "")
        return {"final_trade_decision": "..."}, words[(len(ASKED) - 1) % len(words)]


def run_hedge_fund(
    tickers: list[str], start_date: str, end_date: str, portfolio: dict[str, Any], show_reasoning: bool = False,
    selected_analysts: list[str] | None = None, model_name: str = "gpt-4.1", model_provider: str = "OpenAI",
) -> dict[str, Any]:  # fmt: skip
    assert start_date < end_date and set(portfolio["positions"]) == set(tickers)
    ASKED.append((tuple(tickers), end_date, portfolio["positions"][tickers[0]]["long"], model_name))
    again = portfolio["positions"][tickers[0]]["long"] > 0
    decisions: dict[str, Any] = {
        tickers[0]: {"action": "sell" if again else "buy", "quantity": 7, "confidence": 60.0, "reasoning": "r"},
        tickers[1]: {"action": "short", "quantity": 5},
        "NOT-ASKED": {"action": "buy", "quantity": 10**9},
    }
    return {"decisions": decisions, "analyst_signals": {}}


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    made: dict[str, dict[str, Any]] = {
        "tradingagents": {}, "tradingagents.graph": {},
        "tradingagents.graph.trading_graph": {"TradingAgentsGraph": Graph},
        "tradingagents.default_config": {"DEFAULT_CONFIG": {"llm_provider": "openai"}},
        "src": {}, "src.main": {"run_hedge_fund": run_hedge_fund},
    }  # fmt: skip
    for name, content in made.items():
        module = ModuleType(name)
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


@pytest.mark.parametrize(("benchmark", "last"), [("stockbench-v2", "2022-06-29"), ("ktdfin-v2", "2022-02-10")])
def test_tradingagents_plays(benchmark: str, last: str, tmp_path: Path) -> None:
    frames = played("tradingagents_agent.py", "TradingAgents", benchmark, last, tmp_path)
    mine = frames.trades[frames.trades["agent"] == "TradingAgents"]
    decided = frames.decisions[frames.decisions["agent"] == "TradingAgents"]
    assert "BUY" in set(mine["side"]), decided[["session", "orders", "failures", "reason"]].to_string()
    assert set(mine["symbol"]) == {ASKED[0][0]}, "only what it said BUY of"
    assert len(ASKED) % 5 == 0 and all(len(day) == 10 for _, day in ASKED)


@pytest.mark.parametrize(("benchmark", "last"), [("stockbench-v2", "2022-06-29"), ("daily-us-v2", "2022-01-14")])
def test_ai_hedge_fund_plays(benchmark: str, last: str, tmp_path: Path) -> None:
    frames = played("ai_hedge_fund_agent.py", "AiHedgeFund", benchmark, last, tmp_path)
    mine = frames.trades[frames.trades["agent"] == "AiHedgeFund"]
    assert set(mine["side"]) == {"BUY", "SELL"}
    assert (mine["quantity"].abs() <= 7).all() and "NOT-ASKED" not in set(mine["symbol"])
    assert ASKED[0][2] == 0 and ASKED[1][2] > 0
