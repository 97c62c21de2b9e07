"""JSON under a mask: fields with identifiers or days are told by their names, all other texts are scrubbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
"""What JSON can hold. Tuples are taken for arrays."""

NAMED_FIELDS = frozenset(
    """
symbol symbols stock_id stock_ids ticker tickers asset assets alias aliases asset_id asset_ids
instrument instruments
""".split()
)
"""Fields that hold nothing but symbols: what comes in under them must be an asset. Compared in lower case."""
ASSET_FIELDS = NAMED_FIELDS | frozenset(
    "stock stocks universe members constituents held candidates into stale analyse analyze picks".split()
)
"""Fields whose texts may be symbols."""
KEYED_FIELDS = ASSET_FIELDS | frozenset(
    """
marks positions holdings grid target_weights weights decisions notes sellable locked prices names
by_symbol by_asset
""".split()
)
"""Fields that hold an object whose keys may be symbols."""
DAY_FIELDS = frozenset(
    """
date day days dates session sessions as_of as_of_date data_cutoff cutoff since until start end first last from to
ex_date period_end expiry listed delisted time times timestamp datetime clock now published_at known_at decided_at
fetched_at current_date trade_date calendar report_date start_date end_date
""".split()
)
"""Fields whose texts are days or instants, and whose whole numbers above 10^17 are instants in nanoseconds."""

_FIELD_NAMES = KEYED_FIELDS | DAY_FIELDS


class FieldRules(msgspec.Struct, frozen=True):
    """What is done to a symbol, a day, an instant, any other text, and to a number where a symbol belongs.

    ``is_symbol`` tells what counts as a symbol when it is a key; ``certain`` the same without ordinary words.
    """

    asset: Callable[[str, str], str]
    number: Callable[[float], Json]
    day: Callable[[str], str]
    instant: Callable[[int], Json]
    text: Callable[[str], str]
    is_symbol: Callable[[str], bool]
    certain: Callable[[str], bool]


def walk(value: Json, rules: FieldRules, field: str = "") -> Json:
    """Return a JSON value with every text in it treated by the rules of the field it stands in."""
    if isinstance(value, str):
        if field in ASSET_FIELDS:
            return rules.asset(value, field)
        return rules.day(value) if field in DAY_FIELDS else rules.text(value)
    if isinstance(value, Mapping):
        return _walk_mapping(value, rules, field)
    if isinstance(value, list | tuple):
        return [walk(item, rules, field) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if field in NAMED_FIELDS:
        return rules.number(value)
    return rules.instant(value) if isinstance(value, int) and field in DAY_FIELDS and value > 10**17 else value


def _walk_mapping(value: Mapping[str, Json], rules: FieldRules, field: str) -> Json:
    keyed = bool(value) and (field in KEYED_FIELDS or all(map(rules.is_symbol, value)))
    result: dict[str, Json] = {}
    for key, item in value.items():
        if (keyed and rules.is_symbol(key)) or rules.certain(key):
            shown = rules.asset(key, "symbol")
        else:
            shown = key if key.lower() in _FIELD_NAMES else rules.text(key)
        result[shown] = walk(item, rules, key.lower())
    return result
