"""Gate: can both files be read, and is there a TradingStrategy in them?"""

from __future__ import annotations

import ast

import msgspec

from tradeassay.code.gates.result import Finding, GateResult, failed, passed
from tradeassay.code.submission import CARD, CLASS, Submission
from tradeassay.sandbox.config import PRELOAD
from tradeassay.sandbox.strategy import allowed_modules, first_forbidden


def parse_gate(submission: Submission) -> GateResult:
    """Read the card as JSON and the source as Python, without running any of it."""
    found = (*_card(submission.card), *_source(submission.source))
    if found:
        return failed("parse", found)
    return passed("parse", measures={"lines": len(submission.source.splitlines())})


def _card(text: str) -> tuple[Finding, ...]:
    try:
        card = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError) as error:
        return (Finding(code="card_no_json", text=f"{CARD} is no JSON: {error}", file="strategy_card.json"),)
    if not isinstance(card, dict):
        return (Finding(code="card_no_object", text=f"{CARD} is no JSON object", file="strategy_card.json"),)
    return ()


def _source(source: str) -> tuple[Finding, ...]:
    try:
        tree = ast.parse(source)
        compile(tree, "strategy.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return (Finding(code="syntax", text=f"syntax error: {error.msg}", line=error.lineno),)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return (Finding(code="syntax", text=f"{type(error).__name__}: {str(error)[:200]}"),)
    forbidden = first_forbidden(tree, allowed_modules(name.partition(".")[0] for name in PRELOAD))
    if forbidden is not None:
        text = f"imports '{forbidden.module}', which is not on the list of modules a strategy may import"
        return (Finding(code="forbidden_import", text=text, line=forbidden.line),)
    return _class(tree)


def _class(tree: ast.Module) -> tuple[Finding, ...]:
    made = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == CLASS]
    if len(made) != 1:
        how = "no class" if not made else f"{len(made)} classes called"
        return (Finding(code="no_class", text=f"there is {how} {CLASS} at the top level"),)
    methods = {node.name: node for node in made[0].body if isinstance(node, ast.FunctionDef)}
    if "run" not in methods and not made[0].bases:
        text = f"{CLASS} has no method run(self, market_data, initial_capital)"
        return (Finding(code="no_run", text=text, line=made[0].lineno),)
    if "run" in methods:
        given = methods["run"].args
        if len(given.posonlyargs) + len(given.args) < 3 and given.vararg is None:
            text = "run() takes two arguments: market_data and initial_capital"
            return (Finding(code="run_arguments", text=text, line=methods["run"].lineno),)
    return ()
