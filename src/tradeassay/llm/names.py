"""What a model is called, and who serves it.

Names are Inspect's (``openai/gpt-5``, ``anthropic/claude-sonnet-4-5``, ``openai-api/<service>/<model>``), plus
``scripted/<name>`` for the programs of this house, ``local/<name>`` for a model fetched with ``models get`` and
``local//path/to/file.gguf`` for a file of one's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import UserError


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    """A model's name, taken apart. ``rest`` is what follows the first slash."""

    full: str
    route: Literal["scripted", "local", "inspect"]
    provider: str
    rest: str

    @property
    def gguf(self) -> Path | None:
        """The model file that the name points at, for ``local//path/to/file.gguf``."""
        return Path(self.rest) if self.route == "local" and self.rest.startswith("/") else None


def parse_name(name: str) -> ModelName:
    """Take a model's name apart; raises :class:`UserError` when it has no provider or no model."""
    provider, slash, rest = name.partition("/")
    if not slash or not provider or not rest or name != name.strip():
        raise UserError(
            f"'{name}' is no model name",
            mend="write provider/model, e.g. openai/gpt-5, scripted/sensible or local/smollm2",
        )
    if provider == "scripted":
        return ModelName(full=name, route="scripted", provider=provider, rest=rest)
    if provider == "local":
        return ModelName(full=name, route="local", provider=provider, rest=rest)
    return ModelName(full=name, route="inspect", provider=provider, rest=rest)
