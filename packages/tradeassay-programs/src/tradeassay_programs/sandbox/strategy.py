"""Load strategy code, call it with its columns, and convert its return value to columns.

This module runs in the child for untrusted code and in the host for trusted reference code, so both
behave the same. The list of permitted modules gives honest code an early answer. It is not
isolation.
"""

import ast
import builtins
import hashlib
import importlib
import linecache
import os
import random
import sys
import traceback
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from types import CodeType, ModuleType
from typing import Any, Final, Literal

import msgspec
import numpy as np

from tradeassay.core.our_code import our_folders
from tradeassay.core.syntax import TOO_DEEP, SourceFault, is_too_deep, program_tree, syntax_tree
from tradeassay_programs.sandbox.codec import ClaimHead, ClaimKind, encode

DENIED_STDLIB: Final[frozenset[str]] = frozenset(
    # The kernel refuses the calls of these modules anyway, so the import is refused at once.
    "socket socketserver ssl select selectors asyncio http urllib ftplib smtplib imaplib poplib "
    "nntplib telnetlib "
    "xmlrpc webbrowser wsgiref subprocess multiprocessing concurrent threading _thread signal pty "
    "tty termios "
    "fcntl mmap resource ctypes _ctypes importlib imp pkgutil runpy pickle _pickle shelve marshal "
    "dbm sqlite3 tkinter "
    "turtle idlelib ensurepip venv pdb cProfile faulthandler tracemalloc syslog crypt grp pwd spwd "
    "posix".split()
)


class ImportFound(msgspec.Struct, frozen=True):
    """A module that is not on the list, and the line of its import."""

    module: str
    line: int


def allowed_modules(third_party: Iterable[str]) -> frozenset[str]:
    """Return the importable top-level names: most of the standard library, and ``third_party``."""
    return (frozenset(sys.stdlib_module_names) - DENIED_STDLIB) | frozenset(third_party)


def is_allowed(module: str, allowed: frozenset[str]) -> bool:
    """Return whether ``module`` (dotted) is on the list.

    An empty name is a relative import, which fails on its own.
    """
    top = module.partition(".")[0]
    return not top or top in allowed


