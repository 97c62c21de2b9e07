"""The twelve strategies as files: frozen semantics, Strategy Doc, reference, card, micro-scenarios and mutants."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from tradeassay.benchmarks.systrade.scenario_file import read_scenarios
from tradeassay.code.gates.spec import StrategySpec
from tradeassay.code.semantics import Semantics, check_semantics, read_semantics
from tradeassay.code.submission import Submission
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.near import did_you_mean

STRATEGIES: Final = (
    "bollinger",
    "double-ma",
    "turtle",
    "dual-thrust",
    "r-breaker",
    "spread",
    "calendar-spread",
    "index-enhancement",
    "cross-asset-momentum",
    "vol-target",
    "pairs",
    "rsi-macd",
)
"""The benchmark's strategies, in its order."""


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The hashes that pin one strategy: of its canonical semantics, its doc and its scenarios."""

    semantics: str
    doc: str
    scenarios: str


def load_semantics(id: str) -> Semantics:
    """Return a strategy's frozen semantics; raises :class:`UserError` for an unknown name."""
    return load_spec(id).semantics


@cache
def load_spec(id: str) -> StrategySpec:
    """Return what submissions to a strategy are held against; raises :class:`UserError` for an unknown name."""
    folder = _folder(id)
    semantics = read_semantics(folder.joinpath("semantics.json").read_bytes(), f"{id}/semantics.json")
    check_semantics(semantics)
    scenarios = read_scenarios(folder.joinpath("scenarios.json").read_bytes(), semantics)
    return StrategySpec(semantics, folder.joinpath("doc.md").read_text(encoding="utf-8"), scenarios)


def load_reference(id: str) -> Submission:
    """Return the reference implementation as a submission; raises :class:`UserError` for an unknown name."""
    folder = _folder(id)
    source = f"{bookkeeping()}\n\n{folder.joinpath('reference.py.txt').read_text(encoding='utf-8')}"
    card = folder.joinpath("card.json").read_text(encoding="utf-8")
    return Submission(source=source, card=card, name=f"reference {id}")


def bookkeeping() -> str:
    """Return the part that all references share: comparisons, windows, and a book that keeps both logs."""
    return files(__package__).joinpath("bookkeeping.py.txt").read_text(encoding="utf-8")


def load_interface() -> str:
    """Return the page that tells what a submission is: its files, its logs, and what is asked of the code."""
    return files(__package__).joinpath("interface.md").read_text(encoding="utf-8")


def read_lock() -> dict[str, Locked]:
    """Return the pinned hashes by strategy."""
    body = files(__package__).joinpath("lock.json").read_bytes()
    return msgspec.json.decode(body, type=dict[str, Locked])


def hashes(id: str) -> Locked:
    """Return the hashes of a strategy's files as they are now, to be compared with the lock."""
    folder = _folder(id)
    semantics = read_semantics(folder.joinpath("semantics.json").read_bytes(), f"{id}/semantics.json")
    return Locked(
        semantics=semantics.sha256,
        doc=sha256_bytes(folder.joinpath("doc.md").read_bytes()),
        scenarios=sha256_bytes(folder.joinpath("scenarios.json").read_bytes()),
    )


def _folder(id: str) -> Traversable:
    if id not in STRATEGIES:
        mend = did_you_mean(id, STRATEGIES, f"one of {', '.join(STRATEGIES)}")
        raise UserError(f"no strategy '{id}'", mend=mend)
    return files(__package__).joinpath("strategies", id.replace("-", "_"))
