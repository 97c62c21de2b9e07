"""The one interface that every data source implements.

A source is a class with a frozen ``Config`` (how it is asked) and ``load`` (what it answers: a panel).
It is registered with ``@sources.register("name")`` or an entry point in the group ``tradeassay.sources``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import msgspec

from tradeassay.core.registry import Registry
from tradeassay.data.panel import Panel


class SourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every source's configuration."""


class Source(Protocol):
    """Where a panel comes from."""

    Config: ClassVar[type[SourceConfig]]
    summary: ClassVar[str]
    """One line for ``tradeassay data list``."""
    extra: ClassVar[str | None]
    """The extra that must be installed, or None."""

    def __init__(self, config: Any) -> None: ...

    def load(self) -> Panel:
        """Fetch or generate the panel; raises :class:`~tradeassay.core.errors.SourceError` when it cannot."""
        ...


sources: Registry[type[Source]] = Registry("source")
