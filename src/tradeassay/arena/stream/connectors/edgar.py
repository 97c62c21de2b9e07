"""Filings from EDGAR: which form was accepted when, according to a company's submissions list."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tradeassay.arena.stream.connectors.collecting import Fetch
from tradeassay.arena.stream.items import RawItem, clean, parse_stamp
from tradeassay.core.errors import UNDECODABLE, DataError, SourceError
from tradeassay.core.time import Instant, iso

FORMS = ("10-K", "10-Q", "8-K", "20-F", "6-K")
NEWEST = 40
"""How many filings of the list are looked at."""


class _Recent(msgspec.Struct, frozen=True, rename="camel"):
    accession_number: tuple[str | None, ...] = ()
    acceptance_date_time: tuple[str | None, ...] = ()
    report_date: tuple[str | None, ...] = ()
    form: tuple[str | None, ...] = ()
    primary_document: tuple[str | None, ...] = ()
    primary_doc_description: tuple[str | None, ...] = ()


class _Filings(msgspec.Struct, frozen=True):
    recent: _Recent


class _Submissions(msgspec.Struct, frozen=True):
    name: str
    filings: _Filings


class EdgarFilings(msgspec.Struct, frozen=True, kw_only=True):
    """The filings of one company. ``cik`` is its number at the SEC, which asks that ``fetch`` names its reader."""

    asset: str
    cik: int
    fetch: Fetch
    address: str = "https://data.sec.gov"

    @property
    def source(self) -> str:
        """The source's name."""
        return "SEC EDGAR"

    def read(self, now: Instant) -> tuple[RawItem, ...]:
        """Return the newest filings; raises :class:`SourceError` when the list cannot be fetched or read."""
        body = self.fetch(f"{self.address}/submissions/CIK{self.cik:010d}.json")
        try:
            found = msgspec.json.decode(body, type=_Submissions)
        except UNDECODABLE as error:
            raise SourceError(f"the list of filings of CIK {self.cik} cannot be read: {error}") from error
        return tuple(self._items(found, now))

    def _items(self, found: _Submissions, now: Instant) -> Iterator[RawItem]:
        recent = found.filings.recent
        rows = zip(
            recent.accession_number,
            recent.acceptance_date_time,
            recent.report_date,
            recent.form,
            recent.primary_document,
            recent.primary_doc_description,
            strict=False,
        )
        for number, accepted, period, form, document, about in list(rows)[:NEWEST]:
            if form not in FORMS or not number or not accepted:
                continue
            try:
                published = parse_stamp(accepted)
            except DataError:
                continue
            folder = f"{self.cik}/{number.replace('-', '')}"
            told = f"{clean(found.name)} filed form {form}" + (f" for the period to {period}" if period else "")
            yield RawItem(
                id=number[:100],
                kind="filing",
                asset=self.asset,
                source=self.source,
                url=f"https://www.sec.gov/Archives/edgar/data/{folder}/{clean(document or '')}",
                published_at=iso(published),
                fetched_at=iso(now),
                title=f"Form {form}",
                text=f"{told}. {clean(about or '')}".strip(),
            )
