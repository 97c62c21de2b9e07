"""Did the card change what it says? Core logic by hash, parameters within tolerances, constraints as they are."""

from __future__ import annotations

import msgspec

from tradeassay.code.semantics import Semantics
from tradeassay.code.submission import StrategyCard

_NUMERIC = 1e-6
"""A float parameter that differs by less is the same number written differently."""


def card_changes(first: StrategyCard, patched: StrategyCard, semantics: Semantics) -> tuple[str, ...]:
    """Return what a patched card says otherwise than the first one; empty when both mean the same.

    A change back to the frozen value of a parameter or constraint is no change: the first card was wrong.
    """
    found: list[str] = []
    if first.core_sha256 != patched.core_sha256:
        found += _core(first, patched)
    for name in sorted(set(first.parameters) | set(patched.parameters)):
        frozen = semantics.parameters.get(name)
        before, after = first.parameters.get(name), patched.parameters.get(name)
        if before == after or (frozen is not None and after == frozen.value):
            continue
        if frozen is None and after is None:
            continue  # a name that the strategy does not have is gone
        room = max(frozen.tolerance, 0.0 if frozen.kind == "int" else _NUMERIC) if frozen is not None else 0.0
        if before is None or after is None or abs(before - after) > room:
            found.append(f"parameter '{name}': {_shown(before)} became {_shown(after)}")
    said, says = msgspec.to_builtins(first.constraints), msgspec.to_builtins(patched.constraints)
    frozen_limits = msgspec.to_builtins(semantics.constraints)
    for name, value in says.items():
        if value not in (said[name], frozen_limits.get(name)):
            found.append(f"constraint '{name}': {said[name]} became {value}")
    return tuple(found)


def _core(first: StrategyCard, patched: StrategyCard) -> list[str]:
    named = [name for name, text in patched.core_logic.items() if text != first.core_logic[name]]
    for name in ("strategy", "version", "execution", "legs"):
        if getattr(first, name) != getattr(patched, name):
            named.append(name)
    return [f"core logic: '{name}' was rewritten" for name in named]


def _shown(value: float | None) -> str:
    return "nothing" if value is None else f"{value:g}"
