"""The door through which every agent comes in: built-in rules, and anybody's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, get_args

import msgspec

from tradeassay.core.agent import Agent
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.core.registry import Registry

Value = float | int | str | bool
"""What a parameter may be when it is written on a command line or in a file."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every agent's configuration. A field's ``Meta(description=...)`` is its documentation."""


class AgentClass(Agent, Protocol):
    """What is registered: a class with a summary, a frozen ``Config``, and the methods of an agent."""

    summary: ClassVar[str]
    """One line for ``tradeassay agents``."""
    Config: ClassVar[type[AgentConfig]]
    """The parameters; every field has a default."""

    def __init__(self, config: Any) -> None:
        """Take a ``Config``; nothing is decided here."""
        ...


agents: Registry[type[AgentClass]] = Registry("agent")


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an agent's configuration, as a listing shows it."""

    name: str
    kind: str
    default: Value | None
    description: str


def make_agent(name: str, params: Mapping[str, Value] | None = None) -> Agent:
    """Return a fresh agent for one episode.

    Raises :class:`UserError` for an unknown agent or parameter (with near names) and for a value out of range.
    """
    cls = agents.get(name)
    return cls(make_config(name, cls.Config, params or {}))


def make_config(name: str, config: type[AgentConfig], params: Mapping[str, Value]) -> AgentConfig:
    """Return ``config`` filled from ``params``; raises :class:`UserError` naming the field that is wrong."""
    known = {field.encode_name for field in msgspec.structs.fields(config)}
    for key in params:
        if key not in known:
            hint = did_you_mean(key, sorted(known), f"it has {', '.join(sorted(known)) or 'none'}")
            raise UserError(f"agent '{name}' has no parameter '{key}'", mend=hint)
    try:
        return msgspec.convert(dict(params), config, strict=False)
    except msgspec.ValidationError as error:
        where = re.search(r"^(.*) - at `\$\.(\w+)", str(error))
        if where is None:
            raise UserError(f"agent '{name}': {error}", mend="see: tradeassay agents") from error
        complaint, key = where.groups()
        raise UserError(
            f"agent '{name}' cannot take {key}={params.get(key)!r}",
            mend=complaint.replace("`", "").replace("Expected", "it wants"),
        ) from error


def parameters(name: str) -> tuple[Parameter, ...]:
    """Return what can be set on an agent; raises :class:`UserError` for an unknown one."""
    return tuple(
        Parameter(
            name=field.encode_name,
            kind=_kind(field.type),
            default=None if field.default is msgspec.NODEFAULT else field.default,
            description=_description(field.type),
        )
        for field in msgspec.structs.fields(agents.get(name).Config)
    )


def _description(annotation: Any) -> str:
    metas = [meta for meta in getattr(annotation, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    return next((meta.description for meta in metas if meta.description), "")


def _kind(annotation: Any) -> str:
    bare = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    if isinstance(bare, type):
        return bare.__name__
    return " or ".join("nothing" if part is type(None) else _kind(part) for part in get_args(bare))
