"""Replace a registered item through the public interface of a registry."""

from typing import Any

import pytest

from tradeassay.core.registry import Registry


def replace_registered(
    monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], name: str, item: Any
) -> None:
    """Make ``registry`` return ``item`` for ``name`` until the test ends."""
    original = registry.get

    def get(asked: str) -> Any:
        if registry.full_name(asked) == name:
            return item
        return original(asked)

    monkeypatch.setattr(registry, "get", get)
