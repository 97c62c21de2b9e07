"""The door for the arena's agent architectures."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import msgspec

from tradeassay.core.arena import Deliberation, Packet
from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry

Scalar = bool | int | float | str


class Architecture(Protocol):
    """A way to come to a decision with a language model. ``roles`` lists everybody it asks, in order."""

    summary: ClassVar[str]

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who is asked for a decision, in the order of their first word."""
        ...

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision; it depends on its arguments and the answers alone."""
        ...


architectures: Registry[Any] = Registry("architecture")
"""All architectures: classes with ``summary`` and ``Config``, made from a config.

Other packages add theirs through the entry-point group ``tradeassay.architectures``.
"""


def make_architecture(name: str, params: dict[str, Scalar] | None = None) -> Architecture:
    """Return an architecture with its settings; raises :class:`UserError` for an unknown name or setting."""
    made = architectures.get(name)
    try:
        config = msgspec.convert(params or {}, made.Config)
    except (msgspec.ValidationError, ValueError) as error:
        known = ", ".join(made.Config.__struct_fields__)
        raise UserError(f"architecture '{name}': {error}", mend=f"its settings are {known}") from error
    built: Architecture = made(config)
    return built
