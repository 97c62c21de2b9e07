"""Mutants: references with one fault each, and the gate that has to reject them. They test the harness itself."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import msgspec

from tradeassay.benchmarks.systrade.loading import load_reference
from tradeassay.code.gates.result import GateName
from tradeassay.code.submission import Submission
from tradeassay.core.errors import UserError


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replace ``old``, which stands exactly once in the source, by ``new``; in the card with ``card``."""

    old: str
    new: str
    card: bool = False


class Mutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault. ``kind`` names it in the words of the benchmark, ``gate`` is the first that fails."""

    name: str
    kind: str
    gate: GateName
    edits: tuple[Edit, ...]


def load_mutants(id: str) -> tuple[Mutant, ...]:
    """Return a strategy's own mutants, then those that are made of every reference."""
    root = files(__package__)
    own = root.joinpath("strategies", id.replace("-", "_"), "mutants.toml").read_text(encoding="utf-8")
    shared = root.joinpath("mutants.toml").read_text(encoding="utf-8")
    return (*_read(own), *_read(shared))


def mutate(id: str, mutant: Mutant) -> Submission:
    """Return the reference with the mutant's fault; raises :class:`UserError` when an edit does not fit."""
    reference = load_reference(id)
    source, card = reference.source, reference.card
    for edit in mutant.edits:
        text = card if edit.card else source
        if text.count(edit.old) != 1:
            raise UserError(
                f"mutant '{mutant.name}' of '{id}' looks for {edit.old!r}, found {text.count(edit.old)} times"
            )
        if edit.card:
            card = text.replace(edit.old, edit.new)
        else:
            source = text.replace(edit.old, edit.new)
    return Submission(source=source, card=card, name=f"{id}, {mutant.name}")


def _read(text: str) -> tuple[Mutant, ...]:
    return msgspec.convert(tomllib.loads(text)["mutants"], type=tuple[Mutant, ...])
