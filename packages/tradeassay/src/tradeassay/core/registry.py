"""The one extension door: a decorator for code, an entry point for packages.

Built-ins use the same door as everyone else. A duplicate name is refused, an unknown one gets "did you mean", an
id without a version means its newest. Entry-point groups are ``tradeassay.<kind>s`` (``tradeassay.agents``, ...):
the entry point's name is the registered name, its object is what would otherwise be decorated.
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
"""So many names are all told beside the nearest one."""


class Registry(Generic[_T]):
    """Named things of one kind, e.g. agents.

    ``wrong`` says of a name and a thing what the thing lacks, or None: one that is half made is refused where it
    comes in, not found by whoever lists all of them."""

    def __init__(self, kind: str, wrong: Callable[[str, Any], str | None] | None = None) -> None:
        self.kind, self._wrong = kind, wrong
        self._items: dict[str, _T] = {}
        self._declared: dict[str, str] = {}
        self._plugins_loaded = False
        self._broken: dict[str, str] = {}
        self._packages: dict[str, str] = {}

    def register(self, name: str) -> Callable[[_T], _T]:
        """Return a decorator that files its object under ``name``; raises :class:`UserError` on a duplicate."""

        def file(item: _T) -> _T:
            self.add(name, item)
            return item

        return file

    def add(self, name: str, item: _T) -> None:
        """File ``item`` under ``name``; raises :class:`UserError` when the name is taken or the item half made."""
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
        """Announce that importing ``module`` registers ``name``. It is imported when the name is first used."""
        if name not in self._items:
            self._declared[name] = module

    def full_name(self, name: str) -> str:
        """Return the name as registered: an id without a version means its newest; an unknown one stays."""
        if not self._is_known(name):
            self._load_plugins()
        return newest(name, {*self._items, *self._declared})

    def get(self, name: str) -> _T:
        """Return the thing called ``name``, an id without a version being its newest. Raises :class:`UserError`
        with near names when there is none."""
        found = self.full_name(name)
        if found in self._declared:
            import_module(self._declared[found])
        if found in self._items:
            return self._items[found]
        if name in self._broken:
            raise UserError(
                f"{self.kind} '{name}' of an installed package cannot be loaded: {self._broken[name]}",
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
        """Return the installed package that added a thing, with its version; None for ours and for a script's."""
        self._load_plugins()
        return self._packages.get(name)

    def broken(self) -> dict[str, str]:
        """Return the names of installed entry points that could not be loaded, and why."""
        self._load_plugins()
        return dict(self._broken)

    @contextmanager
    def knowing(self, more: Mapping[str, _T]) -> Iterator[None]:
        """Know the items of ``more`` too, within a block: what is registered stays what it is."""
        self._load_plugins()
        added = {name: item for name, item in more.items() if not self._is_known(name)}
        self._items.update(added)
        try:
            yield
        finally:
            for name in added:  # what registered itself within the block stays
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
            # One broken package must not take the others down; whoever asks for it by name is told why.
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
    """Return the newest of the versions ``name-v1``, ``name-v2`` ... among ``known``, or ``name`` as it is."""
    if name in known:
        return name
    versions = {
        int(found[1]): one
        for one in known
        if (found := re.fullmatch(rf"{re.escape(str(name))}-v(\d+)", one))
    }
    return versions[max(versions)] if versions else name


def did_you_mean(name: str, known: Iterable[str], otherwise: str, *, alike: float = 0.5) -> str:
    """Return ``did you mean a or b?`` for names ``alike`` enough to ``name`` among ``known``, else
    ``otherwise``."""
    import difflib

    near = difflib.get_close_matches(str(name), list(dict.fromkeys(known)), n=3, cutoff=alike)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def refuse_unknown(name: str, known: Collection[str], problem: str, otherwise: str = "") -> None:
    """Raise :class:`UserError` unless ``name`` is among ``known``; its hint is near names, else ``otherwise``."""
    if name not in known:
        raise UserError(
            problem, hint=did_you_mean(name, known, otherwise or f"one of {', '.join(known)}")
        )
