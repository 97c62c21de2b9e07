"""What reading the source suggests about look-ahead. It never convicts: rules of this kind both miss leaks and
object to honest code.

:func:`source_advice` names places that deserve a look. :func:`forgets` says whether a program on frames plainly
keeps nothing between two calls, so that asking it again in one process means something.
"""

from __future__ import annotations

import ast
from typing import Final

import msgspec

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


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the source that deserves a look."""

    line: int
    text: str


def source_advice(source: str | ast.Module) -> tuple[Advice, ...]:
    """Return places that look like look-ahead, by line; none for source that does not parse."""
    tree = parses(source) if isinstance(source, str) else source
    found: list[Advice] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and (text := _call(node)):
            found.append(Advice(line=node.lineno, text=text))
        elif isinstance(node, ast.Slice) and _negative(node.step):
            found.append(Advice(line=node.lineno, text="a slice that runs backwards"))
        elif isinstance(node, ast.For):
            found += _ahead(node)
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


def _ahead(loop: ast.For) -> list[Advice]:
    """Find ``x[i + k]`` where ``i`` is the loop's own variable."""
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    found = []
    for node in ast.walk(loop):
        parts = ast.walk(node.slice) if isinstance(node, ast.Subscript) else ()
        sums = [part for part in parts if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)]
        if isinstance(node, ast.Subscript) and any(getattr(part.left, "id", None) in names for part in sums):
            found.append(Advice(line=node.lineno, text="an index ahead of the loop's own bar"))
    return found


def _negative(value: ast.expr | None) -> bool:
    return isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)


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


def forgets(source: str) -> bool:
    """Return whether nothing is plainly kept between two calls and no later row meant: only imports of
    calculating libraries, constants and functions at the top, and nothing named but what is known to compute. An
    honest program need not be plain.
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
    """Return whether a statement at the top level defines and does nothing."""
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
