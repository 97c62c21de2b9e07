"""Models that run on this machine: a file, an engine, and a loopback server that speaks a provider's protocol."""

from __future__ import annotations

from tradeassay.llm.local.files import LocalModel, find_local_model, get_local_model, local_models, models_folder

__all__ = ["LocalModel", "find_local_model", "get_local_model", "local_models", "models_folder"]
