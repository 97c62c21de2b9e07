"""Which column means what, how files are requested, and what was understood.

A column's meaning is guessed from its name, shown to the user, and overruled by the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import chain

import msgspec

from tradeassay.core.errors import UserError

_ROLES = tuple("date time symbol open high low close adj_close volume amount status ignore".split())
"""``time`` is a time of day beside ``date``; ``status`` is 1 (trading) or 0 (suspended)."""

TITLES = msgspec.json.decode(
    (files(__package__) / "titles.json").read_bytes(), type=dict[str, dict[str, tuple[str, ...]]]
)
"""What columns of several kinds of table are called, also in other languages, the surest title first."""
DATE_TITLES = TITLES["account"]["dates"]
"""Plain titles of an account's column of days."""
_ALL_TITLES = {title for roles in TITLES.values() for title in chain(*roles.values())}
FOREIGN_TITLES = frozenset(title for title in _ALL_TITLES if not title.isascii())
"""Titles that tell in which encoding they were written."""


def plain_title(title: str) -> str:
    """Return a title in small letters, with single blanks; empty for one that a program made up."""
    words = re.sub(r"[_\-]+", " ", title.strip().strip("\ufeff").lower())
    return "" if re.match(r"unnamed|column\d+$", words) else re.sub(r"\s+", " ", words)


def bare_title(title: str) -> str:
    """Return a plain title without its unit: ``Return (%)`` is ``return``."""
    return re.sub(r"\(.*?\)|\[.*?\]|[%,]|\b(bps|pct|percent)\b", "", plain_title(title)).strip()


class ColumnMap(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a file's columns. ``roles`` maps a role to its column; ``unused`` are the rest."""

    roles: dict[str, str]
    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        known = ", ".join(f"{role}={name}" for role, name in self.roles.items())
        return known + (f"; unused: {', '.join(self.unused)}" if self.unused else "")


def guess_columns(
    names: Sequence[str], file: str, given: Mapping[str, str] | None = None
) -> ColumnMap:
    """Return what a file's columns mean; ``given`` (role to column) wins over every guess. UserError without date
    or close."""
    roles: dict[str, str] = {}
    for role, name in (given or {}).items():
        if role not in _ROLES:
            raise UserError(f"'{role}' is not a column role", hint=f"one of {', '.join(_ROLES)}")
        if name not in names:
            raise UserError(f"{file} has no column '{name}'", hint=f"it has {_listed(names)}")
        roles[role] = name
    by_plain = {_plain(name): name for name in reversed(names)}
    for role, candidates in TITLES["bars"].items():
        if role in roles:
            continue
        for candidate in candidates:
            found = by_plain.get(_plain(candidate))
            if found is not None and found not in roles.values():
                roles[role] = found
                break
    if "close" not in roles and "adj_close" in roles:
        roles["close"] = roles.pop("adj_close")
    missing = [role for role in ("date", "close") if role not in roles]
    if not any(name.strip().isprintable() and name.strip() for name in names):
        raise UserError(
            f"{file}: its first line holds no title of a column",
            hint="give a table of bars, as text",
        )
    if missing:
        raise UserError(
            f"{file}: no column for {' and '.join(missing)} among {_listed(names)}",
            hint=f"say which, e.g. columns={{'{missing[0]}': 'NAME'}}; for a file without header list all, "
            "e.g. header=('date', 'open', 'high', 'low', 'close', 'volume')",
        )
    ordered = {role: roles[role] for role in _ROLES if role in roles}
    return ColumnMap(
        roles=ordered, unused=tuple(name for name in names if name not in ordered.values())
    )


def parse_columns(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read ``--columns``: ``close=Last,volume=Vol`` is a mapping, ``date,open,...`` names the columns."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    pairs = [part.split("=", 1) for part in parts if "=" in part]
    if pairs and len(pairs) == len(parts):
        return {role.strip(): name.strip() for role, name in pairs}, ()
    if pairs:
        problem = f"--columns '{text}' mixes names and pairs"
        raise UserError(problem, hint="write role=NAME for every part, or none")
    unknown = [part for part in parts if part not in _ROLES]
    if unknown or not parts:
        problem = f"'{unknown[0] if unknown else text}' is not a column role"
        raise UserError(problem, hint=f"one of {', '.join(_ROLES)}")
    return {}, tuple(parts)


def _plain(name: str) -> str:
    return name.strip().strip("<>[]\"'").lower().replace(" ", "_").replace("-", "_")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
