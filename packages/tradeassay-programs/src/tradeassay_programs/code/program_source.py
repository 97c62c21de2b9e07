"""Check a program's source without running it: whether it is Python, compiles, and looks ahead."""

import ast
from itertools import chain
from typing import Final, NamedTuple

from tradeassay.core.syntax import SourceFault, program_tree
from tradeassay_programs.code.checks import PASSED, Finding, failed
from tradeassay_programs.code.task import Framework
from tradeassay_programs.sandbox.strategy import BOM

LONGEST_SOURCE: Final = 200_000
"""Maximum number of characters that are parsed on the host.

A typical strategy has a few thousand.
"""
_BASES: Final = frozenset({"Strategy", "SignalStrategy"})
_PACKAGES: Final = frozenset({"backtrader", "backtrader.strategy"})
CHEATS: Final = frozenset({"set_coc", "set_coo", "coc", "coo", "cheat_on_open"})
"""Settings that make Backtrader fill orders at a price already known when the order is placed."""
_TERMS: Final = CHEATS | frozenset(
    "setcash set_cash add_cash setcommission addcommissioninfo set_slippage_perc "
    "set_slippage_fixed set_filler "
    "set_shortcash set_checksubmit set_int2pnl".split()
)


def read_source(source: str, *, compiles: bool = False) -> ast.Module | SourceFault:
    return program_tree(source.removeprefix(BOM), compiles=compiles)


def parses(source: str) -> ast.Module | None:
    found = read_source(source)
    return None if isinstance(found, SourceFault) else found


def check_compiles(
    source: str, framework: Framework = "backtrader", longest: int = LONGEST_SOURCE
) -> Finding:
    """Return a finding that passes if a source compiles and defines one strategy.

    A Backtrader program defines one ``bt.Strategy``. A program on frames defines ``signals``.
    """
    if len(source) > longest:
        return failed(f"the source has more than {longest} characters", "too_long")
    tree = read_source(source, compiles=True)
    if isinstance(tree, SourceFault):
        where = f" in line {tree.line}" if tree.line else ""
        return failed(f"{tree.error}{where}: {tree.words}", tree.error, line=tree.line)
    if framework == "frame":
        names = tuple(
            n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "signals"
        )
        none, many = (
            "there is no function 'signals' at the top level",
            f"'signals' is defined {len(names)} times",
        )
    else:
        names = strategy_classes(tree)
        none = "no class derives from bt.Strategy"
        many = (
            f"{len(names)} classes derive from bt.Strategy ({', '.join(names)}); exactly one "
            "is "
            "asked for"
        )
    if len(names) == 1:
        return PASSED
    return failed(many, "many_strategies") if names else failed(none, "no_strategy")


def asks_length(source: str) -> bool:
    """Return whether a program queries the total number of bars of a Backtrader line.

    The total includes later bars.
    """
    tree = parses(source)
    return tree is not None and any(
        isinstance(node, ast.Attribute) and node.attr == "buflen" for node in ast.walk(tree)
    )


def terms_set(source: str) -> dict[str, int]:
    """Return the account terms that a program names in calls, each with its first line number.

    Calls that never run are included.
    """
    tree, found = parses(source), dict[str, int]()
    for node in () if tree is None else ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        values = {word.arg or "": word.value for word in node.keywords if word.arg in CHEATS}
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TERMS:
            values[node.func.attr] = next(
                iter((*node.args, *(word.value for word in node.keywords))), node
            )
        for name, value in values.items():
            if name not in CHEATS or getattr(value, "value", True) is not False:
                found.setdefault(name, node.lineno)
    return found


