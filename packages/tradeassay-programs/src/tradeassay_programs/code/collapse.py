"""Detect collapse in training.

In a collapse, a model submits one program for many tasks, no programs, or programs that forget
their tasks.

A model trained on "it runs and it trades" learns one program that does both and submits it for
every task. The detector groups programs by shape and reports the share of tasks that the largest
group answers. The shape of a program is its code without constants, comments, formatting and the
names that its author chose. Names of libraries are kept, because a crossover of averages and a
crossover of an oscillator are two shapes.

Programs of many shapes may still follow their tasks less and less. :func:`forgetting` compares two
examinations.
"""

import ast
import math
from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
import numpy as np
from scipy.sparse.csgraph import connected_components

from tradeassay.core.arguments import instance_of
from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.measure import Measure, not_scored
from tradeassay_programs.code.program_source import parses

_PARAMS: Final = frozenset({"p", "params"})
_API: Final = frozenset(
    # Backtrader calls these methods by name. Renaming them would make two different hooks look the
    # same.
    "__init__ next prenext nextstart start stop notify_order notify_trade notify_data "
    "notify_cashvalue "
    "notify_fund notify_store notify_timer params lines plotinfo plotlines signals".split()
)


def shape_lines(source: str, *, tell_apart: bool = True) -> tuple[str, ...] | None:
    """Return the statements of a program's shape, or None if the source cannot be parsed.

    The program's own names become ``v0``, ``v1`` and so on, or all ``v`` with ``tell_apart=False``.
    """
    tree = parses(source)
    if tree is None:
        return None
    own, imported = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own |= {node.name, f"self.{node.name}"}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(f"self.{node.attr}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    own -= imported | _API | {"self"} | {f"self.{name}" for name in _API}
    try:
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0] if node.body else None
                docstring = first.value if isinstance(first, ast.Expr) else None
                if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
                    node.body = node.body[1:] or [ast.Pass()]
        shaped = ast.fix_missing_locations(_Shaper(own, tell_apart).visit(tree))
        return tuple(line.strip() for line in ast.unparse(shaped).splitlines() if line.strip())
    except RecursionError:
        return None


