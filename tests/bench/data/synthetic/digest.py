"""One number for a whole panel: equal worlds, equal digest.

Run as a script it prints those of its arguments.
"""

import hashlib
import sys
from collections.abc import Iterator

import msgspec
import numpy as np

from tradeassay_bench.data.source import MinutePanel, Panel
from tradeassay_bench.data.synthetic import MinuteConfig, generate, generate_minutes, preset

SMALL = {"us": (30, 160), "ashare": (40, 160), "crypto": (12, 160)}


def _feed(total: "hashlib._Hash", name: str, array: np.ndarray) -> None:
    total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
    total.update(np.ascontiguousarray(array).tobytes())


def digest_minutes(minutes: MinutePanel) -> str:
    total = hashlib.sha256()
    _feed(total, "close_time", minutes.close_time)
    for name, values in sorted(minutes.bars.items()):
        _feed(total, name, values)
    return total.hexdigest()


LISTED = "symbol name kind board sector currency lot step tick multiplier expiry root".split()


def _records(panel: Panel) -> Iterator[tuple[object, ...]]:
    """Every record as a tuple of named fields, so that a new field with a default leaves the
    digest alone.
    """
    for entry in panel.listings:
        yield (*(getattr(entry.instrument, name) for name in LISTED), entry.listed, entry.delisted)
    for action in panel.actions:
        yield action.symbol, action.kind, action.ex_date, action.known_at, action.value
    for member in panel.memberships:
        yield member.index, member.symbol, member.start, member.end
    for figure in panel.fundamentals:
        yield figure.symbol, figure.field, figure.period_end, figure.known_at, figure.value
    for item in panel.news:
        yield item.id, item.published_at, item.symbols, item.title, item.body, item.source, item.url


def digest(panel: Panel) -> str:
    total = hashlib.sha256()
    for name, values in sorted({**panel.bars, **panel.indices}.items()):
        _feed(total, name, values)
    _feed(total, "suspended", panel.suspended)
    _feed(total, "sessions", panel.sessions.astype("<i8"))
    _feed(total, "open", panel.open_time)
    total.update(msgspec.json.encode(list(_records(panel))))
    if panel.minutes is not None:
        total.update(digest_minutes(panel.minutes).encode())
    return total.hexdigest()


def small(name: str, seed: int) -> Panel:
    names, sessions = SMALL[name]
    minutes = 2 if name in ("us", "ashare") else 0
    return generate(preset(name, seed=seed, names=names, sessions=sessions, minutes=minutes)).panel


def digests() -> dict[str, str]:
    found = {f"{name}:{seed}": digest(small(name, seed)) for name in SMALL for seed in (7, 8)}
    found["minutes:7"] = digest_minutes(generate_minutes(MinuteConfig(seed=7, minutes=50_000)))
    return found


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(digests()).decode())
