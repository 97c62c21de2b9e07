"""The twelve strategies for a reader: lines of a list, a doc, frozen semantics, a reference to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.code.scores.paper import complexity
from tradeassay.code.semantics.model import semantics_schema
from tradeassay.code.submission import CARD, CODE, card_schema, write_submission
from tradeassay.core.errors import UserError


class StrategyLine(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy in a list; ``sha256`` is that of its frozen semantics."""

    id: str
    title: str
    legs: str
    timeframes: str
    complexity: float
    sha256: str


def strategy_lines() -> tuple[StrategyLine, ...]:
    """Return all strategies, in the benchmark's order."""
    found = []
    for name in STRATEGIES:
        semantics = load_spec(name).semantics
        found.append(
            StrategyLine(
                id=name,
                title=semantics.title,
                legs=", ".join(semantics.inputs.legs),
                timeframes=", ".join(semantics.inputs.timeframes),
                complexity=complexity(semantics),
                sha256=semantics.sha256,
            )
        )
    return tuple(found)


def strategy_text(name: str, *, semantics: bool = False) -> str:
    """Return a strategy's doc or its frozen semantics; raises :class:`UserError` for an unknown name."""
    spec = load_spec(name)
    if semantics:
        return msgspec.json.format(spec.semantics.canonical, indent=2).decode()
    return spec.doc.strip()


def write_reference(name: str, folder: Path) -> None:
    """Write the reference submission into a folder; raises :class:`UserError` rather than overwrite one."""
    reference = load_reference(name)
    for file in (CODE, CARD):
        if (folder / file).exists():
            raise UserError(f"{folder / file} is there already", mend="name an empty folder")
    write_submission(reference, folder)


def schema_text(what: Literal["card", "semantics"]) -> str:
    """Return a JSON schema."""
    schema = card_schema() if what == "card" else semantics_schema()
    return msgspec.json.format(schema, indent=2).decode()
