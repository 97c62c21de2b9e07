"""A local model in a provider's place: the same wires as any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tradeassay.core.dialogue import AskModel
from tradeassay.core.errors import ModelError
from tradeassay.llm.attempt import Attempt, Provider
from tradeassay.llm.local.engine import Engine
from tradeassay.llm.local.files import find_local_model
from tradeassay.llm.local.settings import LocalSettings
from tradeassay.llm.model import Place
from tradeassay.llm.names import ModelName
from tradeassay.llm.params import ModelParams
from tradeassay.llm.tables.prices import Price
from tradeassay.llm.text_tools import TextToolsProvider
from tradeassay.llm.via_inspect.provider import KeylessProvider, open_provider


class LocalProvider:
    """Asks the engine through an inner provider, and stops it at the end."""

    def __init__(self, engine: Engine, inner: Provider) -> None:
        self._engine = engine
        self._inner = inner

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._inner.name

    async def attempt(self, request: AskModel, place: Place) -> Attempt:
        """Ask once."""
        return await self._inner.attempt(request, place)

    async def aclose(self) -> None:
        """Close the connection, then the engine."""
        await self._inner.aclose()
        await asyncio.to_thread(self._engine.close)


async def open_local(
    name: ModelName, params: ModelParams, price: Price | None, *, home: Path | None, settings: LocalSettings
) -> LocalProvider:
    """Load a model and connect to it.

    Raises :class:`UserError` when its file is missing and :class:`ModelError` when it cannot be loaded.
    """
    path = find_local_model(name, home)
    engine = await asyncio.to_thread(Engine, path, settings)
    try:
        opened = open_provider(
            name.full,
            params,
            price,
            served_as=f"openai-api/local/{path.stem}",
            base_url=engine.base_url,
            api_key=engine.key,
        )
        if isinstance(opened, KeylessProvider):
            raise ModelError(f"the engine of {name.full} was not reached: {opened.reason}", mend="report this")
        native = await asyncio.to_thread(engine.knows_tools)
    except BaseException:
        engine.close()
        raise
    return LocalProvider(engine, opened if native else TextToolsProvider(opened))
