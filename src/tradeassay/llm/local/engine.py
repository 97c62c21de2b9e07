"""The engine: llama.cpp inside this process, serving one model on loopback."""

from __future__ import annotations

import json
import secrets
import urllib.request
from pathlib import Path
from typing import Any

from tradeassay.core.errors import ModelError, require
from tradeassay.core.secrets import remember
from tradeassay.llm.local.settings import LocalSettings

LOOPBACK = "127.0.0.1"


class Engine:
    """A running server. It answers only on loopback and only to whoever knows its key.

    Raises :class:`MissingExtra` without the engine's package and :class:`ModelError` when the file cannot be
    loaded. Loading takes seconds to minutes and blocks.
    """

    def __init__(self, model: Path, settings: LocalSettings) -> None:
        xllamacpp: Any = require("xllamacpp", "local")
        self.key = secrets.token_hex(16)
        remember(self.key)
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = settings.context
        params.n_parallel = 1
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
                f"{model.name} cannot be loaded: {error}", mend="is it a model for llama.cpp?"
            ) from error
        self.base_url = f"{self._server.listening_address}/v1"

    def knows_tools(self) -> bool:
        """Tell whether the model's chat template has a place for tools; if not, they must be put into the text."""
        request = urllib.request.Request(
            f"{self._server.listening_address}/props", headers={"Authorization": f"Bearer {self.key}"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            template = json.load(response).get("chat_template")
        return isinstance(template, str) and "tools" in template

    def close(self) -> None:
        """Stop the server and free the model."""
        self._server = None
