"""The registry of agents: built-in rules and the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import msgspec

from tradeassay.core.agent import Agent
from tradeassay.core.arguments import filled, refuse_unknown
from tradeassay.core.drive import own_fault
from tradeassay.core.errors import TradeassayError, UserError, require
from tradeassay.core.registry import Registry

if TYPE_CHECKING:
    from tradeassay.llm import CassetteStore, Model

Value = float | int | str | bool
"""What a parameter may be when it is written on a command line or in a file."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every agent's configuration. A field's ``Meta(description=...)`` is its documentation."""


class Registered(Protocol):
    """What is registered: a class with a summary and a frozen ``Config``, and the methods of an agent.

    ``asked`` says how it is asked. ``"observation"``, the default: it has ``begin`` and ``answer`` (see
    :class:`~tradeassay.core.agent.Agent`) and is shown the observation itself, as every rule is.
    ``"conversation"``: it is asked what the benchmark asks a language model, and has ``open`` (see
    :class:`Conversing`)."""

    summary: ClassVar[str]
    """One line for ``tradeassay agents``."""
    Config: ClassVar[type[AgentConfig]]
    """The parameters; every field has a default."""

    def __init__(self, config: Any) -> None: ...


class AgentClass(Registered, Agent, Protocol):
    """A registered class whose agents are shown the observation itself."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What an agent that is asked in a conversation is opened with.

    ``settings`` is the configuration of the benchmark's conversation, ``label`` what the agent is called.
    ``benchmark`` is what it is told that it plays: under a mask the family only, because an id may name a market
    and its years. ``salt`` is what the episode's shown name is drawn from."""

    benchmark: str
    label: str
    salt: str = ""
    settings: msgspec.Struct | None = None
    cassette: CassetteStore | None = None
    replay: bool = False


class Conversing(Protocol):
    """An agent that is asked in the benchmark's conversation: a language model, or a foreign program."""

    asked: ClassVar[Literal["conversation"]]

    def open(self, opening: Opening) -> AbstractAsyncContextManager[Model]:
        """Open the agent; leaving the block closes the connection."""
        ...


def _wrong(_name: str, item: object) -> str | None:
    """Return what a class lacks that is to be an agent, or None."""
    if not isinstance(item, type):
        return f"it is no class but {item!r:.60}"
    methods = ("open",) if getattr(item, "asked", "observation") == "conversation" else ("begin", "answer")
    missing = [one for one in ("summary", "Config", *methods) if not hasattr(item, one)]
    missing += sorted(getattr(item, "__abstractmethods__", ()))
    return f"it has no {' and no '.join(missing)}" if missing else None


agents: Registry[type[Registered]] = Registry("agent", _wrong)


class AgentParameter(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an agent's configuration, as a listing shows it."""

    name: str
    kind: str
    default: Value | None
    description: str


def converses(name: str) -> bool:
    """Return whether an agent is asked in the benchmark's conversation; False for an unknown one."""
    return name in agents and getattr(agents.get(name), "asked", "observation") == "conversation"


def plays_alone(name: str) -> bool:
    """Return whether an agent can play without parameters: a file's class must be named, a rule need not."""
    return bool(getattr(agents.get(name), "plays_alone", True))


def make_agent(name: str, params: Mapping[str, Value] | None = None) -> Agent:
    """Return a fresh agent for one episode, one that is shown the observation itself.

    Raises :class:`UserError` for an unknown agent or parameter (with near names), for a value out of range, and
    for an agent that is asked in a conversation."""
    agent: Agent = _make(name, params)
    if converses(name):
        raise UserError(f"agent '{name}' is asked in a conversation", hint="run it on a benchmark")
    return agent


def make_conversing(name: str, params: Mapping[str, Value] | None = None) -> Conversing:
    """Return a fresh agent for one episode, one that is asked in a conversation; raises :class:`UserError`."""
    agent: Conversing = _make(name, params)
    if not converses(name):
        raise UserError(f"agent '{name}' cannot be asked in a conversation", hint="let it see the observation")
    return agent


def check_agent(name: str, params: Mapping[str, Value] | None = None, *, replay: bool = False) -> None:
    """Raise :class:`UserError` for an agent or parameters that no episode could be played with.

    A class says in ``needs`` which packages of which extras it is asked with; one that is missing raises too. An
    agent that loads something of its user's does so in ``prove``, unless its answers are only to be replayed: a
    run may have been sent by anybody, and must not decide what is imported here."""
    made = _make(name, params)
    for module, extra in getattr(made, "needs", ()):
        require(module, extra, f"agent '{name}'")
    if hasattr(made, "prove") and not replay:
        made.prove()


def _make(name: str, params: Mapping[str, Value] | None) -> Any:
    cls = agents.get(name)
    config = make_config(name, cls.Config, params or {})
    try:
        return cls(config)
    except TradeassayError:
        raise
    except Exception as error:
        raise UserError(
            f"agent '{name}' cannot be made", hint=f"its __init__ raised {own_fault(error)}"
        ) from error


def make_config(name: str, config: type[AgentConfig], params: Mapping[str, Value]) -> AgentConfig:
    """Return ``config`` filled from ``params``; raises :class:`UserError` naming the field that is wrong."""
    known = sorted(field.encode_name for field in msgspec.structs.fields(config))
    refuse_unknown(params, known, f"agent '{name}'", "parameter")
    return filled(config, params, f"agent '{name}'", hint="see: tradeassay agents")


def parameters(name: str) -> tuple[AgentParameter, ...]:
    """Return what can be set on an agent; raises :class:`UserError` for an unknown one."""
    found = []
    for field in msgspec.structs.fields(agents.get(name).Config):
        metas = (one for one in getattr(field.type, "__metadata__", ()) if isinstance(one, msgspec.Meta))
        described = next((meta.description for meta in metas if meta.description), "")
        default = None if field.default is msgspec.NODEFAULT else field.default
        kind = _kind(field.type)
        found.append(AgentParameter(name=field.encode_name, kind=kind, default=default, description=described))
    return tuple(found)


def _kind(annotation: Any) -> str:
    bare = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    if isinstance(bare, type):
        return bare.__name__
    return " or ".join("nothing" if part is type(None) else _kind(part) for part in get_args(bare))
