"""Figures that a paper printed, as data beside its benchmark, and whether a result of ours compares with them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Generic, TypeVar

import msgspec

F = TypeVar("F", bound=msgspec.Struct)
P = TypeVar("P", bound=msgspec.Struct)


class Published(msgspec.Struct, Generic[F], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All figures and where they come from. ``second_hand``: not taken from the paper itself."""

    source: str
    second_hand: bool
    figure: tuple[F, ...]


class PrintedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a printed table. Shares are per cent, scores 0 to 10, as printed."""


class Comparability(msgspec.Struct, frozen=True, kw_only=True):
    """Whether two numbers may be compared; every reason why not."""

    comparable: bool
    reasons: tuple[str, ...]


def read_published(package: str, kind: type[P]) -> P:
    """Return the figures in a benchmark's ``published.toml``."""
    return msgspec.toml.decode((files(package) / "published.toml").read_bytes(), type=kind)


def unmet(checks: Iterable[tuple[bool, str]]) -> tuple[str, ...]:
    """Return the reasons of the conditions that do not hold."""
    return tuple(why for holds, why in checks if not holds)


def comparability(checks: Iterable[tuple[bool, str]]) -> Comparability:
    """Return a judgement from conditions, each with the reason that holds when it is not met."""
    reasons = unmet(checks)
    return Comparability(comparable=not reasons, reasons=reasons)
