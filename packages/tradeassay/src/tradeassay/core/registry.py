"""The registry of extensions. Code registers with a decorator, packages with an entry point.

Built-in parts register in the same way. A duplicate name is refused. An unknown name raises an
error that suggests similar names. An id without a version means the newest version. Entry-point
groups are ``tradeassay.<kind>s`` (``tradeassay.agents``, ...). The name of the entry point is the
registered name, and its object is the object to register.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from tradeassay.core.errors import UserError
from tradeassay.core.our_code import PACKAGES

_T = TypeVar("_T")

_FEW: Final = 4
"""If there are at most this many names, an error lists all of them."""


class Registry(Generic[_T]):
    """Named objects of one kind, such as agents.

    ``wrong`` takes a name and an object and returns what the object lacks, or None. An incomplete
    object is rejected when it is registered, not when it is first used.
    """

    def __init__(self, kind: str, wrong: Callable[[str, Any], str | None] | None = None) -> None:
        self.kind, self._wrong = kind, wrong
        self._items: dict[str, _T] = {}
        self._declared: dict[str, str] = {}
        self._plugins_loaded = False
        self._broken: dict[str, str] = {}
        self._packages: dict[str, str] = {}

    def register(self, name: str) -> Callable[[_T], _T]:
        """Return a decorator that registers its object under ``name``.

        Raises :class:`UserError` on a duplicate name.
        """

        def file(item: _T) -> _T:
            self.add(name, item)
            return item

        return file

    def add(self, name: str, item: _T) -> None:
        """Register ``item`` under ``name``.

        Raises :class:`UserError` if the name is taken or the item is incomplete.
        """
        if name in self._items:
            raise UserError(
                f"{self.kind} '{name}' is registered twice", hint="give one of them another name"
            )
        wrong = None if self._wrong is None else self._wrong(name, item)
        if wrong is not None:
            raise UserError(f"{self.kind} '{name}' cannot be registered: {wrong}")
        self._declared.pop(name, None)
        self._items[name] = item

    def declare(self, name: str, module: str) -> None:
        """Declare that importing ``module`` registers ``name``. The import happens on first use."""
        if name not in self._items:
            self._declared[name] = module

    def full_name(self, name: str) -> str:
        """Return the registered name. For an id without a version, return its newest version.

        An unknown name is returned unchanged.
        """
        if not self._is_known(name):
            self._load_plugins()
        return newest(name, {*self._items, *self._declared})

    def get(self, name: str) -> _T:
        """Return the object registered as ``name``. An id without a version means the newest.

        Raises :class:`UserError` with similar names if there is no such object.
        """
        found = self.full_name(name)
        if found in self._declared:
            import_module(self._declared[found])
        if found in self._items:
            return self._items[found]
        if name in self._broken:
            raise UserError(
                f"{self.kind} '{name}' of an installed package cannot be loaded: "
                f"{self._broken[name]}",
                hint="fix or remove that package",
            )
        known = self.names()
        listed = f"known: {', '.join(known) or 'none'}"
        hint = did_you_mean(name, known, listed)
        if hint != listed and len(known) <= _FEW:
            hint = f"{hint} {listed}"
        raise UserError(f"no {self.kind.replace('_', ' ')} '{name}'", hint=hint)

    def names(self) -> tuple[str, ...]:
        self._load_plugins()
        return tuple(sorted({*self._items, *self._declared}))

    def items(self) -> Iterator[tuple[str, _T]]:
        for name in self.names():
            yield name, self.get(name)

    def package(self, name: str) -> str | None:
        """Return the installed package that added an object, with its version.

        Returns None for built-in objects and for objects of a script.
        """
        self._load_plugins()
        return self._packages.get(name)

    def broken(self) -> dict[str, str]:
        """Return the names of installed entry points that could not be loaded, with the reasons."""
        self._load_plugins()
        return dict(self._broken)

    @contextmanager
    def knowing(self, more: Mapping[str, _T]) -> Iterator[None]:
        """Add the items of ``more`` within a block, unless their names are already registered."""
        self._load_plugins()
        added = {name: item for name, item in more.items() if not self._is_known(name)}
        self._items.update(added)
        try:
            yield
        finally:
            for name in added:  # Keep items that were registered inside the block.
                del self._items[name]

    def __contains__(self, name: object) -> bool:
        self._load_plugins()
        return self._is_known(name)

    def _is_known(self, name: object) -> bool:
        return name in self._items or name in self._declared

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        from importlib.metadata import (
            entry_points,
        )  # slow to load, and --help needs only the hints below

        self._plugins_loaded = True
        for point in entry_points(group=f"tradeassay.{self.kind}s"):
            # One broken package must not disable the others. :meth:`get` reports its error by name.
            try:
                if point.name in self._declared:
                    raise UserError(f"{self.kind} '{point.name}' is registered twice")
                self.add(point.name, point.load())
                if point.dist is not None and point.dist.name.replace("-", "_") not in PACKAGES:
                    self._packages[point.name] = f"{point.dist.name} {point.dist.version}"
            except UserError as error:
                self._broken[point.name] = str(error)
            except Exception as error:
                self._broken[point.name] = f"{type(error).__name__}: {error}"


def newest(name: str, known: Collection[str]) -> str:
    """Return the newest version ``name-v1``, ``name-v2`` ... in ``known``, else ``name``."""
    if name in known:
        return name
    versions = {
        int(found[1]): one
        for one in known
        if (found := re.fullmatch(rf"{re.escape(str(name))}-v(\d+)", one))
    }
    return versions[max(versions)] if versions else name


def did_you_mean(name: str, known: Iterable[str], otherwise: str, *, alike: float = 0.5) -> str:
    """Return ``did you mean a or b?`` for names in ``known`` that resemble ``name``.

    ``alike`` is the smallest similarity. Without similar names, return ``otherwise``.
    """
    import difflib

    near = difflib.get_close_matches(str(name), list(dict.fromkeys(known)), n=3, cutoff=alike)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def refuse_unknown(name: str, known: Collection[str], problem: str, otherwise: str = "") -> None:
    """Raise :class:`UserError` unless ``name`` is in ``known``.

    The hint lists similar names, or else is ``otherwise``.
    """
    if name not in known:
        raise UserError(
            problem, hint=did_you_mean(name, known, otherwise or f"one of {', '.join(known)}")
        )
