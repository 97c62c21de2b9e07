"""Define the interface of a protocol: the rules of the conversation between a benchmark and a
model.

``daily``, ``stockbench`` and ``ktdfin`` implement it. A protocol object belongs to one episode. It
contains the state that lasts longer than a day, such as the alias map and the history of the
agent's actions, and it creates each day's dialogue. A protocol does no I/O. The runner sends its
questions to a model.
"""

from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np

from tradeassay.core.registry import Registry
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import Dialogue, ToolSpec, schema_of_type
from tradeassay_bench.core.orders import Decision


class ProtocolConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of a protocol's configuration.

    Every field has a default. A change of a default needs a new version of the benchmark.
    """


class ModelProtocol(Protocol):
    """The rules of the conversation in one episode."""

    Config: ClassVar[type[ProtocolConfig]]
    prompts: ClassVar[tuple[str, ...]]
    """Package-relative names of the prompt files. The manifest records their hashes."""
    tools: ClassVar[tuple[ToolSpec, ...]] = ()
    """All tools of all stages. Empty for a protocol whose answers are texts."""
    shown: ClassVar[tuple[type[msgspec.Struct], type[msgspec.Struct]]]
    """The types of ``rules`` and ``observation`` in a question that is sent as data."""

    def __init__(self, config: Any) -> None:
        """Initialise the protocol with a ``Config``."""

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start an episode. All randomness, such as alias maps and samples, comes from ``rng``."""
        return None

    def dialogue(self, observation: Observation) -> Dialogue:
        """Return today's dialogue, which ends in a decision.

        The decision is failed if the model returned no usable answer.
        """
        ...

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Record a completed day. A resumed run calls it for every recorded day."""
        return None


protocols: Registry[type[ModelProtocol]] = Registry("protocol")


def question_schema(protocol: type[ModelProtocol]) -> dict[str, Any]:
    """Return the JSON schema of a question that is sent to an agent as data.

    Agents over a pipe, HTTP or Python receive their questions in this form.
    """
    # Imported here because it loads the sandbox and all agents.
    from tradeassay_bench.agents.foreign.conversation import Request

    (request, *parts), definitions = msgspec.json.schema_components(
        (Request, *protocol.shown),
        schema_hook=lambda _: {"type": "string"},
        ref_template="#/$defs/{name}",
    )
    definitions["Request"]["properties"] |= dict(zip(("rules", "observation"), parts, strict=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **request,
        "$defs": definitions,
    }


def schema_of(kind: type) -> str:
    """Return the JSON schema of a type as JSON text.

    References are replaced by their definitions, because some providers do not follow them.
    """
    schema = schema_of_type(kind, schema_hook=lambda _: {"type": "string"})
    definitions = schema.get("$defs", {})
    return msgspec.json.encode(_inlined(schema, definitions)).decode()


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    """Return a part of a schema with references replaced, and without titles and descriptions."""
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
