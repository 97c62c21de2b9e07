"""What reading the source suggests about look-ahead. It never convicts: rules of this kind both miss leaks and
object to honest code.
"""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from tradeassay.code.program_source import parses

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
    """One place in the source that deserves a look."""

    line: int
    text: str


def source_advice(source: str) -> tuple[Advice, ...]:
    """Return places that look like look-ahead, by line; none for source that does not parse."""
    tree = parses(source)
    found: list[Advice] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and (text := _call(node)):
            found.append(Advice(node.lineno, text))
        elif isinstance(node, ast.Slice) and _negative(node.step):
            found.append(Advice(node.lineno, "a slice that runs backwards"))
        elif isinstance(node, ast.For):  # x[i + k], where i is the loop's own variable
            names = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
            for inner in ast.walk(node):
                parts = ast.walk(inner.slice) if isinstance(inner, ast.Subscript) else ()
                sums = [
                    part.left for part in parts if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
                ]
                if isinstance(inner, ast.Subscript) and any(getattr(left, "id", None) in names for left in sums):
                    found.append(Advice(inner.lineno, "an index ahead of the loop's own bar"))
    return tuple(sorted(found, key=lambda advice: advice.line))


def _call(node: ast.Call) -> str:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    words = {keyword.arg: keyword.value for keyword in node.keywords}
    said = {arg: value.value for arg, value in words.items() if isinstance(value, ast.Constant)}
    if name in _BACKWARD and any(_negative(value) for value in (*node.args[:1], words.get("periods"))):
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