def first_forbidden(tree: ast.AST, allowed: frozenset[str]) -> ImportFound | None:
    """Return the first import, by line, of a module that is not on the list.

    An import whose error the code catches is left out. It fails when it runs.
    """
    found: list[ImportFound] = []
    optional: set[int] = set()
    for attempt in ast.walk(tree):
        for handler in attempt.handlers if isinstance(attempt, ast.Try) else ():
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            if isinstance(attempt, ast.Try) and any(
                kind is None or (isinstance(kind, ast.Name) and kind.id in _ERRORS)
                for kind in kinds
            ):
                for statement in attempt.body:
                    optional |= {id(node) for node in ast.walk(statement)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in optional:
            found += [
                ImportFound(name, node.lineno) for name in names if not is_allowed(name, allowed)
            ]
    return min(found, key=lambda item: item.line, default=None)


_ERRORS: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


_LONGEST_NAME: Final = 200
MODULE: Final = "strategy"
FILE: Final = "strategy.py"
_TIME: Final = "time"
_FLOAT: Final = np.dtype(np.float64)

Scalar = bool | int | float | str


class StrategyCall(msgspec.Struct, frozen=True, kw_only=True):
    """The function to call in the loaded code, and the form of its columns (see :class:`Job`)."""

    entry: str = "run"
    params: dict[str, Scalar] = {}
    pass_as: Literal["columns", "frame", "frames"] = "frame"
    harness: str = ""


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """The parser's verdict: no finding, a syntax error, or a module that is not on the list."""

    syntax: str = ""
    line: int | None = None
    forbidden: ImportFound | None = None


class NoEntry(LookupError):
    """Raised if the code defines no function of the requested name."""


class Unreturnable(TypeError):
    """Raised if the code returned a value that no column can hold."""


_OTHER_CLAIM: Final[ClaimKind] = "exception"
_CLAIMS: Final[tuple[tuple[type[BaseException], ClaimKind], ...]] = (
    (MemoryError, "memory"),
    (ImportError, "import"),
    (NoEntry, "no_entry"),
    (Unreturnable, "unreturnable"),
    (SystemExit, "exit"),
)


BOM: Final = "\ufeff"
"""The byte-order mark that some editors write at the start of a file. Python ignores it in files.
"""


def parse(source: str, allowed: frozenset[str] | None) -> tuple[CodeType | None, Parsed]:
    """Compile ``source`` without running it. ``allowed=None`` skips the check of imports."""
    lines = source.splitlines(keepends=True)
    linecache.cache[FILE] = (len(source), None, lines, FILE)  # This makes tracebacks readable.
    return _compiled(source, allowed)


@lru_cache(maxsize=32)
def _compiled(source: str, allowed: frozenset[str] | None) -> tuple[CodeType | None, Parsed]:
    """Return the compiled source, cached.

    One process calls trusted code again and again with different bars, so it is compiled once.
    """
    try:
        tree = syntax_tree(source.removeprefix(BOM), FILE)
        if is_too_deep(tree):
            return None, Parsed(syntax=TOO_DEEP)
        found = None if allowed is None else first_forbidden(tree, allowed)
        if found is not None:
            # A name may be as long as the source, but the host reads one message of limited length.
            return None, Parsed(
                forbidden=ImportFound(found.module[:_LONGEST_NAME], found.line), line=found.line
            )
        return compile(tree, FILE, "exec", dont_inherit=True), Parsed()
    except SyntaxError as error:
        fault = program_tree(
            source.removeprefix(BOM)
        )  # This text is fixed here, because interpreters word it differently.
        if isinstance(fault, SourceFault):
            return None, Parsed(syntax=_clean(fault.words, 500), line=fault.line)
        return None, Parsed(syntax=_clean(error.msg or "invalid syntax", 500), line=error.lineno)
    except RecursionError:
        return None, Parsed(syntax=TOO_DEEP)
    except Exception as error:
        # The causes are a null byte, a lone surrogate, or nesting too deep for the parser. In every
        # case the source is the cause. If the child ended here without a message, the machine would
        # be blamed.
        return None, Parsed(syntax=_clean(f"{type(error).__name__}: {error}", 500))


def fix_seeds(seed: int) -> None:
    """Seed every source of randomness that Python code normally uses.

    This includes the operating system's source.
    """
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    counter = 0

    def drawn(size: int) -> bytes:
        nonlocal counter
        counter += 1
        return hashlib.shake_256(f"{seed}:{counter}".encode()).digest(size)

    os.urandom = drawn
    if hasattr(os, "getrandom"):
        os.getrandom = lambda size, flags=0: drawn(size)
    random._urandom = drawn  # type: ignore[attr-defined]  # where secrets and numpy's default_rng() draw from


def run_code(
    code: CodeType, call: StrategyCall, columns: Mapping[str, Any], allowed: frozenset[str] | None
) -> dict[str, Any]:
    """Execute the code, call its function, and return the columns.

    Raises the code's exceptions, :class:`NoEntry`, or :class:`Unreturnable`.
    """
    module = _loaded(code, allowed)
    if call.harness:
        where, _, name = call.harness.partition(":")
        returned = getattr(importlib.import_module(where), name)(
            module, dict(columns), dict(call.params)
        )
    else:
        function = module.__dict__.get(call.entry)
        if not callable(function):
            raise NoEntry(f"the code defines no function '{call.entry}'")
        returned = function(shape(columns, call.pass_as), **call.params)
    return columns_of(returned)


def run_encoded(
    code: CodeType, call: StrategyCall, columns: Mapping[str, Any], allowed: frozenset[str] | None
) -> list[bytes]:
    """Run code as :func:`run_code` does, and return its columns as a message in parts.

    Raises :class:`Unreturnable` if the columns cannot be encoded.
    """
    returned = run_code(code, call, columns, allowed)
    try:
        return encode(returned)
    except (TypeError, ValueError) as error:
        raise Unreturnable(str(error)) from error


def _loaded(code: CodeType, allowed: frozenset[str] | None) -> ModuleType:
    """Return the code as a module.

    Its ``__loader__`` creates another module from the same code, for a harness with several tables.
    """
    module = ModuleType(MODULE)
    names, real = dict(vars(builtins)), builtins.__import__

    def guarded(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if allowed is not None and level == 0 and not is_allowed(name, allowed):
            raise ImportError(
                f"module '{name}' is not on the list of modules a strategy may import"
            )
        return real(name, globals, locals, fromlist, level)

    if allowed is not None:
        names["__import__"] = guarded
    module.__dict__.update(__builtins__=names, __loader__=partial(_loaded, code, allowed))
    module.__file__ = FILE
    sys.modules[MODULE] = module  # backtrader looks up a strategy class's module here.
    exec(code, module.__dict__)
    return module


def shape(columns: Mapping[str, Any], pass_as: str) -> Any:
    """Return the columns as a dict of arrays, one frame, or a dict of frames."""
    if pass_as == "columns":
        return dict(columns)
    if pass_as == "frame":
        return _frame(columns)
    return {table: _frame(group) for table, group in by_table(columns).items()}


def by_table(columns: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return columns grouped by table: ``A/close`` is column ``close`` of table ``A``."""
    tables: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        table, _, column = name.rpartition("/")
        tables.setdefault(table, {})[column] = values
    return tables


_OUR_FOLDERS = our_folders()


def claim_of(error: BaseException) -> ClaimHead:
    """Return the child's claim about an exception that the code raised."""
    kind = next((name for cls, name in _CLAIMS if isinstance(error, cls)), _OTHER_CLAIM)
    try:
        message = str(error)
        start = error.__traceback__
        while start is not None and start.tb_frame.f_code.co_filename != FILE:
            start = start.tb_next
        read = linecache.updatecache
        # The child cannot read this project's files. Trying would be reported to the host as an
        # attempt of the code.
        linecache.updatecache = lambda filename, module_globals=None: (
            [] if filename.startswith(_OUR_FOLDERS) else read(filename, module_globals)
        )
        try:
            trace = "".join(traceback.format_exception(type(error), error, start))
        finally:
            linecache.updatecache = read
        for folder in (sys.prefix, sys.base_prefix):
            trace = trace.replace(folder, "...")
    except BaseException:
        message, trace = "its error cannot be shown", ""
    return ClaimHead(
        kind,
        _clean(type(error).__name__, 200),
        _clean(message, 4000),
        _clean(trace[-12000:], 12000),
    )


def _frame(columns: Mapping[str, Any]) -> Any:
    import pandas as pd

    data = {name: values for name, values in columns.items() if name != _TIME}
    index = pd.Index(columns[_TIME], name=_TIME) if _TIME in columns else None
    if {getattr(values, "dtype", None) for values in data.values()} == {_FLOAT}:
        # Build one block. pandas would need eight times as long for it, and code is called on many
        # tables.
        return pd.DataFrame(
            np.array([*data.values()]).T, index=index, columns=pd.Index([*data]), copy=False
        )
    return pd.DataFrame(data, index=index)


def columns_of(returned: Any) -> dict[str, Any]:
    """Return a strategy's return value as named array-likes.

    Raises :class:`Unreturnable` for None.
    """
    if hasattr(returned, "columns") and hasattr(returned, "to_numpy"):
        return {str(name): returned[name].to_numpy() for name in returned.columns}
    if hasattr(returned, "to_numpy"):
        return {"value": returned.to_numpy()}
    if isinstance(returned, Mapping):
        return {str(name): values for name, values in returned.items()}
    if returned is None:
        raise Unreturnable("the code returned None instead of columns")
    return {"value": returned}


def _clean(text: str, length: int) -> str:
    return text[:length].encode("utf-8", "replace").decode()
