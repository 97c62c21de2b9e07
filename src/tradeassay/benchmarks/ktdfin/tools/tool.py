"""A tool: a name, a description, typed arguments, and a pure function over the day's desk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.core.errors import AgentError

Args = TypeVar("Args", bound="Arguments")


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every tool's arguments."""


class ToolRefused(AgentError):
    """A call that is well formed and cannot be answered. Its message holds no name, date or word of the caller."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Args]):
    """One tool. ``answer`` may raise :class:`ToolRefused`; the gate turns that into a masked error."""

    name: str
    description: str
    arguments: type[Args]
    answer: Callable[[Desk, Args], msgspec.Struct]


AnyTool = Tool[Any]