class _Shaper(ast.NodeTransformer):
    """Removes constants and the author's names from a syntax tree."""

    def __init__(self, own: set[str], tell_apart: bool) -> None:
        self._own = own
        self._tell_apart = tell_apart
        self._names: dict[str, str] = {}

    def _renamed(self, name: str) -> str:
        return self._names.setdefault(name, f"v{len(self._names)}") if self._tell_apart else "v"

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        keep = isinstance(node.value, bool) or node.value is None
        return node if keep else ast.copy_location(ast.Constant(value=0), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.copy_location(ast.Constant(value=0), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        negative = isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
        return node.operand if negative else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._own:
            return node
        return ast.copy_location(ast.Name(self._renamed(node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg("self" if node.arg == "self" else self._renamed(node.arg), None)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        inner = node.value
        of_self = (
            isinstance(inner, ast.Name) and inner.id == "self" and f"self.{node.attr}" in self._own
        )
        of_params = (isinstance(inner, ast.Attribute) and inner.attr in _PARAMS) or (
            isinstance(inner, ast.Name) and inner.id in _PARAMS
        )
        self.generic_visit(node)
        if of_self:
            node.attr = self._renamed(f"self.{node.attr}")
        elif of_params:
            node.attr = "param"
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        if node.name not in _API and node.name in self._own:
            node.name = self._renamed(node.name)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._renamed(node.name)
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return None if node.value is None else ast.Assign(targets=[node.target], value=node.value)


class CollapseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds for equal programs and for a collapse.

    - ``similarity`` is the minimum share of statements that two equal programs have in common
      (multiset Jaccard of shaped lines). 1 means equal shapes.
    - ``share`` and ``least`` are the minimum share and the minimum number of tasks in a group that
      is a collapse.
    - ``unreadable`` is the maximum share of programs that are not Python. A higher share among at
      least ``least`` programs is also a collapse.
    """

    similarity: float = 0.95
    share: float = 0.2
    least: int = 5
    unreadable: float = 0.5


class ProgramCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A group of tasks with equal programs. ``shape`` is the hash of the most common shape."""

    shape: str
    tasks: tuple[str, ...]
    share: float


class CollapseReport(msgspec.Struct, frozen=True, kw_only=True):
    """The similarity of the answers to different tasks.

    ``clusters`` are sorted by size, the largest first, and include single programs.
    ``largest_share`` is None, with a ``reason``, if there is no program to compare. ``unreadable``
    lists tasks whose program is not Python. They belong to no cluster and are excluded from the
    shares. Too many of them are a collapse, which ``reason`` states.
    """

    tasks: int
    clusters: tuple[ProgramCluster, ...]
    largest_share: float | None
    collapsed: bool
    unreadable: tuple[str, ...] = ()
    reason: str = ""


def collapse(programs: Mapping[str, str], config: CollapseConfig | None = None) -> CollapseReport:
    """Return groups of tasks with equal programs, and whether the programs have collapsed.

    ``programs`` maps task ids to programs.
    """
    config = config or CollapseConfig()
    instance_of("programs", programs, Mapping, "give a dict of programs by the ids of their tasks")
    shaped: dict[str, tuple[str, ...]] = {}
    for task in sorted(programs):
        lines = shape_lines(programs[task])
        if lines:
            shaped[task] = lines
    unreadable = tuple(task for task in sorted(programs) if task not in shaped)
    many = len(programs) >= config.least
    mostly_unreadable = many and len(unreadable) > config.unreadable * len(programs)
    reason = ""
    if mostly_unreadable:
        reason = f"{len(unreadable)} of {len(programs)} programs cannot be read"
    elif not shaped:
        reason = "there is no program that can be read"
    clusters = []
    for members in _groups(shaped, programs, config.similarity):
        common = Counter(shaped[task] for task in sorted(members)).most_common(1)[0][0]
        shape = sha256_bytes("\n".join(common).encode())[:16]
        share = len(members) / len(shaped)
        clusters.append(ProgramCluster(shape=shape, tasks=tuple(sorted(members)), share=share))
    clusters.sort(key=lambda cluster: (-len(cluster.tasks), cluster.tasks))
    largest = clusters[0] if clusters else None
    one_program = (
        largest is not None and len(largest.tasks) >= config.least and largest.share >= config.share
    )
    return CollapseReport(
        tasks=len(shaped),
        clusters=tuple(clusters),
        largest_share=None if largest is None else largest.share,
        collapsed=mostly_unreadable or one_program,
        unreadable=unreadable,
        reason=reason,
    )


def forgetting(before: Mapping[str, float], after: Mapping[str, float]) -> Measure:
    """Return the mean change of closeness to the task (0 to 1, by task id) between two
    examinations.

    If ``high`` is below 0, the programs have forgotten their tasks. A reward for running and
    trading, or steps that are too large, can cause this while all programs still run and differ
    from each other.
    """
    gaps = np.array([after[task] - before[task] for task in sorted(before.keys() & after.keys())])
    if gaps.size < 2:
        return not_scored("fewer than two tasks were examined both times")
    return mean_gap(gaps)


def mean_gap(gaps: Floats, note: str | None = None) -> Measure:
    """Return the mean of at least two differences with its normal interval (95 %)."""
    mean, reach = float(gaps.mean()), 1.96 * float(gaps.std(ddof=1)) / math.sqrt(gaps.size)
    return Measure(value=mean, low=mean - reach, high=mean + reach, n=gaps.size, note=note)


class EarlyStop:
    """Advises a training loop after each examination of held-out tasks.

    ::

        early = EarlyStop()
        # "best": keep this state. "back": restore the best state.
        if early.advise(closeness_by_task) != "go on": ...

    The advice is ``best`` if the programs have never been closer to their tasks on average. It is
    ``back`` if they are significantly farther than in the best state (:func:`forgetting`). Restore
    the best state in this case. The ``patience``-th ``back`` becomes ``stop``: restore the best
    state and end.

    Examine the result on other tasks, because the best of many examinations is biased upwards on
    its own tasks.
    """

    def __init__(self, patience: int = 3) -> None:
        self._left = patience
        self._best: Mapping[str, float] = {}

    def advise(self, near: Mapping[str, float]) -> Literal["best", "go on", "back", "stop"]:
        """Return the advice for an examination.

        ``near`` maps task ids to the closeness of each program to its task (0 to 1). Raises
        UserError unless every examination has the same tasks, and at least two.
        """
        if len(near) < 2 or (self._best and near.keys() != self._best.keys()):
            raise UserError(
                "examinations cannot be compared",
                hint="use the same tasks, at least two, each time",
            )
        moved = forgetting(self._best, near)
        if not self._best or (moved.value or 0.0) > 0.0:
            self._best = dict(near)
            return "best"
        if moved.high is None or moved.high >= 0.0:
            return "go on"
        self._left -= 1
        return "back" if self._left > 0 else "stop"


def _groups(
    shaped: Mapping[str, tuple[str, ...]], programs: Mapping[str, str], similarity: float
) -> list[list[str]]:
    """Return groups of tasks: programs of equal shapes, joined with similar shapes (single
    linkage).
    """
    equal: dict[tuple[str, ...], list[str]] = {}
    for task, lines in shaped.items():
        equal.setdefault(lines, []).append(task)
    shapes = list(equal)
    # Similarity is measured without numbered names, because an added line would renumber all later
    # names.
    counts = [
        Counter(shape_lines(programs[equal[lines][0]], tell_apart=False) or ()) for lines in shapes
    ]
    near = np.eye(len(shapes), dtype=bool)
    for right in range(len(shapes) if similarity < 1.0 else 0):
        for left in range(right):
            small, large = sorted((len(shapes[left]), len(shapes[right])))
            if small >= similarity * large:
                shared = sum((counts[left] & counts[right]).values())
                near[left, right] = shared >= similarity * (small + large - shared)
    groups: dict[int, list[str]] = {}
    for group, lines in zip(
        connected_components(near, directed=False)[1].tolist(), shapes, strict=True
    ):
        groups.setdefault(group, []).extend(equal[lines])
    return list(groups.values())
