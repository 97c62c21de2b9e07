"""The scores as SysTradeBench prints them: penalties counted in the source text, on a scale of 0 to 10.

They reward the look of code rather than what it does, and are kept to be compared with the published tables. D1
and D2 of the paper are reviewers' marks; they come from the review arena.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Final

import msgspec

from tradeassay.code.semantics.model import Semantics
from tradeassay.code.source import parses

KEYWORDS: Final = (
    "signal",
    "entry",
    "exit",
    "stop",
    "position",
    "momentum",
    "mean",
    "breakout",
    "spread",
    "target",
)
LIBRARIES: Final = ("numpy", "pandas", "scipy", "talib")
TRADE_FIELDS: Final = ("time", "symbol", "side", "quantity", "price", "signal")
AUDIT_FIELDS: Final = ("time", "signal", "position", "equity", "risk")


class PaperScore(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension's score with its parts."""

    score: float
    parts: dict[str, float]


COMPLETE: Final = 0.95
"""The share of required cells below which the paper lowers D3 (eq. 11)."""


def d3(source: str, completeness: float | None = None) -> PaperScore:
    """Return reliability and auditability: 0.30 determinism + 0.30 leakage + 0.25 logs + 0.15 quality.

    With the ``completeness`` of the logs, eq. 11 takes twice what it lacks of 0.95 away.
    """
    tree = _tree(source)
    parts = {
        "det": _determinism(tree),
        "leak": _leakage(tree),
        "log": _logs(source),
        "qual": _quality(source, tree),
    }
    score = 0.30 * parts["det"] + 0.30 * parts["leak"] + 0.25 * parts["log"] + 0.15 * parts["qual"]
    if completeness is not None:
        parts["penalty"] = -2.0 * max(0.0, COMPLETE - completeness)
        score += parts["penalty"]
    return PaperScore(score=_bounded(score), parts=parts)


def d4(source: str) -> PaperScore:
    """Return out-of-sample robustness as printed: 0.40 logic + 0.30 overfitting + 0.30 generality."""
    tree = _tree(source)
    numbers = sum(isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in ast.walk(tree))
    branches = sum(isinstance(n, ast.If | ast.IfExp | ast.While) for n in ast.walk(tree))
    arguments = sum(len(n.args.args) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    loops = sum(isinstance(n, ast.For | ast.BoolOp | ast.ExceptHandler) for n in ast.walk(tree))
    found = sum(word in source.lower() for word in KEYWORDS)
    logic = 10.0 - 3.0 * (found < 2) - 1.0 * (numbers > 50)
    overfit = 10.0 - 2.0 * (branches > 30) - 1.5 * (arguments > 20)
    careful = any(word in source for word in ("isnan", "dropna", "isna", "len("))
    general = 10.0 - 2.0 * (branches + loops + 1 > 50) + 1.0 * _imports(tree, LIBRARIES) + 0.5 * careful
    parts = {"logic": _bounded(logic), "overfit": _bounded(overfit), "gen": _bounded(general)}
    score = 0.40 * parts["logic"] + 0.30 * parts["overfit"] + 0.30 * parts["gen"]
    return PaperScore(score=_bounded(score), parts=parts)


def complexity(semantics: Semantics) -> float:
    """Return the paper's complexity C of a strategy: legs, intraday, more than three constraints, parameters."""
    constraints = semantics.constraints
    count = 2 + int(constraints.flat_overnight) + int(not constraints.short_allowed)
    count += sum("stop" in rule.id for rule in semantics.rules)
    several = len(semantics.inputs.legs) > 1
    intraday = semantics.inputs.timeframes == ("1m",)
    return several + 0.5 * intraday + 0.5 * (count > 3) + 0.5 * math.log2(len(semantics.parameters) + 1)


def _tree(source: str) -> ast.Module:
    return parses(source) or ast.Module([], [])


def _determinism(tree: ast.Module) -> float:
    names = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    seeded = any(name.endswith(("random.seed", "default_rng", "RandomState")) for name in names)
    drawn = any(".random." in f".{name}" for name in names)
    clock = any(name.endswith(("datetime.now", "date.today", "time.time")) for name in names)
    return _bounded(10.0 - 3.0 * _imports(tree, ("random",)) - 2.0 * (drawn and not seeded) - 2.0 * clock)


def _leakage(tree: ast.Module) -> float:
    score = 10.0
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "shift" and node.args and ast.unparse(node.args[0]).startswith("-"):
            score -= 2.0
        if node.func.attr == "rolling" and not any(k.arg == "min_periods" for k in node.keywords):
            score -= 1.0
    ahead = re.compile(r"\[\s*\w+\s*\+\s*\d+\s*\]")
    score -= 2.0 * len(ahead.findall(ast.unparse(tree)))
    return _bounded(score)


def _logs(source: str) -> float:
    missing = sum(f"{field}" not in source for field in {*TRADE_FIELDS, *AUDIT_FIELDS})
    score = 10.0 - 3.0 * ("trade_log" not in source) - 2.0 * ("audit_log" not in source) - 0.5 * missing
    return _bounded(score)


def _quality(source: str, tree: ast.Module) -> float:
    lines = [line for line in source.splitlines() if line.strip()]
    comments = sum(line.strip().startswith("#") for line in lines)
    classes = any(isinstance(n, ast.ClassDef) and "Strategy" in n.name for n in tree.body)
    sparse = not lines or comments / len(lines) < 0.05
    return _bounded(10.0 - 2.0 * (len(lines) < 50) - 2.0 * (not classes) - 1.0 * sparse)


def _imports(tree: ast.Module, wanted: tuple[str, ...]) -> bool:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return bool(found & set(wanted))


def _bounded(value: float) -> float:
    return min(10.0, max(0.0, value))