def strategy_classes(tree: ast.Module) -> tuple[str, ...]:
    """Return the classes that derive from Backtrader's ``Strategy`` and have no subclass.

    Bases are followed by name, so a class created at run time is not found.
    """
    known: set[str] = set()  # The dotted names of Backtrader's strategy classes in this file.
    parents: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name
                known |= {f"{name}.{base}" for base in _BASES if alias.name in _PACKAGES}
                known |= {
                    f"{name}.strategy.{base}" for base in _BASES if alias.name == "backtrader"
                }
        elif isinstance(node, ast.ImportFrom) and node.module in _PACKAGES:
            for alias in node.names:
                name = alias.asname or alias.name
                if alias.name in _BASES:
                    known.add(name)
                elif alias.name == "*":
                    known |= _BASES
                known |= {f"{name}.{base}" for base in _BASES if alias.name == "strategy"}
        elif isinstance(node, ast.ClassDef):
            parents[node.name] = [_dotted(base) for base in node.bases]
    children: dict[str, list[str]] = {}
    for name, bases in parents.items():
        for base in bases:
            children.setdefault(base, []).append(name)
    found: set[str] = set()
    waiting = list(chain.from_iterable(children.get(base, ()) for base in known))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += children.get(name, ())
    used = set(chain.from_iterable(parents[name] for name in found))
    return tuple(name for name in parents if name in found and name not in used)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


# Patterns in the source that suggest look-ahead. They never convict, because such rules both miss
# leaks and flag honest code.

_BACKWARD: Final = frozenset({"shift", "pct_change", "diff"})
_NOT_CAUSAL: Final = {
    "bfill": "fills from later rows",
    "backfill": "fills from later rows",
    "interpolate": "draws a line to the next known value",
    "filtfilt": "filters backwards as well",
    "sosfiltfilt": "filters backwards as well",
    "savgol_filter": "uses a centred window",
    "detrend": "fits the whole series",
    "argrelextrema": "knows an extremum before it is one",
    "argrelmax": "knows an extremum before it is one",
    "argrelmin": "knows an extremum before it is one",
    "find_peaks": "knows a peak before it is one",
    "gradient": "takes central differences",
    "polyfit": "fits all rows it is given",
    "rfft": "transforms the whole series",
    "fft": "transforms the whole series",
}


class Advice(NamedTuple):
    """A place in the source that should be reviewed."""

    line: int
    text: str


def source_advice(source: str) -> tuple[Advice, ...]:
    """Return places in the source that look like look-ahead, by line.

    The result is empty for source that does not parse.
    """
    tree = parses(source)
    found: list[Advice] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and (text := _call(node)):
            found.append(Advice(node.lineno, text))
        elif isinstance(node, ast.Slice) and _negative(node.step):
            found.append(Advice(node.lineno, "a slice that runs backwards"))
        elif isinstance(node, ast.For):  # x[i + k], where i is the loop variable.
            names = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
            for inner in ast.walk(node):
                parts = ast.walk(inner.slice) if isinstance(inner, ast.Subscript) else ()
                sums = [
                    part.left
                    for part in parts
                    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
                ]
                if isinstance(inner, ast.Subscript) and any(
                    getattr(left, "id", None) in names for left in sums
                ):
                    found.append(Advice(inner.lineno, "an index ahead of the loop's own bar"))
    return tuple(sorted(found, key=lambda advice: advice.line))


def _call(node: ast.Call) -> str:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    words = {keyword.arg: keyword.value for keyword in node.keywords}
    said = {arg: value.value for arg, value in words.items() if isinstance(value, ast.Constant)}
    if name in _BACKWARD and any(
        _negative(value) for value in (*node.args[:1], words.get("periods"))
    ):
        return f"{name} with a negative step takes later rows"
    if name == "roll" and any(_negative(value) for value in (*node.args[1:2], words.get("shift"))):
        return "roll with a negative step takes later rows"
    if name == "rolling" and said.get("center") is True:
        return "a centred window takes later rows"
    if name == "fillna" and said.get("method") in ("bfill", "backfill"):
        return "fillna fills from later rows"
    if name == "merge_asof" and said.get("direction") in ("forward", "nearest"):
        return "the join may take a later row"
    if name in ("convolve", "correlate") and said.get("mode") == "same":
        return "mode 'same' centres the kernel"
    return f"{name} {_NOT_CAUSAL[name]}" if name in _NOT_CAUSAL else ""


def _negative(value: ast.expr | None) -> bool:
    return isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
