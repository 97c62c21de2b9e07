"""How a model plays a benchmark: the contract of ``daily``, ``stockbench`` and ``ktdfin``.

A protocol object belongs to one episode. It holds what outlives a day (alias map, history of the agent's own
actions) and makes each day's dialogue. It does no input or output; the runner carries its questions to a model.
"""

from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np

from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import Dialogue, ToolSpec, schema_of_type
from tradeassay.core.orders import Decision
from tradeassay.core.registry import Registry


class ProtocolConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every protocol's configuration; every field has a default and moves the benchmark's version."""


class ModelProtocol(Protocol):
    """One episode's conversation rules."""

    Config: ClassVar[type[ProtocolConfig]]
    prompts: ClassVar[tuple[str, ...]]
    """Package-relative names of the prompt files; their hashes go into the manifest."""
    tools: ClassVar[tuple[ToolSpec, ...]] = ()
    """Everything that can be called at some stage; empty where the answers are texts."""
    shown: ClassVar[tuple[type[msgspec.Struct], type[msgspec.Struct]]]
    """The types of ``rules`` and ``observation`` in a question that is given as data."""

    def __init__(self, config: Any) -> None:
        """Take a ``Config``."""

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start an episode; all randomness (alias maps, samples) comes from ``rng``."""
        return None

    def dialogue(self, observation: Observation) -> Dialogue:
        """Return today's conversation; it ends in a decision, a failed one when no usable answer came."""
        ...

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Take note of a day that is over; also called for every recorded day when a run is resumed."""
        return None


protocols: Registry[type[ModelProtocol]] = Registry("protocol")


def question_schema(protocol: type[ModelProtocol]) -> dict[str, Any]:
    """Return the JSON schema of a question as data: what an agent over a pipe, HTTP or Python is sent."""
    from tradeassay.agents.foreign.conversation import Request  # not above: it loads the sandbox and all agents

    (asked, *parts), definitions = msgspec.json.schema_components(
        (Request, *protocol.shown), schema_hook=lambda _: {"type": "string"}, ref_template="#/$defs/{name}"
    )
    definitions["Request"]["properties"] |= dict(zip(("rules", "observation"), parts, strict=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **asked, "$defs": definitions}


def schema_of(kind: type) -> str:
    """Return the JSON schema of arguments as JSON text, without references, which some providers do not follow."""
    whole = schema_of_type(kind, schema_hook=lambda _: {"type": "string"})
    definitions = whole.get("$defs", {})
    return msgspec.json.encode(_inlined(whole, definitions)).decode()


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return {
        key: _inlined(item, definitions)
        for key, item in node.items()
        if key not in ("$defs", "title", "description")
    }
