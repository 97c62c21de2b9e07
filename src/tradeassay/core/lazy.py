"""Packages whose public names are imported on first use, because some of them are heavy.

Such a package lists its names once, as ordinary imports that only type checkers run, and hands itself over::

    if TYPE_CHECKING:
        from tradeassay.assay.power import power_of_run as power_of_run
    else:
        __getattr__, __dir__, __all__ = lazily(__name__)

``as`` the same name means "exported" to type checkers, and the ``else`` hides ``__getattr__`` from them, so that a
wrong name is still an error. Packages that are cheap to import use plain imports instead.

A module that needs an optional package writes ``import polars as pl`` under ``if TYPE_CHECKING:``, and otherwise
``pl = OptionalPackage("polars", "polars", "what needs it")``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from tradeassay.core.errors import require

_IMPORTS = re.compile(r"^    from ([\w.]+) import (\([^)]*\)|[^(\n]+)$", re.MULTILINE)
_EXPORTED = re.compile(r"\b(\w+) as \1\b")


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that is being imported. The names are those
    that the package imports under ``if TYPE_CHECKING:``; any other is an ``AttributeError``."""
    module: Any = sys.modules[package]
    # Not get_source, which loads the package that guesses the encoding of a source: ours is known.
    source = module.__spec__.loader.get_data(module.__spec__.origin).decode()
    homes = {name: home for home, names in _IMPORTS.findall(source) for name in _EXPORTED.findall(names)}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)
        setattr(module, name, value)
        return value

    return get, lambda: sorted({*vars(module), *homes}), sorted(homes)


class OptionalPackage:
    """Stands for a package of an extra, and imports it on first use; raises MissingExtra without it."""

    def __init__(self, module: str, extra: str, what: str, *, instead: str = "") -> None:
        self._wanted = (module, extra, what, instead)

    def __getattr__(self, name: str) -> Any:
        module, extra, what, instead = self._wanted
        return getattr(require(module, extra, what, instead=instead), name)


def make_callable(package: str, function: str) -> None:
    """Let a package be called like the function that ``function`` names (``module:name``). ``tradeassay.assay`` is
    a package and, to whoever writes ``tradeassay.assay(frame)``, a function; importing the package anywhere must
    not take the function away."""
    home, _, name = function.partition(":")

    class CallableModule(ModuleType):
        def __call__(self, *arguments: Any, **keywords: Any) -> Any:
            return getattr(import_module(home), name)(*arguments, **keywords)

        @property
        def __signature__(self) -> Any:  # what a notebook shows before it is called
            import inspect

            return inspect.signature(getattr(import_module(home), name))

    sys.modules[package].__class__ = CallableModule
