"""Check a recorded run of programs: hashes, programs, verdicts and sums are what the records say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.hashing import sha256_bytes
from tradeassay.runs.code.layout import CodeFolder
from tradeassay.runs.code.manifest import reopen
from tradeassay.runs.code.outcome import outcome_sha256
from tradeassay.runs.code.recorded import CodeRun
from tradeassay.runs.code.runner import code_scores


class CodeVerification(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and everything that does not hold."""

    items: int
    violations: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return not self.violations

    def summary(self) -> str:
        """Return the verdict in one line."""
        if self.ok:
            return f"{self.items} items checked: hashes, programs and sums hold"
        return f"{self.items} items checked: {len(self.violations)} violations"


def verify_code(folder: Path | str) -> CodeVerification:
    """Check a finished run against its own records; raises :class:`RunError` when it is not finished.

    Programs are not run again; ``run_code`` with recorded answers (``replay``) does that, to the same bytes.
    """
    run = CodeRun.load(folder)
    place = CodeFolder(run.folder)
    recorded = run.scores_file()
    found: list[str] = []
    for item in run.items:
        path = place.outcome(item.key)
        if not path.is_file():
            found.append(f"{item.key}: there is no outcome")
        elif recorded.outcomes.get(item.key) != outcome_sha256(path):
            found.append(f"{item.key}: the outcome is not the one that was scored")
        else:
            found += [f"{item.key}: {what}" for what in _programs(run.record(item.key))]
    if not found:
        protocol, _ = reopen(run.manifest)
        if code_scores(protocol, run.manifest, place) != place.run.scores.read_bytes():
            found.append("the sums are not those of the records")
    return CodeVerification(items=len(run.items), violations=tuple(found))


def _programs(record: Any) -> list[str]:
    """Check that verdicts belong to the programs they stand beside, where a record has turns."""
    wrong: list[str] = []
    for turn in getattr(record, "turns", ()):
        if turn.code is None:
            continue
        digest = sha256_bytes(turn.code.encode("utf-8", "surrogatepass"))
        judged = turn.evaluation.source_sha256 if turn.evaluation is not None else digest
        if turn.code_sha256 != digest or judged != digest:
            wrong.append(f"turn {turn.number}: the verdict is about another program")
    return wrong
