"""Check a sandbox by trying to break out of it.

The attacks are in ``attacks.txt``. Each is below a line ``## name family proof`` with optional
marks:

- ``short`` includes the attack in the short form.
- ``numpy`` gives the control arrays too.
- ``wait=S`` waits up to S seconds for an effect.

The text after ``## again`` is a second job that looks for traces of the first job. An attack fills
the list ``found`` from the targets in ``p``. Its errors are suppressed, so that only the kernel and
the host record it. The targets are made for each run: a secret, files, sockets, a victim process,
future prices.

Every attack runs twice: in the sandbox, where it must not succeed, and in a plain subprocess, where
it must succeed to count. This control works like a harness without a sandbox: it loads all prices,
passes the visible prices to the code, scores its decisions in the same process and prints the
result. It has separate limits on memory, processor time, file size and time, so that a successful
attack does no harm. Processes that it leaves running are ended with its group.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import repeat
from pathlib import Path
from typing import Final, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_programs.sandbox import (
    Job,
    JobExecutor,
    JobLimits,
    SandboxConfig,
    SandboxPool,
    Tier,
)

FORGED_PNL: Final = 1e9
VISIBLE: Final = 64
_ROWS: Final = 4096
_VARIABLE: Final = "TRADEASSAY_ESCAPE_SECRET"
_VICTIM: Final = "import sys, time; sys.stdout.write('up'); sys.stdout.flush(); time.sleep(120)"


class Arena(contextlib.ExitStack):
    """The targets of one run of one attack, as a context manager.

    It never touches the user's files.
    """

    def __init__(self, secret: str, *, victim: bool) -> None:
        super().__init__()
        self.secret = secret
        self._abstract_name = "escape-" + secrets.token_hex(8)
        # One odd price per run, far away from the visible ones, marks the future.
        self.future_price = 5000.0 + secrets.randbelow(10**6) / 1000
        self.visible = [100.0 + 0.25 * (row % 8) for row in range(VISIBLE)]
        self.prices = self.visible + [self.future_price] * (_ROWS - VISIBLE)
        self.folder = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="escape-")))
        self.folder.chmod(0o777)
        (self.folder / "secret.txt").write_text(self.secret)
        (self.folder / "helper.py").write_text("CLEAN = True\n")
        self.home = self.folder / "home"
        self.home.mkdir()
        for path in (self.folder / "secret.txt", self.folder / "helper.py", self.home):
            path.chmod(0o777)
            os.utime(path, (1_000_000_000, 1_000_000_000))
        self._tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._unix = self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "unix.sock"))
        self._abstract = self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + self._abstract_name)
        (self.folder / "unix.sock").chmod(0o777)
        self._kept = ctypes.create_string_buffer(self.secret.encode())
        self._victim: subprocess.Popen[bytes] | None = None
        if victim:
            command = [sys.executable, "-I", "-S", "-c", _VICTIM]
            self._victim = self.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            self.callback(self._victim.kill)
            assert self._victim.stdout is not None
            self._victim.stdout.read(2)
        self._before = self._state()

    def targets(self) -> dict[str, str | int]:
        """Return the targets of an attack: addresses and paths, never the secret itself."""
        return {
            "folder": str(self.folder),
            "secret": str(self.folder / "secret.txt"),
            "port": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": str(self.folder / "unix.sock"),
            "abstract": self._abstract_name,
            "victim": self._victim.pid if self._victim is not None else 0,
            "host": os.getpid(),
            "address": ctypes.addressof(self._kept),
            "length": len(self.secret),
        }

    def heard(self) -> bool:
        """Return whether a message or connection arrived at one of the listeners."""
        for listener in (self._udp, self._unix, self._abstract):
            with contextlib.suppress(BlockingIOError):
                listener.recv(4096)
                return True
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._tcp.accept()
            connection.close()
            return True
        return False

    def changed(self) -> bool:
        """Return whether the target folder, or any file in it, has changed."""
        return self._state() != self._before

    def wait_for_change(self, seconds: float) -> None:
        """Wait until the target folder changes, or the time is up."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.changed():
            time.sleep(0.02)

    def victim_gone(self) -> bool:
        """Return whether the victim process has ended."""
        if self._victim is None:
            return False
        try:
            self._victim.wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _listen(self, family: int, kind: int, address: tuple[str, int] | str) -> socket.socket:
        listener = self.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        return listener

    def _state(self) -> list[tuple[str, int, int, int, bytes]]:
        """Return names, modes, links, times and contents of the files in the target folder."""
        state = []
        for path in sorted(self.folder.iterdir()):
            facts = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            modified = facts.st_mtime_ns if path.is_file() else 0
            state.append((path.name, facts.st_mode, facts.st_nlink, modified, content))
        return state


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
"""The limits of every attack in the sandbox. Attacks on limits exceed them slightly."""


class AttackOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one run of an attack.

    ``evidence`` is the attack's report, and ``pnl`` the profit that its host believes. ``accepted``
    is the number of output bytes that the host accepted. ``note`` describes how the run ended.
    """

    evidence: tuple[str, ...] = ()
    pnl: float | None = None
    accepted: int = 0
    note: str = ""


PROOFS: Final[dict[str, Callable[[Arena, AttackOutcome], bool]]] = {
    # The attack reports a forbidden action.
    "done": lambda arena, outcome: "done" in outcome.evidence,
    "knows_secret": lambda arena, outcome: any(arena.secret in text for text in outcome.evidence),
    # The attack reports a price from a row that it did not receive.
    "knows_future": lambda arena, outcome: any(
        f"{arena.future_price:.4f}" in text for text in outcome.evidence
    ),
    # The host believes a false profit.
    "forged": lambda arena, outcome: outcome.pnl is not None and outcome.pnl >= FORGED_PNL,
    "touched": lambda arena, outcome: arena.changed(),
    "heard": lambda arena, outcome: arena.heard(),
    "hurt": lambda arena, outcome: arena.victim_gone(),
    # The host accepted more output than the limits allow.
    "flooded": lambda arena, outcome: (
        outcome.accepted > (TIGHT.result_mb << 20) + (TIGHT.log_kb << 10) + (64 << 10)
    ),
}
"""The host's test of success for each kind of attack."""


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """One attack. ``sources`` are its jobs. A second job looks for traces of the first job."""

    name: str
    family: str
    sources: tuple[str, ...]
    proof: str
    numpy: bool = False
    short: bool = False
    wait_s: float = 0.0

    @property
    def victim(self) -> bool:
        """Whether the attack needs a victim process."""
        return "p['victim']" in self.sources[0] or 'p["victim"]' in self.sources[0]


def _read_attacks() -> tuple[Attack, ...]:
    """Read the attacks of ``attacks.txt``, each wrapped into a function for the sandbox."""
    attacks: list[Attack] = []
    text = (files("tradeassay_programs.testing") / "attacks.txt").read_text(encoding="utf-8")
    for section in text.removeprefix("## ").split("\n## "):
        head, _, body = section.partition("\n")
        inner = textwrap.indent(body.strip("\n"), " " * 8)
        source = (
            "def run(columns, **p):\n"
            "    found = []\n"
            "    decisions = [0.0] * len(columns['close'])\n"
            "    try:\n"
            f"{inner}\n"
            "    except BaseException as error:\n"
            "        found.append('swallowed ' + type(error).__name__)\n"
            "    return {'evidence': found or ['nothing'], 'decisions': decisions}\n"
        )
        if head == "again":
            previous = attacks.pop()
            sources = (*previous.sources, source)
            attacks.append(msgspec.structs.replace(previous, sources=sources))
            continue
        name, family, proof, *marks = head.split()
        waits = [float(mark.removeprefix("wait=")) for mark in marks if mark.startswith("wait=")]
        attacks.append(
            Attack(
                name=name,
                family=family,
                sources=(source,),
                proof=proof,
                numpy="numpy" in marks,
                short="short" in marks,
                wait_s=waits[0] if waits else 0.0,
            )
        )
    return tuple(attacks)


