"""What a gate said, with its evidence."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Status = Literal["passed", "failed", "not_run"]
Measures = dict[str, float | int | str | None]
GateName = Literal["parse", "schema", "exec", "determinism", "leak", "audit", "scenarios"]

PAPER_GATES: Final[tuple[GateName, ...]] = ("parse", "schema", "exec", "determinism", "leak", "audit")
"""The six that make a submission valid in the paper's sense."""
GATES: Final[tuple[GateName, ...]] = (*PAPER_GATES, "scenarios")

QUESTIONS: Final[dict[GateName, str]] = {
    "parse": "Can both files be read, and is there a TradingStrategy in them?",
    "schema": "Is the card well-formed, and does it say what the frozen semantics say?",
    "exec": "Does it run to its end and return trades that can have been?",
    "determinism": "Does it decide the same in fresh processes with other seeds?",
    "leak": "Does any decision depend on bars that came after it?",
    "audit": "Can every trade be followed from its signal to its P&L, and are its figures true?",
    "scenarios": "Does it do on the micro-scenarios what the frozen semantics do?",
}


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of evidence. ``code`` is a short name to count by; ``line`` is one of ``file``, ``bar`` a bar of
    the data named by ``where``.
    """

    code: str
    text: str
    file: Literal["strategy.py", "strategy_card.json"] = "strategy.py"
    line: int | None = None
    bar: int | None = None
    where: str = ""


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """One gate's verdict. ``reason`` is one line, never empty unless it passed; ``measures`` are its numbers.

    ``not_run`` is neither a pass nor a failure: something that the gate needs was not there.
    """

    name: GateName
    status: Status
    reason: str = ""
    evidence: tuple[Finding, ...] = ()
    measures: Measures = {}
    advice: tuple[Finding, ...] = ()

    @property
    def question(self) -> str:
        """What the gate asks."""
        return QUESTIONS[self.name]

    @property
    def passed(self) -> bool:
        """Whether it was run and held."""
        return self.status == "passed"


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """All gates of one submission, in order. ``bars`` names the data of the scored run, ``tier`` the walls it ran
    behind; ``cpu_s`` is what its runs used.
    """

    strategy: str
    semantics_sha256: str
    submission: str
    submission_sha256: str
    bars: str
    rows: int
    tier: str
    gates: tuple[GateResult, ...]
    cpu_s: float = 0.0
    runs: int = 0

    def gate(self, name: GateName) -> GateResult:
        """Return one gate's result."""
        return next(gate for gate in self.gates if gate.name == name)

    @property
    def passed(self) -> bool:
        """Whether every gate was run and held, the scenarios among them."""
        return all(gate.passed for gate in self.gates)

    @property
    def valid(self) -> bool:
        """Whether the paper's six gates hold."""
        return all(gate.passed for gate in self.gates if gate.name in PAPER_GATES)

    @property
    def first_failure(self) -> GateResult | None:
        """The first gate that failed; None when none did."""
        return next((gate for gate in self.gates if gate.status == "failed"), None)


def passed(name: GateName, reason: str = "", *, measures: Measures | None = None) -> GateResult:
    """Return a gate that held."""
    return GateResult(name=name, status="passed", reason=reason, measures=measures or {})


def failed(
    name: GateName, evidence: tuple[Finding, ...], reason: str = "", *, measures: Measures | None = None
) -> GateResult:
    """Return a gate that did not hold; without a ``reason`` the first finding is it."""
    why = reason or evidence[0].text
    return GateResult(name=name, status="failed", reason=why, evidence=evidence, measures=measures or {})


def not_run(name: GateName, reason: str) -> GateResult:
    """Return a gate that could not be asked."""
    return GateResult(name=name, status="not_run", reason=reason)
