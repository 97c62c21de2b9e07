"""The six research tools, one file each: pure functions from the day's desk to a typed result."""

from __future__ import annotations

from tradeassay.benchmarks.ktdfin.tools import comparison, market_context, portfolio, risk, screening, snapshot
from tradeassay.benchmarks.ktdfin.tools.tool import AnyTool, Arguments, Tool, ToolRefused

TOOLS: tuple[AnyTool, ...] = (
    market_context.TOOL,
    screening.TOOL,
    snapshot.TOOL,
    comparison.TOOL,
    portfolio.TOOL,
    risk.TOOL,
)
BY_NAME: dict[str, AnyTool] = {tool.name: tool for tool in TOOLS}

__all__ = ["BY_NAME", "TOOLS", "AnyTool", "Arguments", "Tool", "ToolRefused"]
