"""Import the public names of heavy packages on first use.

This follows SPEC 1 of Scientific Python: a package declares its names in a mapping and takes its
``__getattr__``, ``__dir__`` and ``__all__`` from :func:`attach`::

    if TYPE_CHECKING:
        from tradeassay_bench.examine.power import power_of_run as power_of_run
    else:
        __getattr__, __dir__, __all__ = attach(
            __name__, {"tradeassay_bench.examine.power": ["power_of_run"]}
        )

Type checkers and import-linter read the imports. Python reads the mapping. Each name is declared
twice, and a test compares both lists. The package ``lazy_loader`` would read the names from a
``.pyi`` stub. It is not used here because import-linter does not read stubs and so would no longer
check these imports.

Packages that are cheap to import use plain imports. A module that needs an optional package writes
``import polars as pl`` under ``if TYPE_CHECKING:``, and otherwise ``pl = OptionalPackage("polars",
"polars", "name of the feature")``.
"""

from __future__ import annotations

import sys

# ``import tradeassay`` loads this module. So it imports nothing slow, not even typing or importlib.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any


def attach(
    package: str, names: Mapping[str, Sequence[str]], *, submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package.

    ``names`` maps each module to the names that the package exports from it. ``submodules`` are
    exported as modules. ``__getattr__`` imports a name on first use. It raises AttributeError for
    an undeclared name.
    """
    module_of = {name: module for module, exported in names.items() for name in exported}
    public = sorted({*module_of, *submodules})

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return _module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return __getattr__, __dir__, public


def _module(name: str) -> ModuleType:
    """Import a module and return it, like ``importlib.import_module``."""
    __import__(name)
    return sys.modules[name]


class OptionalPackage:
    """Proxy that imports the package of an extra on first use. Raises MissingExtra without it."""

    def __init__(self, module: str, extra: str, what: str, *, instead: str = "") -> None:
        self._wanted = (module, extra, what, instead)

    def __getattr__(self, name: str) -> Any:
        from tradeassay.core.errors import require

        module, extra, what, instead = self._wanted
        return getattr(require(module, extra, what, instead=instead), name)
