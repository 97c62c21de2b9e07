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
from tradeassay.code.harness.frames import DRAWN, SUSPECT
from tradeassay.code.harness.wire import GLANCING
from tradeassay.code.leak.source_rules import source_advice
from tradeassay.code.program_source import parses
from tradeassay.code.rules import Rules
from tradeassay.code.task import CodeTask
from tradeassay.core.draws import seed_from
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.view import Floats
from tradeassay.sandbox import ChildClaim, JobExecutor, JobLimits

SHARE: Final = 16
"""Of so many programs that were cleared one is fed all the same."""

CLEARED: Final = "called again on the first rows up to six places it said the same; it was not fed"

_LIBRARIES: Final = {
    "numpy": frozenset(
        "abs absolute add all allclose amax amin any append arange argmax argmin argsort array array_equal "
        "asarray ascontiguousarray atleast_1d average bincount bool_ ceil clip column_stack concatenate copy "
        "corrcoef cos count_nonzero cov cumprod cumsum datetime64 diff digitize divide dot e equal errstate "
        "exp expm1 fabs flatnonzero float32 float64 floor fmax fmin full full_like greater greater_equal "
        "hstack inf insert int32 int64 interp isclose isfinite isin isinf isnan isnat less less_equal linalg "
        "linspace log log10 log1p log2 logical_and logical_not logical_or logical_xor max maximum mean median "
        "min minimum mod multiply nan nan_to_num nanargmax nanargmin nancumsum nanmax nanmean nanmedian "
        "nanmin nanpercentile nanquantile nanstd nansum nanvar newaxis nonzero norm not_equal ones ones_like "
        "outer percentile pi polyval power prod ptp quantile ravel repeat reshape roll round searchsorted "
        "select sign sin sort sqrt square squeeze stack std subtract sum take tan tanh tile timedelta64 "
        "transpose unique var vstack where zeros zeros_like".split()
    ),
    "pandas": frozenset(
        "DataFrame DateOffset DatetimeIndex Index NA NaT Series Timedelta Timestamp concat cut date_range "
        "isna isnull merge notna notnull to_datetime to_numeric to_timedelta".split()
    ),
}
"""What of a library computes and keeps nothing. Not ``empty``: what it returns is what was there before."""
_METHODS: Final = frozenset(
    "abs add all any append argmax argmin argsort asfreq assign astype between clip columns combine_first "
    "copy corr count cov cumcount cummax cummin cumprod cumsum date day day_name dayofweek dayofyear days "
    "diff div divide drop drop_duplicates dropna dt dtype duplicated eq ewm expanding extend ffill fillna "
    "first first_valid_index flatten floor ge groupby gt head hour iat idxmax idxmin iloc index insert "
    "is_month_end is_month_start isin isna isnull isocalendar items iterrows itertuples join keys kurt last "
    "le loc lower lt map mask max mean median min minute mod month mul multiply name ndim ne nlargest "
    "normalize notna notnull nsmallest nunique pct_change pop pow prod quantile quarter rank ravel reindex "
    "rename replace resample reset_index reshape rolling round searchsorted second shape shift size skew sort "
    "sort_index sort_values squeeze std strftime sub subtract sum T tail take time to_frame to_list to_numpy "
    "to_pydatetime to_series tolist total_seconds transpose truediv tz_convert tz_localize unique unstack "
    "upper value_counts values var week weekday where year".split()
)
_GIVEN: Final = frozenset({"agg", "aggregate", "apply", "transform"})
"""Methods that take a function, or the name of any method at all."""
_NAMED: Final = frozenset(
    "count cummax cummin cumsum diff first last max mean median min size std sum var".split()
)
_BUILTINS: Final = frozenset(
    "abs all any bool dict divmod enumerate filter float frozenset int isinstance iter len list map max min "
    "next pow print range reversed round set slice sorted str sum tuple zip ValueError TypeError".split()
)


def second_look(task: CodeTask, source: str, secret: str) -> bool:
    """Return whether a program is among those that are asked a second time."""
    text = sha256_bytes(source.encode("utf-8", "surrogatepass"))
    return seed_from(secret, "second look", task.id, text) % SHARE == 0


def forgets(source: str) -> bool:
    """Return whether a source shows plainly that nothing is kept between two calls and no later row is meant.

    Plainly: at the top level only imports of calculating libraries, constants and functions; no decorator, class,
    or mutable default; nothing is named, of a library or of an object, but what is known to compute and to keep
    nothing. An honest program need not be plain.
    """
    try:
        tree = parses(source)
        return tree is not None and not source_advice(tree) and _is_plain(tree)
    except RecursionError:
        return False


def _is_plain(tree: ast.Module) -> bool:
    nodes = list(ast.walk(tree))
    libraries = {
        alias.asname or alias.name: alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    if not all(_harmless(node) for node in tree.body) or bound & libraries.keys():
        return False
    within = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    known = bound | own | _BUILTINS
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in libraries and id(node) not in within:
            return False  # handed on, and then anything of it can be reached
        if isinstance(node, ast.Name) and node.id not in known | libraries.keys():
            return False
        if isinstance(node, ast.Attribute) and not _computes(node, libraries):
            return False
        if isinstance(node, ast.Call) and not _given_openly(node, own):
            return False
        if _keeps(node):
            return False
    return True


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


def _computes(node: ast.Attribute, libraries: dict[str, str]) -> bool:
    """Return whether what is named here is known to compute only."""
    if isinstance(node.ctx, ast.Store | ast.Del):
        return False
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    library = libraries.get(root.id) if isinstance(root, ast.Name) else None
    if library is None:
        return node.attr in _METHODS or node.attr in _GIVEN
    if library == "talib":
        return node.attr.isupper()
    return library == "math" or node.attr in _LIBRARIES.get(library, ())


def _given_openly(node: ast.Call, own: set[str]) -> bool:
    """Return whether a method that calls what it is given is given something that can be read here."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _GIVEN:
        return True
    first = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg), None)
    if isinstance(first, ast.Constant):
        return first.value in _NAMED
    return isinstance(first, ast.Lambda | ast.Dict) or (isinstance(first, ast.Name) and first.id in own)


def _keeps(node: ast.AST) -> bool:
    """Return whether something could be kept here, or brought from elsewhere."""
    if isinstance(node, ast.Import):
        return any(alias.name not in (*_LIBRARIES, "talib", "math") for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__"
    if isinstance(node, ast.arguments):
        return not all(one is None or _constant(one) for one in (*node.defaults, *node.kw_defaults))
    if isinstance(node, ast.FunctionDef):
        return bool(node.decorator_list)
    if isinstance(node, ast.Name):
        return node.id.startswith("__")
    return isinstance(
        node,
        ast.Global | ast.Nonlocal | ast.ClassDef | ast.AsyncFunctionDef | ast.Try | ast.TryStar | ast.MatchClass,
    )


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
    job = BacktestJob(source=source, bars=bars, terms=terms_of(task), limits=limits, steps=rules.steps)
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
