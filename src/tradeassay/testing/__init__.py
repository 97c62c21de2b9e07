"""Checkers that ship: run them over your own agent, source or venue before you trust its numbers.

Each raises :class:`CheckFailed` with one sentence about what is wrong. They are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tradeassay.testing._failed import CheckFailed

if TYPE_CHECKING:
    from tradeassay.testing.agent import check_agent as check_agent
    from tradeassay.testing.exchange import check_exchange as check_exchange
    from tradeassay.testing.sandbox import check_sandbox as check_sandbox
    from tradeassay.testing.source import check_source as check_source

_WHERE = {
    "check_agent": "agent",
    "check_exchange": "exchange",
    "check_sandbox": "sandbox",
    "check_source": "source",
}

__all__ = ["CheckFailed", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