ATTACKS: Final = _read_attacks()


# -- the control ---

_CLOCK_S: Final = 20.0
_BOUNDS: Final = [
    (resource.RLIMIT_AS, 4 << 30),
    (resource.RLIMIT_CPU, 10),
    (resource.RLIMIT_FSIZE, 64 << 20),
    (resource.RLIMIT_CORE, 0),
]

_HARNESS: Final = (files("tradeassay_programs.testing") / "control.txt").read_text(encoding="utf-8")


def _run_control(source: str, attack: Attack, arena: Arena) -> AttackOutcome:
    """Run a source of an attack in a plain process, without isolation."""
    spec = {"source": source, "targets": arena.targets(), "visible": VISIBLE, "numpy": attack.numpy}
    (arena.home / "spec.json").write_text(json.dumps({**spec, "bounds": _BOUNDS}))
    (arena.home / "prices.bin").write_bytes(struct.pack(f"<{len(arena.prices)}d", *arena.prices))
    options = [] if attack.numpy else ["-S"]
    process = subprocess.Popen(
        [sys.executable, *options, "-c", _HARNESS],
        cwd=arena.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_CLOCK_S)
    except subprocess.TimeoutExpired:
        output = b""
    finally:
        if attack.wait_s:
            arena.wait_for_change(attack.wait_s)
        with contextlib.suppress(ProcessLookupError):  # No trace was left.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return _believe(output, f"exit {process.returncode}")


def _believe(output: bytes, note: str) -> AttackOutcome:
    """Return the result in an output as a naive host would read it.

    The result is the last line of JSON, or a pickle.
    """
    if output.startswith(b"\x80"):
        # A separate process loads the pickle. Its effects there are the effects on a host that
        # loads pickles.
        loader = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            "import pickle, sys; pickle.load(sys.stdin.buffer)",
        ]
        subprocess.run(loader, input=output, timeout=_CLOCK_S, check=False, capture_output=True)
        return AttackOutcome(accepted=len(output), note="a pickle was loaded")
    for line in reversed(output.splitlines()):
        try:
            result = json.loads(line)
            return AttackOutcome(
                evidence=tuple(str(item) for item in result.get("evidence", [])),
                pnl=float(result.get("pnl", 0.0)),
                accepted=len(output),
                note=note,
            )
        except (ValueError, AttributeError, TypeError):
            continue
    return AttackOutcome(accepted=len(output), note=note)


LIGHT = SandboxConfig(
    preload=("numpy", "encodings.idna", "json", "pickle", "subprocess", "urllib.request")
)
"""A sandbox that starts fast and has the modules that attacks need.

The isolation must stop an attack. A missing module must not.
"""

# Many attacks only wait for a limit, so several run at once.
_AT_ONCE = 4


class AttackResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attack, a line of the table.

    ``control`` is whether the attack succeeds in a plain process. Otherwise it does not count.
    ``sandbox`` is ``held`` or ``escaped``. ``record`` is the host's record: a refused call, a
    failure, or the attack's findings.
    """

    name: str
    family: str
    control: bool
    sandbox: Literal["held", "escaped"]
    record: str


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all attacks on a sandbox."""

    tier: Tier
    results: tuple[AttackResult, ...]

    @property
    def counted(self) -> tuple[AttackResult, ...]:
        """The attacks that count, because they succeed in a plain process."""
        return tuple(result for result in self.results if result.control)

    @property
    def escaped(self) -> tuple[AttackResult, ...]:
        """The attacks that escaped. A sandbox with an escaped attack is broken."""
        return tuple(result for result in self.results if result.sandbox == "escaped")

    def table(self) -> str:
        """Return the results as a text table."""
        lines = [f"{'attack':32} {'family':11} {'plain process':14} {'sandbox':8} recorded as"]
        for result in self.results:
            control = "succeeds" if result.control else "fails: not counted"
            lines.append(
                f"{result.name:32} {result.family:11} {control:14} {result.sandbox:8} "
                f"{result.record}"
            )
        lines.append(self.summary())
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line with the isolation level and the counts of attacks."""
        through = len(self.escaped)
        return f"{self.tier.level}: {len(self.counted)} attacks counted, {through} got through"


def check_sandbox(
    executor: JobExecutor | None = None,
    *,
    config: SandboxConfig | None = None,
    short: bool = False,
    only: Sequence[str] = (),
) -> SandboxReport:
    """Attack a sandbox and return the results.

    ``executor`` is the sandbox to attack. By default a new sandbox is opened with ``config``, or
    with ``LIGHT``. ``short`` tries one or two attacks of each kind, in a few seconds. ``only``
    names single attacks.

    Raises :class:`CheckFailed` with the names of all escaped attacks, and SandboxRefused if this
    machine cannot contain untrusted code.
    """
    unknown = set(only) - {attack.name for attack in ATTACKS}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise UserError(f"unknown attacks: {names}", hint="check_sandbox().table() lists the names")
    attacks = [
        attack for attack in ATTACKS if (attack.name in only if only else attack.short or not short)
    ]
    # A new secret is added to this process's environment, where careless harnesses keep their keys.
    secret = "s3cret-" + secrets.token_hex(8)
    os.environ[_VARIABLE] = secret
    with contextlib.ExitStack() as stack:
        stack.callback(os.environ.pop, _VARIABLE)
        if executor is None:
            executor = stack.enter_context(SandboxPool(config or LIGHT, workers=_AT_ONCE))
        threads = stack.enter_context(ThreadPoolExecutor(_AT_ONCE))
        results = tuple(threads.map(_attack, repeat(executor), attacks, repeat(secret)))
        report = SandboxReport(tier=executor.tier, results=results)
    if report.escaped:
        names = "; ".join(f"{result.name} ({result.record})" for result in report.escaped)
        raise CheckFailed(f"{len(report.escaped)} attacks got out of the sandbox: {names}")
    return report


def _attack(executor: JobExecutor, attack: Attack, secret: str) -> AttackResult:
    """Try an attack in a plain process, then in the sandbox."""
    succeeds = PROOFS[attack.proof]
    with Arena(secret, victim=attack.victim) as arena:
        for source in attack.sources:
            outcome = _run_control(source, attack, arena)
        control = succeeds(arena, outcome)
    with Arena(secret, victim=attack.victim) as arena:
        for source in attack.sources:
            # Imports are not guarded and refused calls do not fail the job, so that only the
            # isolation stops it.
            job = Job(
                source=source,
                columns={"close": arena.visible},
                params=arena.targets(),
                limits=TIGHT,
                pass_as="columns",
                guard_imports=False,
                fail_on=frozenset(),
            )
            result = executor.run(job)
        if attack.wait_s:
            arena.wait_for_change(attack.wait_s)
        columns = result.columns or {}
        moves = zip(columns.get("decisions", ()), arena.visible, arena.visible[1:], strict=False)
        outcome = AttackOutcome(
            evidence=tuple(str(item) for item in columns.get("evidence", ())),
            pnl=sum(float(decision) * (after - before) for decision, before, after in moves),
            accepted=len(result.log) + sum(column.nbytes for column in columns.values()),
        )
        sandbox: Literal["held", "escaped"] = "escaped" if succeeds(arena, outcome) else "held"
    if result.failure is not None:
        record = result.failure.text
    elif result.attempts:
        grave = [attempt for attempt in result.attempts if attempt.family != "file"]
        record = "refused " + (grave or result.attempts)[0].text
    else:
        record = "ran, and found: " + ", ".join(outcome.evidence)[:80]
    return AttackResult(
        name=attack.name, family=attack.family, control=control, sandbox=sandbox, record=record
    )
