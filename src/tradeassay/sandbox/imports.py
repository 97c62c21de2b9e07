"""The list of modules that a strategy may import. A courtesy that gives honest code an early answer; no wall."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from typing import Final

import msgspec

DENIED_STDLIB: Final[frozenset[str]] = frozenset(
    # What they are for is refused by the kernel anyway, so that an import is better answered at once.
    "socket socketserver ssl select selectors asyncio http urllib ftplib smtplib imaplib poplib nntplib telnetlib "
    "xmlrpc webbrowser wsgiref subprocess multiprocessing concurrent threading _thread signal pty tty termios "
    "fcntl mmap resource ctypes _ctypes importlib imp pkgutil runpy pickle _pickle shelve marshal "
    "dbm sqlite3 tkinter "
    "turtle idlelib ensurepip venv pdb cProfile faulthandler tracemalloc syslog crypt grp pwd spwd posix".split()
)


class ImportFound(msgspec.Struct, frozen=True):
    """A module that is not on the list, and the line that imports it."""

    module: str
    line: int


def allowed_modules(third_party: Iterable[str]) -> frozenset[str]:
    """Return the top-level names that may be imported: most of the standard library, and ``third_party``."""
    return (frozenset(sys.stdlib_module_names) - DENIED_STDLIB) | frozenset(third_party)


def is_allowed(module: str, allowed: frozenset[str]) -> bool:
    """Return whether ``module`` (dotted) is on the list; an empty name (a relative import) is left to fail by
    itself.
    """
    top = module.partition(".")[0]
    return not top or top in allowed


def first_forbidden(tree: ast.AST, allowed: frozenset[str]) -> ImportFound | None:
    """Return the first import statement, by line, of a module that is not on the list."""
    found: list[ImportFound] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        found += [ImportFound(name, node.lineno) for name in names if not is_allowed(name, allowed)]
    return min(found, key=lambda item: item.line, default=None)
