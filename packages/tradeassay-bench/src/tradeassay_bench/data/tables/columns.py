"""Determine the roles of the columns in a table of bars.

A column's role is guessed from its name and shown to the user, who can override it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.tables.columns import TITLES

_ROLES = tuple("date time symbol open high low close adj_close volume amount status ignore".split())
"""The roles of columns. ``time`` is a time of day in addition to ``date``. ``status`` is 1
(trading) or 0 (suspended).
"""


class ColumnMap(msgspec.Struct, frozen=True, kw_only=True):
    """The roles of a file's columns.

    ``roles`` maps roles to columns. ``unused`` lists the columns without a role.
    """

    roles: dict[str, str]
    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        known = ", ".join(f"{role}={name}" for role, name in self.roles.items())
        return known + (f"; unused: {', '.join(self.unused)}" if self.unused else "")


def guess_columns(
    names: Sequence[str], file: str, given: Mapping[str, str] | None = None
) -> ColumnMap:
    """Return the roles of a file's columns.

    ``given`` maps roles to columns and overrides every guess. Raises UserError if there is no
    column for the date or the close.
    """
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
            f"{file}: its first line contains no column name",
            hint="use a table of bars, as text",
        )
    if missing:
        raise UserError(
            f"{file}: no column for {' and '.join(missing)} among {_listed(names)}",
            hint=f"name it, e.g. columns={{'{missing[0]}': 'NAME'}}; for a file without header "
            "list all columns, "
            "e.g. header=('date', 'open', 'high', 'low', 'close', 'volume')",
        )
    ordered = {role: roles[role] for role in _ROLES if role in roles}
    return ColumnMap(
        roles=ordered, unused=tuple(name for name in names if name not in ordered.values())
    )


def parse_columns(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the value of ``--columns`` as a mapping and a header. One of them is empty.

    ``close=Last,volume=Vol`` is a mapping. ``date,open,...`` is a header that names all columns.
    """
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
