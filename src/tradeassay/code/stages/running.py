"""The stages that rest on a run: did it run, did it trade?"""

from __future__ import annotations

from typing import Final

from tradeassay.code.backtrader import Backtest
from tradeassay.code.stages.result import PASSED, StageResult, failed
from tradeassay.sandbox import ChildClaim, Crashed, SyntaxFault, kind_of

_LONGEST: Final = 4_000


def compile_failure(run: Backtest) -> StageResult | None:
    """Return what a run shows about the stage before: no strategy after all, or a source that the child's parser
    refused. None when there is nothing of the kind.
    """
    failure = run.failure
    if isinstance(failure, ChildClaim) and failure.kind == "no_entry":
        return failed(failure.message, "no_strategy", claimed=True)
    if isinstance(failure, SyntaxFault):
        return failed(failure.text, "SyntaxError", line=failure.line)
    if isinstance(failure, Crashed) and failure.stage == "parse":
        return failed(failure.text, kind_of(failure))
    return None


def backtest_stage(run: Backtest) -> StageResult:
    """Return whether a run came to its end.

    ``error_class`` is the exception's name where the program says it raised one, otherwise the host's finding.
    """
    failure = run.failure
    if failure is None:
        return PASSED
    if isinstance(failure, ChildClaim):
        line = _line(failure.trace)
        where = f" (line {line})" if line is not None else ""
        text = f"{failure.error}: {failure.message}{where}"[:_LONGEST]
        return failed(text, failure.error, line=line, claimed=True)
    return failed(failure.text[:_LONGEST], kind_of(failure))


def trade_stage(run: Backtest) -> StageResult:
    """Return whether at least one trade was opened, by the host's own fills."""
    if run.trades:
        return PASSED
    orders = run.orders.orders
    what = f"{orders} orders were given and none was filled" if orders else "no order was given"
    return failed(f"no trade was opened: {what}", "no_fill" if orders else "no_order")


def _line(trace: str) -> int | None:
    """Return the last line of the program itself that a traceback names."""
    found = None
    for part in trace.split('File "strategy.py", line ')[1:]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        found = int(digits) if digits else found
    return found
