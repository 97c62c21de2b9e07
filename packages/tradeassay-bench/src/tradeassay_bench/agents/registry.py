"""Register agents: the built-in rules and the user's own agents."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import msgspec

from tradeassay.core.arguments import check_keys, filled
from tradeassay.core.errors import TradeassayError, UserError, require
from tradeassay.core.registry import Registry
from tradeassay_bench.core.agent import Agent
from tradeassay_bench.core.drive import fault_in_user_code

if TYPE_CHECKING:
    from tradeassay_bench.llm import Model, RecordingStore

Value = float | int | str | bool
"""The type of a parameter on a command line or in a file."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of every agent's configuration.

    A field's ``Meta(description=...)`` is its documentation.
    """


class Registered(Protocol):
    """A registered class: a summary, a frozen ``Config`` and the methods of an agent.

    ``asked`` is the form of its questions. With ``"observation"``, the default, the class has
    ``begin`` and ``answer`` (see :class:`~tradeassay_bench.core.agent.Agent`) and sees the
    observation, like every rule. With ``"conversation"`` the class has ``open`` (see
    :class:`Conversing`) and receives the benchmark's questions to a language model.
    """

    summary: ClassVar[str]
    """A one-line description for ``tradeassay agents``."""
    Config: ClassVar[type[AgentConfig]]
    """The type of the parameters. Every field has a default."""

    def __init__(self, config: Any) -> None: ...


class AgentClass(Registered, Agent, Protocol):
    """A registered class whose agents see the observation."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments for opening an agent that is queried through a conversation.

    ``settings`` is the configuration of the benchmark's conversation, ``label`` the agent's name.
    ``benchmark`` is the benchmark's name as the agent sees it. Under a mask this is only the
    family, because an id may name a market and its years. ``salt`` determines the episode's name as
    the agent sees it.
    """

    benchmark: str
    label: str
    salt: str = ""
    settings: msgspec.Struct | None = None
    recording: RecordingStore | None = None
    replay: bool = False


class Conversing(Protocol):
    """An agent queried through the benchmark's conversation: a model or a foreign program."""

    asked: ClassVar[Literal["conversation"]]

    def open(self, opening: Opening) -> AbstractAsyncContextManager[Model]:
        """Return a context manager that opens the agent and closes it on exit."""
        ...


def _registration_error(_name: str, item: object) -> str | None:
    """Return the reason why an object cannot be registered as an agent, or None."""
    if not isinstance(item, type):
        return f"expected a class, got {item!r:.60}"
    if getattr(item, "asked", "observation") == "conversation":
        methods: tuple[str, ...] = ("open",)
    else:
        methods = ("begin", "answer")
    missing = [name for name in ("summary", "Config", *methods) if not hasattr(item, name)]
    missing += sorted(getattr(item, "__abstractmethods__", ()))
    return f"it has no {' and no '.join(missing)}" if missing else None


agents: Registry[type[Registered]] = Registry("agent", _registration_error)
"""All agents by name."""


class AgentParameter(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an agent's configuration, formatted for a listing."""

    name: str
    kind: str
    default: Value | None
    description: str


def converses(name: str) -> bool:
    """Return whether an agent is queried through the benchmark's conversation.

    Return False for an unknown agent.
    """
    return name in agents and getattr(agents.get(name), "asked", "observation") == "conversation"


def plays_alone(name: str) -> bool:
    """Return whether an agent can run without parameters.

    A rule can. An agent from a file cannot, because the parameters name its class.
    """
    return bool(getattr(agents.get(name), "plays_alone", True))


def make_agent(name: str, params: Mapping[str, Value] | None = None) -> Agent:
    """Return a new agent for one episode that sees the observation.

    Raises :class:`UserError` for an unknown agent or parameter (with similar names), for a value
    out of range, and for an agent that is queried through a conversation.
    """
    agent: Agent = _make(name, params)
    if converses(name):
        raise UserError(f"agent '{name}' needs a conversation", hint="run it on a benchmark")
    return agent


def make_conversing(name: str, params: Mapping[str, Value] | None = None) -> Conversing:
    """Return a new agent for one episode that is queried through a conversation.

    Raises :class:`UserError` for an unknown agent or parameter, for a value out of range, and for
    an agent that sees the observation.
    """
    agent: Conversing = _make(name, params)
    if not converses(name):
        raise UserError(
            f"agent '{name}' has no conversation",
            hint="use make_agent, which shows it the observation",
        )
    return agent


def check_agent(
    name: str, params: Mapping[str, Value] | None = None, *, replay: bool = False
) -> None:
    """Raise :class:`UserError` if an agent and its parameters cannot run an episode.

    An agent class lists in ``needs`` the packages it uses and their extras. A missing package is an
    error too. An agent that loads code of the user does so in ``prove``. With ``replay`` no code is
    loaded, because a recorded run may come from an untrusted sender and must not decide what is
    imported.
    """
    agent = _make(name, params)
    for module, extra in getattr(agent, "needs", ()):
        require(module, extra, f"agent '{name}'")
    if hasattr(agent, "prove") and not replay:
        agent.prove()


def _make(name: str, params: Mapping[str, Value] | None) -> Any:
    cls = agents.get(name)
    config = make_config(name, cls.Config, params or {})
    try:
        return cls(config)
    except TradeassayError:
        raise
    except Exception as error:
        raise UserError(
            f"agent '{name}' cannot be created",
            hint=f"its __init__ raised {fault_in_user_code(error)}",
        ) from error


def make_config(name: str, config: type[AgentConfig], params: Mapping[str, Value]) -> AgentConfig:
    """Return an agent's configuration with the given values.

    Raises :class:`UserError` that names an unknown or invalid parameter.
    """
    names = sorted(field.encode_name for field in msgspec.structs.fields(config))
    check_keys(params, names, f"agent '{name}'", "parameter")
    return filled(config, params, f"agent '{name}'", hint="see: tradeassay agents")


def parameters(name: str) -> tuple[AgentParameter, ...]:
    """Return an agent's parameters. Raises :class:`UserError` for an unknown agent."""
    listing = []
    for field in msgspec.structs.fields(agents.get(name).Config):
        description = ""
        for meta in getattr(field.type, "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                description = meta.description
                break
        listing.append(
            AgentParameter(
                name=field.encode_name,
                kind=_kind(field.type),
                default=None if field.default is msgspec.NODEFAULT else field.default,
                description=description,
            )
        )
    return tuple(listing)


def _kind(annotation: Any) -> str:
    """Return a description of a parameter's type."""
    if annotation is type(None):
        return "nothing"
    if hasattr(annotation, "__metadata__"):
        annotation = getattr(annotation, "__origin__", annotation)
    if isinstance(annotation, type):
        return annotation.__name__
    return " or ".join(_kind(part) for part in get_args(annotation))
