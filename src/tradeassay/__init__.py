"""tradeassay: what is a trading model's result made of?

Importing this package is cheap; everything heavy is loaded on first use. (Type checkers read ``__init__.pyi``,
which must list the same names.)
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_API = (
    "AgentInfo",
    "AgentSpec",
    "Asking",
    "BootstrapConfig",
    "ModelInfo",
    "Plan",
    "Run",
    "RunComparison",
    "RunSpec",
    "VerifyReport",
    "compare",
    "list_agents",
    "list_benchmarks",
    "list_models",
    "load_run",
    "load_spec",
    "make_spec",
    "plan",
    "resume",
    "run",
    "verify",
)

_DATA = (
    "diagnose",
    "fetch_dataset",
    "get_dataset",
    "import_files",
    "list_catalogue",
    "list_datasets",
    "load_dataset",
)

__all__ = ["__version__", *_API, *_DATA]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _API and name not in _DATA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module("tradeassay.api" if name in _API else "tradeassay.data"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API, *_DATA})
