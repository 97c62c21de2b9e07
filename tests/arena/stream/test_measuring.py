"""Experts judge items, and their verdicts are counted."""

import pytest
from msgspec.structs import asdict, replace
from tests.arena.stream.stand_ins import raw

from tradeassay.core.errors import UserError
from tradeassay_arena.rounds.feed import PlannedSession
from tradeassay_arena.season import Asset, Entry, Season
from tradeassay_arena.stream import RawItem, confirm, item_page, quality
from tradeassay_arena.stream.items import StreamItem
from tradeassay_arena.stream.record import StreamStore
from tradeassay_bench.core.time import parse_iso


def on_record(item: RawItem) -> StreamItem:
    kept = {
        "season": "s",
        "session": "2025-04-01",
        "raw_id": "0",
        "content_sha256": "0" * 64,
        "language": "en",
    }
    return StreamItem(**asdict(item), **kept, status="published", summary_by="extractive")


@pytest.fixture
def store(store):
    asset = Asset(symbol="ACME", kind="stock", dataset="synthetic/us:7")
    season = Season(
        id="s", assets=(asset,), entries=(Entry(id="a", architecture="rule"),), first="2025-04-01"
    )
    store.create_season(season, "2025-04-01T00:00:00Z")
    at, day = "2025-04-01T20:00:00Z", "2025-04-01"
    one = on_record(raw("i", published_at=at, fetched_at=at, title="T", text="X"))
    added = [replace(one, id=f"i{n}") for n in range(4)]
    added[3] = replace(added[3], status="merged", merged_into="i0", source="Talk")
    due = PlannedSession(at=parse_iso(at), place=0, asset="ACME", session=day)
    StreamStore(store, "s").write(due, added, ())
    return store


def test_experts_confirm_and_their_agreement_is_reported(store):
    told = [("i0", "cc"), ("i1", "cc"), ("i2", "rr"), ("i3", "cr")]
    for item, verdicts in told:
        for expert, verdict in zip(("Ada", "Ben"), verdicts, strict=True):
            confirm(
                store,
                item,
                expert,
                "confirm" if verdict == "c" else "reject",
                at="2025-04-02T00:00:00Z",
            )
    found = quality(store, "s")
    assert (found.reviewed, found.experts) == (4, 2)
    assert found.agreement.value == pytest.approx(
        8 / 15
    )  # worked by hand in tests/tradeassay/metrics/test_ranks.py
    assert found.confirmed.value == pytest.approx(5 / 8) and found.merged.value == 0.25
    fates = [(s["source"], s["published"], s["merged"]) for s in found.sources]
    assert fates == [("Talk", 0, 1), ("Wire", 3, 0)]


def test_a_second_verdict_replaces_the_first_and_nonsense_is_refused(store):
    confirm(store, "i0", "Ada", "confirm")
    confirm(store, "i0", "Ada", "reject", note="the date is wrong")
    (review,) = item_page(store, "s", "i0").reviews
    assert (review.verdict, review.note) == ("reject", "the date is wrong")
    for item, expert, verdict in (
        ("nope", "Ada", "confirm"),
        ("i0", "", "confirm"),
        ("i0", "Ada", "maybe"),
    ):
        with pytest.raises(UserError):
            confirm(store, item, expert, verdict)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="has no item"):
        item_page(store, "s", "nope")
