"""Programs on frames where nobody judges: run and asked again in one child, which is all that a reward can afford.

A program whose source shows that it keeps nothing between two calls, and uses nothing that points to later rows,
is called on the whole table and then, in the same child, on the first rows of it up to six places. That clears it
or raises a suspicion. Suspects, all other programs, and a share of those that were cleared, drawn from the secret,
are fed in a child of their own (:mod:`~tradeassay.code.growing`), which alone convicts.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from tradeassay.code.backtrader import Backtest, BacktestJob, terms_of
from tradeassay.code.bars import TaskBars
from tradeassay.code.frames import read_with_targets, sandbox_job
from tradeassay.code.inside.frames import DRAWN, SUSPECT
from tradeassay.code.inside.wire import GLANCING
from tradeassay.code.leak.source_rules import source_advice
from tradeassay.code.rules import Rules
from tradeassay.code.source import parses
from tradeassay.code.task import CodeTask
from tradeassay.core.draws import seed_from
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.view import Floats
from tradeassay.sandbox import ChildClaim, JobExecutor, JobLimits

SHARE: Final = 16
"""Of so many programs that were cleared one is fed all the same."""

CLEARED: Final = "called again on the first rows up to six places it said the same; it was not fed"

_PURE: Final = frozenset({"numpy", "pandas", "talib", "math", "__future__"})
_VALUES: Final = frozenset(
    "nan inf pi e newaxis float64 float32 int64 int32 bool_ Series DataFrame Timestamp".split()
)
"""What may be taken from a library without being called: nothing in which something could be kept."""
_STATEFUL: Final = frozenset(
    "setattr getattr delattr globals locals vars exec eval compile open type id random attrs flags options "
    "base ctypes frombuffer as_strided".split()
)
_PREFIXES: Final = ("_", "set", "get", "register")


def second_look(task: CodeTask, source: str, secret: str) -> bool:
    """Return whether a program is among those that are asked a second time."""
    text = sha256_bytes(source.encode("utf-8", "surrogatepass"))
    return seed_from(secret, "second look", task.id, text) % SHARE == 0


def forgets(source: str) -> bool:
    """Return whether a source shows plainly that nothing is kept between two calls and no later row is meant.

    Plainly: at the top level only imports of calculating libraries, constants and functions; no decorator, class
    or mutable default; of a library only functions that are called, none that set or get something. An honest
    program need not be plain.
    """
    tree = parses(source)
    if tree is None or source_advice(tree) or not all(_harmless(node) for node in tree.body):
        return False
    nodes = list(ast.walk(tree))
    libraries = {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    passed = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    passed |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    return not any(_keeps(node) or (id(node) not in passed and _taken(node, libraries)) for node in nodes)


def _harmless(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is not None and _constant(node.value)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.FunctionDef | ast.Import | ast.ImportFrom)


def _constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_constant(part) for part in node.elts)
    if isinstance(node, ast.BinOp):
        return _constant(node.left) and _constant(node.right)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _constant(node.operand))


def _keeps(node: ast.AST) -> bool:
    """Return whether something could be kept here, or brought from elsewhere."""
    if isinstance(node, ast.Import):
        return any(alias.name not in _PURE for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__"
    if isinstance(node, ast.arguments):
        return not all(one is None or _constant(one) for one in (*node.defaults, *node.kw_defaults))
    if isinstance(node, ast.FunctionDef):
        return bool(node.decorator_list)
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Store) or node.attr in _STATEFUL or node.attr.startswith(_PREFIXES)
    if isinstance(node, ast.Name):
        return node.id.startswith("__") or node.id in _STATEFUL
    return isinstance(node, ast.Global | ast.Nonlocal | ast.ClassDef | ast.AsyncFunctionDef | ast.Try)


def _taken(node: ast.AST, libraries: set[str]) -> bool:
    """Return whether a library, or something of it that is not called here, is handed on."""
    if isinstance(node, ast.Name):
        return node.id in libraries
    if not isinstance(node, ast.Attribute) or node.attr in _VALUES:
        return False
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in libraries


class Glanced(NamedTuple):
    """A run, its targets (None where it gave none), and the first row on which an answer changed."""

    run: Backtest
    targets: Floats | None
    suspect: int | None


def glance(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    bars: TaskBars,
    rules: Rules,
    limits: JobLimits | None = None,
) -> Glanced | None:
    """Run a program that forgets and ask it again; None where the child's end says nothing certain about the
    program, which is then to be run by itself.
    """
    rng = np.random.default_rng(seed_from(rules.secret, "glance", task.id))
    job = BacktestJob(source=source, bars=bars, terms=terms_of(task), limits=limits, rules=rules)
    plain = sandbox_job(job)
    wanted = replace(
        plain,
        harness=GLANCING,
        params={"pass_as": plain.pass_as},
        pass_as="columns",
        columns={**plain.columns, DRAWN: rng.random(6)},
    )
    result = executor.run(wanted)
    if result.columns is None:
        return Glanced(*read_with_targets(job, result), None) if isinstance(result.failure, ChildClaim) else None
    columns = dict(result.columns)
    said = columns.pop(SUSPECT, None)
    if said is None or said.shape != (1,) or said.dtype.kind != "i":
        return None
    row = int(said[0])
    return Glanced(*read_with_targets(job, replace(result, columns=columns)), row if row >= 0 else None)
