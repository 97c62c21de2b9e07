"""A recorded run of programs: everything that is known about it, read from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec

from tradeassay.core.errors import RunError
from tradeassay.core.near import did_you_mean
from tradeassay.play.dialogue_log import Spending, total
from tradeassay.runs.code.layout import CodeFolder
from tradeassay.runs.code.manifest import CodeManifest, read_code_manifest
from tradeassay.runs.code.outcome import ItemOutcome, read_item
from tradeassay.runs.code.protocol import CodeItem, CodeProtocol, code_protocols


class CodeScoresFile(msgspec.Struct, frozen=True, kw_only=True):
    """``scores.json``: the hash of every outcome and the benchmark's sums over them."""

    outcomes: dict[str, str]
    scores: msgspec.Raw


class CodeRun:
    """One run on disk. Reading it changes nothing."""

    def __init__(self, folder: Path, manifest: CodeManifest) -> None:
        self._place = CodeFolder(folder)
        self._manifest = manifest
        self._by_key = {item.key: item for item in manifest.items}

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Open a run; raises :class:`RunError` when there is none of programs in ``folder``."""
        path = Path(folder)
        return cls(path, read_code_manifest(CodeFolder(path).run.manifest))

    def __repr__(self) -> str:
        state = "complete" if self.complete else "unfinished"
        return f"<CodeRun of {self.benchmark}, {len(self.items)} items, {state}, in {self.folder}>"

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self._place.path

    @property
    def manifest(self) -> CodeManifest:
        """What was run, with what."""
        return self._manifest

    @property
    def benchmark(self) -> str:
        """Which benchmark."""
        return self._manifest.benchmark

    @property
    def items(self) -> tuple[CodeItem, ...]:
        """What it consists of, in the spec's order."""
        return self._manifest.items

    @property
    def complete(self) -> bool:
        """Whether every item has ended and the sums are there."""
        return self._place.run.scores.is_file()

    @cached_property
    def kind(self) -> type[CodeProtocol]:
        """The benchmark's protocol; raises :class:`UserError` when it is not known here."""
        return code_protocols.get(self.benchmark)

    @cached_property
    def spec(self) -> Any:
        """What was asked for."""
        return msgspec.convert(self._manifest.spec, self.kind.Spec)

    def item(self, key: str) -> CodeItem:
        """Return an item; raises :class:`RunError` with near names when there is none of that key."""
        if key not in self._by_key:
            raise RunError(
                f"{self.folder} has no item '{key}'", mend=did_you_mean(key, self._by_key, "see run.items")
            )
        return self._by_key[key]

    def outcome(self, key: str) -> ItemOutcome | None:
        """Return how an item ended, None when it has not yet."""
        return read_item(self._place.outcome(self.item(key).key))

    def outcomes(self) -> Iterator[tuple[CodeItem, ItemOutcome]]:
        """Yield the items that have ended, in order."""
        for item in self.items:
            found = read_item(self._place.outcome(item.key))
            if found is not None:
                yield item, found

    def record(self, key: str) -> Any | None:
        """Return an item's record, None when it has none."""
        found = self.outcome(key)
        return None if found is None else read_record(self.kind, found)

    def records(self) -> dict[str, Any]:
        """Return all records, by key."""
        return {
            item.key: record
            for item, found in self.outcomes()
            if (record := read_record(self.kind, found)) is not None
        }

    @property
    def scores(self) -> Any:
        """The sums; raises :class:`RunError` when the run is not finished."""
        return msgspec.json.decode(self.scores_file().scores, type=self.kind.Scores)

    def scores_file(self) -> CodeScoresFile:
        """Return ``scores.json``; raises :class:`RunError` when it is missing or damaged."""
        try:
            return msgspec.json.decode(self._place.run.scores.read_bytes(), type=CodeScoresFile)
        except FileNotFoundError:
            raise RunError(f"{self.folder} is not finished", mend="give the same command again to go on") from None
        except msgspec.DecodeError as error:
            raise RunError(f"{self._place.run.scores} is damaged: {error}", mend="delete it and resume") from error

    @property
    def failed(self) -> dict[str, str]:
        """The items without a result, and why."""
        return {item.key: found.reason for item, found in self.outcomes() if found.status == "failed"}

    def spent(self, role: str | None = None) -> Spending:
        """Return what all answers took, or those of one role."""
        parts = [found.spent for _, found in self.outcomes()]
        return total(part for spent in parts for name, part in spent.items() if role is None or name == role)


def read_record(kind: type[CodeProtocol], outcome: ItemOutcome) -> Any | None:
    """Return the record in an outcome, None when it has none; raises :class:`RunError` for a damaged one."""
    if not outcome.has_record:
        return None
    try:
        return msgspec.json.decode(outcome.record, type=kind.Record)
    except msgspec.DecodeError as error:
        raise RunError(
            f"the record of an item is damaged: {error}", mend="delete its folder and resume"
        ) from error
