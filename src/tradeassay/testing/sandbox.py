"""Check a sandbox by trying to get out of it.

Every attack runs twice: in a plain subprocess, where it must succeed to count, and in the sandbox, where it
must not. The attacks swallow their errors, so that what is recorded was recorded by the kernel and the host
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import msgspec

from tradeassay.core.errors import CheckFailed, UserError
from tradeassay.core.reproducible_math import plain_sum
from tradeassay.sandbox import Job, JobExecutor, JobResult, SandboxConfig, SandboxPool, Tier
from tradeassay.testing._escape.harness import (
    TIGHT,
    VISIBLE,
    Arena,
    Attack,
    AttackOutcome,
    run_control,
    secret_in_environment,
)
from tradeassay.testing._escape.judge import EXAMINER, FORGING, FUTURE
from tradeassay.testing._escape.system import CHANGING, LIMITS, NETWORK, PRIVILEGED, PROCESS, READING

ATTACKS: tuple[Attack, ...] = (
    *NETWORK,
    *READING,
    *CHANGING,
    *PROCESS,
    *LIMITS,
    *FORGING,
    *FUTURE,
    *PRIVILEGED,
    *EXAMINER,
)
"""All attacks, by family."""

LIGHT = SandboxConfig(preload=("numpy", "encodings.idna", "json", "pickle", "subprocess", "urllib.request"))
"""A sandbox that starts fast, with the modules that attacks need: walls must stop them, not a missing import."""

_AT_ONCE = 4  # many attacks only wait for a limit


class AttackResult(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table.

    ``control``: did it succeed without walls? Only then does it count. ``sandbox``: ``held`` or ``escaped``.
    ``record`` is what the host knows of the attempt: the refused call, the verdict, or that there was nothing to
    find.
    """

    name: str
    family: str
    control: bool
    sandbox: Literal["held", "escaped"]
    record: str


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """The table of a check."""

    tier: Tier
    results: tuple[AttackResult, ...]

    @property
    def counted(self) -> tuple[AttackResult, ...]:
        return tuple(result for result in self.results if result.control)

    @property
    def escaped(self) -> tuple[AttackResult, ...]:
        """The attacks that got through. Empty, or the sandbox is broken."""
        return tuple(result for result in self.results if result.sandbox == "escaped")

    def table(self) -> str:
        """Return the results as lines of text."""
        lines = [f"{'attack':32} {'family':11} {'plain process':14} {'sandbox':8} recorded as"]
        for result in self.results:
            control = "succeeds" if result.control else "fails: not counted"
            lines.append(f"{result.name:32} {result.family:11} {control:14} {result.sandbox:8} {result.record}")
        lines.append(self.summary())
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line: the level, how many attacks counted, how many got through."""
        through = len(self.escaped)
        return f"{self.tier.level}: {len(self.counted)} attacks counted, {through} got through"


def check_sandbox(
    executor: JobExecutor | None = None,
    *,
    config: SandboxConfig | None = None,
    short: bool = False,
    only: Sequence[str] = (),
) -> SandboxReport:
    """Attack ``executor`` (default: a fresh sandbox of ``config``, or of ``LIGHT``) and return the table.

    Raises :class:`CheckFailed` naming every attack that got through, and SandboxRefused where untrusted code
    cannot be contained at all. ``short`` tries one or two attacks of each kind, in a few seconds; ``only`` names
    single ones.
    """
    attacks = _chosen(short, only)
    with secret_in_environment() as secret:
        if executor is not None:
            report = _attack_all(executor, attacks, secret)
        else:
            with SandboxPool(config or LIGHT, workers=_AT_ONCE) as pool:
                report = _attack_all(pool, attacks, secret)
    if report.escaped:
        names = "; ".join(f"{result.name} ({result.record})" for result in report.escaped)
        raise CheckFailed(f"{len(report.escaped)} attacks got out of the sandbox: {names}")
    return report


def _chosen(short: bool, only: Sequence[str]) -> list[Attack]:
    unknown = set(only) - {attack.name for attack in ATTACKS}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise UserError(f"no attack {names}", hint="names stand in the table of check_sandbox()")
    return [attack for attack in ATTACKS if (attack.name in only if only else attack.short or not short)]


def _attack_all(executor: JobExecutor, attacks: Sequence[Attack], secret: str) -> SandboxReport:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        results = tuple(threads.map(lambda attack: _attack(executor, attack, secret), attacks))
    return SandboxReport(tier=executor.tier, results=results)


def _attack(executor: JobExecutor, attack: Attack, secret: str) -> AttackResult:
    victim = "p['victim']" in attack.source or 'p["victim"]' in attack.source
    with Arena(secret, victim=victim) as arena:
        control = attack.proof(arena, run_control(attack, arena))
    with Arena(secret, victim=victim) as arena:
        result = executor.run(_job(attack.source, arena))
        if attack.again:
            result = executor.run(_job(attack.second, arena))
        if attack.wait_s:
            arena.wait_for_change(attack.wait_s)
        escaped = attack.proof(arena, _outcome(result, arena))
    return AttackResult(
        name=attack.name,
        family=attack.family,
        control=control,
        sandbox="escaped" if escaped else "held",
        record=_record(result),
    )


def _job(source: str, arena: Arena) -> Job:
    """Return the attack as a job: imports unguarded and refused calls forgiven, so that only the walls hold it."""
    return Job(
        source=source,
        columns={"close": arena.prices[:VISIBLE]},
        params=arena.targets(),
        limits=TIGHT,
        pass_as="columns",
        guard_imports=False,
        fail_on=frozenset(),
    )


def _outcome(result: JobResult, arena: Arena) -> AttackOutcome:
    columns = result.columns or {}
    decisions = columns.get("decisions", ())
    prices = arena.prices[:VISIBLE]
    pnl = plain_sum(float(d) * (b - a) for d, a, b in zip(decisions, prices, prices[1:], strict=False))
    return AttackOutcome(
        evidence=tuple(str(item) for item in columns.get("evidence", ())),
        pnl=pnl,
        accepted=len(result.log) + sum(column.nbytes for column in columns.values()),
    )


def _record(result: JobResult) -> str:
    if result.failure is not None:
        return result.failure.text
    if result.attempts:
        grave = [attempt for attempt in result.attempts if attempt.family != "file"]
        return "refused " + (grave or result.attempts)[0].text
    assert result.columns is not None
    return "ran, and found: " + ", ".join(str(item) for item in result.columns.get("evidence", ()))[:80]
