"""Put another thing in the place of a registered one, through what a registry offers to everybody."""

from typing import Any

import pytest

from tradeassay.core.registry import Registry


def replace_registered(
    monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], name: str, item: Any
) -> None:
    """Let ``registry`` answer ``item`` to those who ask for ``name``, until the test ends."""
    original = registry.get

    def get(asked: str) -> Any:
        if registry.full_name(asked) == name:
            return item
        return original(asked)

    monkeypatch.setattr(registry, "get", get)
