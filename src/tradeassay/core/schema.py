"""JSON schemas as models and servers are sent them: the same bytes whatever else a process has imported.

``Annotated[float, Meta(ge=0, le=1)]`` and ``Annotated[float, Meta(ge=0.0, le=1.0)]`` are equal to ``typing``,
which keeps whichever a process made first; msgspec then writes that one's bounds, as ``0`` or as ``0.0``. A
question holds the schema of its answer, and an answer is found again by the hash of its question, so whole bounds
are written one way.
"""

from __future__ import annotations

from typing import Any

import msgspec

_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))


def schema_of_type(kind: Any, **options: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; ``options`` are those of :func:`msgspec.json.schema`."""
    settled: dict[str, Any] = _settled(msgspec.json.schema(kind, **options))
    return settled


def schema_text(kind: Any) -> str:
    """Return the JSON schema of a type as JSON text."""
    return msgspec.json.encode(schema_of_type(kind)).decode()


def _settled(node: Any) -> Any:
    """Return a schema whose whole bounds are integers; everything else stays as it is, defaults included."""
    if isinstance(node, list | tuple):
        return [_settled(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _whole(item) if key in _BOUNDS else _settled(item) for key, item in node.items()}


def _whole(bound: Any) -> Any:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else _settled(bound)
