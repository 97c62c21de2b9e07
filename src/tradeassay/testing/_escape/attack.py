"""What an attack is, and how the host can tell that it succeeded."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Final

import msgspec

from tradeassay.sandbox import JobLimits
from tradeassay.testing._escape.arena import FORGED_PNL, Arena

TIGHT: Final = JobLimits(
    cpu_s=1,
    wall_s=3.0,
    memory_mb=96,
    scratch_mb=4,
    scratch_files=64,
    log_kb=256,
    result_mb=1,
    rows=10_000,
    columns=16,
)
"""The limits that every attack runs under in the sandbox; attacks go beyond them by a little."""


class AttackOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of an attack brought home.

    ``evidence`` is what the attack says it found, ``pnl`` the profit its host believes, ``accepted`` how many
    bytes of output the host took, ``note`` how the run ended.
    """

    evidence: tuple[str, ...] = ()
    pnl: float | None = None
    accepted: int = 0
    note: str = ""


Proof = Callable[[Arena, AttackOutcome], bool]


class Attack(msgspec.Struct, frozen=True):
    """One attack. ``body`` fills the list ``found`` from the targets in ``p``, and every error is swallowed;
    ``again`` is the body of a second job that looks for what the first one left. ``numpy`` asks for arrays in the
    control as well; ``short`` makes it part of the short form.
    """

    name: str
    family: str
    body: str
    proof: Proof
    again: str = ""
    numpy: bool = False
    short: bool = False
    wait_s: float = 0.0

    @property
    def source(self) -> str:
        """The program: it defines ``run(columns, **targets)``."""
        return _wrap(self.body)

    @property
    def second(self) -> str:
        """The second program, if there is one."""
        return _wrap(self.again) if self.again else ""


def _wrap(body: str) -> str:
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    return (
        "def run(columns, **p):\n"
        "    found = []\n"
        "    decisions = [0.0] * len(columns['close'])\n"
        "    try:\n"
        f"{inner}\n"
        "    except BaseException as error:\n"
        "        found.append('swallowed ' + type(error).__name__)\n"
        "    return {'evidence': found or ['nothing'], 'decisions': decisions}\n"
    )


def done(arena: Arena, outcome: AttackOutcome) -> bool:
    """It says that it did what it must not do."""
    return "done" in outcome.evidence


def knows_secret(arena: Arena, outcome: AttackOutcome) -> bool:
    """It brought the secret home."""
    return any(arena.secret in text for text in outcome.evidence)


def knows_future(arena: Arena, outcome: AttackOutcome) -> bool:
    """It brought home a price from a row that it was not given."""
    return any(f"{arena.future_price:.4f}" in text for text in outcome.evidence)


def forged(arena: Arena, outcome: AttackOutcome) -> bool:
    """Its host believes a profit that was never made."""
    return outcome.pnl is not None and outcome.pnl >= FORGED_PNL


def touched(arena: Arena, outcome: AttackOutcome) -> bool:
    """Something in the target folder is not as it was."""
    return arena.changed()


def heard(arena: Arena, outcome: AttackOutcome) -> bool:
    """One of the listening sockets got a message."""
    return arena.heard()


def hurt(arena: Arena, outcome: AttackOutcome) -> bool:
    """The victim process is gone."""
    return arena.victim_gone()


def flooded(arena: Arena, outcome: AttackOutcome) -> bool:
    """Its host took more output than the limits allow."""
    return outcome.accepted > (TIGHT.result_mb << 20) + (TIGHT.log_kb << 10) + (64 << 10)
