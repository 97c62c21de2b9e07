"""The models that are known by name: scripted ones, priced ones, local ones."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.llm import find_local_model, load_cutoffs, load_prices, local_models, parse_name, scripted_models


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model, its price per million tokens and its knowledge cutoff. None means "unknown"."""

    name: str
    kind: Literal["scripted", "local", "provider"]
    note: str
    input_usd: float | None = None
    output_usd: float | None = None
    price_as_of: date | None = None
    cutoff: date | None = None

    def price_words(self) -> str:
        """Return the price, or that it is unknown."""
        if self.input_usd is None or self.output_usd is None:
            return "price unknown"
        free = self.input_usd == 0 and self.output_usd == 0
        return "free" if free else f"{self.input_usd:g} / {self.output_usd:g} ({self.price_as_of})"

    def cutoff_words(self) -> str:
        """Return the cutoff, or that it is unknown."""
        if self.kind == "scripted":
            return "nothing"
        return "unknown" if self.cutoff is None else str(self.cutoff)


def known_models(*, prices: Path | None = None, home: Path | None = None) -> tuple[ModelInfo, ...]:
    """Return every model that is known here: scripted, then local, then those in the tables."""
    priced, cutoffs = load_prices(prices), load_cutoffs()
    found = [
        ModelInfo(name=f"scripted/{name}", kind="scripted", note=model.summary, input_usd=0.0, output_usd=0.0)
        for name, model in scripted_models.items()
    ]
    for name, local in local_models.items():
        cutoff = cutoffs.of(f"local/{name}")
        found.append(
            ModelInfo(
                name=f"local/{name}",
                kind="local",
                note=f"{local.title}; {_whether_here(name, home)}",
                input_usd=0.0,
                output_usd=0.0,
                cutoff=None if cutoff is None else cutoff.last_day,
            )
        )
    for name in sorted({*priced.prices, *cutoffs.cutoffs}):
        if name.endswith("/*") or name.startswith(("local/", "scripted/")):
            continue
        price, cutoff = priced.of(name), cutoffs.of(name)
        found.append(
            ModelInfo(
                name=name,
                kind="provider",
                note="" if price is None else price.source,
                input_usd=None if price is None else price.input,
                output_usd=None if price is None else price.output,
                price_as_of=None if price is None else price.as_of,
                cutoff=None if cutoff is None else cutoff.last_day,
            )
        )
    return tuple(found)


def _whether_here(name: str, home: Path | None) -> str:
    try:
        find_local_model(parse_name(f"local/{name}"), home)
    except UserError:
        return f"not here: tradeassay models get {name}"
    return "on this machine"
