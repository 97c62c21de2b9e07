"""What the checks are worth is measured on what ships, and experts have a word."""

from __future__ import annotations

import pytest

from tradeassay.arena.rounds.feed import Due
from tradeassay.arena.season import Asset, Entry, Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream import confirm, item_page, labelled_items, measure_checks, quality
from tradeassay.arena.stream.editing import Edition
from tradeassay.arena.stream.items import RawItem, StreamItem, clean
from tradeassay.arena.stream.store import write_edition
from tradeassay.arena.stream.summary import extract
from tradeassay.core.errors import UserError
from tradeassay.core.time import parse_iso


def test_the_labelled_set_is_large_enough_and_labelled() -> None:
    found = labelled_items()
    summaries = [item for item in found if item.summary is not None]
    assert len(summaries) >= 200 and len(found) >= 300
    assert {item.part for item in found} == {"development", "held-out"}
    assert sum(item.story.language == "zh" for item in found) >= 50
    assert len({item.story.id for item in found}) == 34
    assert len({(item.story.id, (item.summary or item.twin).text) for item in found}) == len(found)  # type: ignore[union-attr]


def test_precision_and_recall_add_up_and_are_not_worse_than_printed() -> None:
    """Floors a little below what was measured: a change that makes a check worse must say so here."""
    floors = {
        "numbers": (0.90, 0.80), "dates": (0.85, 0.95), "names": (0.80, 0.85), "neutrality": (0.95, 0.60),
        "language": (1.0, 1.0), "duplicate": (0.95, 0.45), "contradiction": (0.85, 0.60),
        "rejection": (0.90, 0.75),
    }  # fmt: skip
    for found in measure_checks():
        assert found.faults - found.caught == sum(miss.kind == "missed" for miss in found.misses)
        assert found.alarms - found.caught == sum(miss.kind == "false alarm" for miss in found.misses)
        if found.part == "held-out":
            precision, recall = floors[found.check]
            assert found.precision.value is not None and found.precision.value >= precision, found.check
            assert found.recall.value is not None and found.recall.value >= recall, found.check
            assert found.recall.low is not None and found.recall.low <= found.recall.value


def test_an_extract_of_any_source_passes_the_checks_of_fact() -> None:
    for story in {item.story.id: item.story for item in labelled_items()}.values():
        raw = RawItem(
            id=story.id, kind="news", asset="X", source="S", url="", published_at=story.published_at,
            fetched_at=story.published_at, title="", text=clean(story.source),
        )  # fmt: skip
        checks = {check.name: check for check in extract(raw, story.language).checks}
        for name in ("numbers", "dates", "names", "language"):
            assert checks[name].ok, (story.id, checks[name].issues)


@pytest.fixture
def store(tmp_path):
    asset = Asset(symbol="ACME", kind="stock", dataset="synthetic/us:7")
    season = Season(id="s", assets=(asset,), entries=(Entry(id="a", architecture="rule"),), first="2025-04-01")
    made = Store(open_engine(str(tmp_path / "s.db"), durable=False))
    made.found_season(season, "2025-04-01T00:00:00Z")
    at = "2025-04-01T20:00:00Z"
    one = StreamItem(
        id="i0", season="s", asset="ACME", session="2025-04-01", kind="news", raw_id="0", source="Wire", url="",
        published_at=at, fetched_at=at, content_sha256="0" * 64, language="en", title="T", text="X",
        status="published", summary_by="extractive",
    )  # fmt: skip
    from msgspec.structs import replace

    added = [replace(one, id=f"i{n}") for n in range(4)]
    added[3] = replace(added[3], status="rejected", reason="numbers: '5' is not in the source", source="Talk")
    due = Due(at=parse_iso(at), place=0, asset="ACME", session="2025-04-01")
    write_edition(made, "s", due, Edition(items=tuple(added), news=()))
    yield made
    made.engine.dispose()


def test_experts_confirm_and_their_agreement_is_reported(store) -> None:
    told = [("i0", "cc"), ("i1", "cc"), ("i2", "rr"), ("i3", "cr")]
    for item, verdicts in told:
        for expert, verdict in zip(("Ada", "Ben"), verdicts, strict=True):
            confirm(store, item, expert, "confirm" if verdict == "c" else "reject", at="2025-04-02T00:00:00Z")
    found = quality(store, "s")
    assert (found.reviewed, found.experts) == (4, 2)
    assert found.agreement.value == pytest.approx(8 / 15)  # worked by hand in tests/metrics/test_agreement.py
    assert found.confirmed.value == pytest.approx(4 / 6) and found.rightly_rejected.value == 0.5
    assert found.rejected.value == 0.25 and found.rejections == {"numbers": 1}
    assert [(s.source, s.published, s.rejected) for s in found.sources] == [("Talk", 0, 1), ("Wire", 3, 0)]


def test_a_second_verdict_replaces_the_first_and_nonsense_is_refused(store) -> None:
    confirm(store, "i0", "Ada", "confirm")
    confirm(store, "i0", "Ada", "reject", note="the date is wrong")
    (review,) = item_page(store, "s", "i0").reviews
    assert (review.verdict, review.note) == ("reject", "the date is wrong")
    for item, expert, verdict in (("nope", "Ada", "confirm"), ("i0", "", "confirm"), ("i0", "Ada", "maybe")):
        with pytest.raises(UserError):
            confirm(store, item, expert, verdict)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="has no item"):
        item_page(store, "s", "nope")
