"""tradeassay: what is a trading model's result made of?

Importing this package is cheap; everything heavy is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.api import AgentInfo as AgentInfo
    from tradeassay.api import AgentSpec as AgentSpec
    from tradeassay.api import BootstrapConfig as BootstrapConfig
    from tradeassay.api import Plan as Plan
    from tradeassay.api import Run as Run
    from tradeassay.api import RunComparison as RunComparison
    from tradeassay.api import RunSpec as RunSpec
    from tradeassay.api import VerifyReport as VerifyReport
    from tradeassay.api import compare as compare
    from tradeassay.api import list_agents as list_agents
    from tradeassay.api import list_benchmarks as list_benchmarks
    from tradeassay.api import list_datasets as list_datasets
    from tradeassay.api import load_dataset as load_dataset
    from tradeassay.api import load_run as load_run
    from tradeassay.api import load_spec as load_spec
    from tradeassay.api import make_spec as make_spec
    from tradeassay.api import plan as plan
    from tradeassay.api import resume as resume
    from tradeassay.api import run as run
    from tradeassay.api import verify as verify

__version__ = "0.1.0"

_API = (
    "AgentInfo",
    "AgentSpec",
    "BootstrapConfig",
    "Plan",
    "Run",
    "RunComparison",
    "RunSpec",
    "VerifyReport",
    "compare",
    "list_agents",
    "list_benchmarks",
    "list_datasets",
    "load_dataset",
    "load_run",
    "load_spec",
    "make_spec",
    "plan",
    "resume",
    "run",
    "verify",
)

__all__ = ["__version__", *_API]  # the names come from the tuple above


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module("tradeassay.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
