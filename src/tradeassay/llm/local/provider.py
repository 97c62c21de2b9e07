"""A local model in a provider's place: llama.cpp inside this process, serving one model on loopback."""

from __future__ import annotations

import asyncio
import json
import secrets
import urllib.request
from pathlib import Path
from typing import Any

from tradeassay.core.dialogue import AskModel
from tradeassay.core.errors import ModelError, require
from tradeassay.core.secrets import remember
from tradeassay.llm.local.files import LocalSettings, find_local_model
from tradeassay.llm.model import Attempt, ModelName, ModelParams, Provider, QuestionPlace
from tradeassay.llm.tables import Price
from tradeassay.llm.text_tools import TextToolsProvider
from tradeassay.llm.via_inspect.provider import KeylessProvider, open_provider

LOOPBACK = "127.0.0.1"


class Engine:
    """A running server. It answers only on loopback and only to callers that know its key.

    Raises :class:`MissingExtra` without the engine's package and :class:`ModelError` when the file cannot be
    loaded. Loading takes seconds to minutes and blocks.
    """

    def __init__(self, model: Path, settings: LocalSettings) -> None:
        xllamacpp: Any = require("xllamacpp", "local")
        self.key = secrets.token_hex(16)
        remember(self.key)
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = settings.context * settings.parallel  # the slots share it evenly
        params.n_parallel = settings.parallel
        params.cont_batching = True
        params.cache_prompt = True
        params.cpuparams.n_threads = settings.threads
        params.cpuparams_batch.n_threads = settings.threads
        params.hostnames = [LOOPBACK]
        params.port = 0
        params.api_keys = [self.key]
        params.endpoint_props = True
        params.ui = False
        params.offline = True
        params.verbosity = 0
        try:
            self._server: Any = xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"{model.name} cannot be loaded: {error}", hint="is it a model for llama.cpp?"
            ) from error
        self.base_url = f"{self._server.listening_address}/v1"

    def close(self) -> None:
        """Stop the server and free the model."""
        self._server = None


def knows_tools(base_url: str, key: str) -> bool:
    """Tell whether the model's chat template has a place for tools; if not, they must be put into the text.

    A server that does not show its template is taken to have a place for them.
    """
    address = base_url.removesuffix("/").removesuffix("/v1") + "/props"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            shown = json.load(response)
    except (OSError, ValueError):
        return True
    template = shown.get("chat_template") if isinstance(shown, dict) else None
    return not isinstance(template, str) or "tools" in template


class LocalProvider:
    """Asks the engine through an inner provider, and stops it at the end."""

    def __init__(self, engine: Engine, inner: Provider) -> None:
        self._engine = engine
        self._inner = inner

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._inner.name

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Ask once."""
        return await self._inner.attempt(request, place)

    async def aclose(self) -> None:
        """Close the connection, then the engine."""
        await self._inner.aclose()
        await asyncio.to_thread(self._engine.close)


async def open_local(
    name: ModelName, params: ModelParams, price: Price | None, *, home: Path | None, settings: LocalSettings
) -> Provider:
    """Load a model and connect to it, or connect to the server that has it loaded.

    Raises :class:`UserError` when its file is missing and :class:`ModelError` when it cannot be loaded or reached.
    """
    if settings.server is not None:
        return await _connected(name, params, price, settings.server, "none", Path(name.rest).stem)
    path = find_local_model(name, home)
    engine = await asyncio.to_thread(Engine, path, settings)
    try:
        return LocalProvider(engine, await _connected(name, params, price, engine.base_url, engine.key, path.stem))
    except BaseException:
        engine.close()
        raise


async def _connected(
    name: ModelName, params: ModelParams, price: Price | None, base_url: str, key: str, served: str
) -> Provider:
    opened = open_provider(
        name.full, params, price, served_as=f"openai-api/local/{served}", base_url=base_url, api_key=key
    )
    if isinstance(opened, KeylessProvider):
        raise ModelError(f"the server of {name.full} was not reached: {opened.reason}", hint="report this")
    native = await asyncio.to_thread(knows_tools, base_url, key)
    return opened if native else TextToolsProvider(opened)
