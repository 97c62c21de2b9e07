"""What an attack is, its targets, how the host can tell that it succeeded, and the control.

The targets (a secret, files, sockets, a victim process, future prices) are made for the occasion. The control is
the same attack in a plain subprocess, the way harnesses without a sandbox run code: it loads all prices, hands the
visible ones to the code, scores its decisions in the same process and prints the result. It is bounded, so that an
attack that succeeds hurts nobody: memory, processor time, file size and clock have limits of its own, and whatever
it left running is ended with its process group.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from tradeassay.sandbox import JobLimits

FORGED_PNL: Final = 1e9
VISIBLE: Final = 64
_ROWS: Final = 4096
_VARIABLE: Final = "TRADEASSAY_ESCAPE_SECRET"
_VICTIM: Final = "import sys, time; sys.stdout.write('up'); sys.stdout.flush(); time.sleep(120)"


@contextlib.contextmanager
def secret_in_environment() -> Iterator[str]:
    """Put a fresh secret into this process's environment, where careless harnesses keep their keys."""
    secret = "s3cret-" + secrets.token_hex(8)
    os.environ[_VARIABLE] = secret
    try:
        yield secret
    finally:
        del os.environ[_VARIABLE]


class Arena:
    """Owns the targets of one run of one attack; use as a context manager. It never touches the user's
    files.
    """

    def __init__(self, secret: str, *, victim: bool) -> None:
        self.secret = secret
        self._wants_victim = victim
        self._victim: subprocess.Popen[bytes] | None = None
        self._abstract_name = "escape-" + secrets.token_hex(8)
        self._stack = contextlib.ExitStack()
        # One odd price per run, far away from the visible ones, marks the future.
        self.future_price = 5000.0 + secrets.randbelow(10**6) / 1000
        self.prices = [100.0 + 0.25 * (row % 8) for row in range(VISIBLE)] + [self.future_price] * (
            _ROWS - VISIBLE
        )

    def __enter__(self) -> Arena:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="escape-")))
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
        if self._wants_victim:
            self._victim = self._start_victim()
        self._before = self._state()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def targets(self) -> dict[str, str | int]:
        """Return what an attack is given: where to knock, never the secret itself."""
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
        """Return whether a message reached one of the sockets."""
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
        """Return whether the target folder, or any file in it, is not as it was."""
        return self._state() != self._before

    def wait_for_change(self, seconds: float) -> None:
        """Wait until something changes, up to a limit."""
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
        listener = self._stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        return listener

    def _start_victim(self) -> subprocess.Popen[bytes]:
        victim = self._stack.enter_context(
            subprocess.Popen([sys.executable, "-I", "-S", "-c", _VICTIM], stdout=subprocess.PIPE)
        )
        self._stack.callback(victim.kill)
        assert victim.stdout is not None
        victim.stdout.read(2)
        return victim

    def _state(self) -> list[tuple[str, int, int, int, bytes]]:
        """Return names, modes, sizes, times and contents of everything but the control's own home."""
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
        return _wrap(self.body)

    @property
    def second(self) -> str:
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
    return arena.victim_gone()


def flooded(arena: Arena, outcome: AttackOutcome) -> bool:
    """Its host took more output than the limits allow."""
    return outcome.accepted > (TIGHT.result_mb << 20) + (TIGHT.log_kb << 10) + (64 << 10)


# -- the control ---

_CLOCK_S: Final = 20.0
_BOUNDS: Final = [
    (resource.RLIMIT_AS, 4 << 30),
    (resource.RLIMIT_CPU, 10),
    (resource.RLIMIT_FSIZE, 64 << 20),
    (resource.RLIMIT_CORE, 0),
]

_HARNESS: Final = """
import json, resource, struct, sys
spec = json.load(open("spec.json"))
for kind, value in spec["bounds"]:
    resource.setrlimit(kind, (value, value))
data = open("prices.bin", "rb")
raw = data.read()
if spec["numpy"]:
    import numpy
    full = numpy.frombuffer(bytearray(raw), "<f8")
else:
    full = list(struct.unpack(f"<{len(raw) // 8}d", raw))
columns = {"close": full[:spec["visible"]]}


def score(prices, decisions):
    return float(sum(d * (b - a) for d, a, b in zip(decisions, prices, prices[1:])))


def main():
    space = {"__name__": "strategy"}
    exec(compile(spec["source"], "strategy.py", "exec"), space)
    out = space["run"](columns, **spec["targets"])
    print(json.dumps({"evidence": out["evidence"], "pnl": score(full, list(out["decisions"]))}))


main()
"""


def run_control(attack: Attack, arena: Arena) -> AttackOutcome:
    """Run an attack without walls and return what it brought home."""
    outcome = _run(attack.source, attack, arena)
    return _run(attack.second, attack, arena) if attack.again else outcome


def _run(source: str, attack: Attack, arena: Arena) -> AttackOutcome:
    spec = {
        "source": source,
        "targets": arena.targets(),
        "visible": VISIBLE,
        "numpy": attack.numpy,
        "bounds": _BOUNDS,
    }
    (arena.home / "spec.json").write_text(json.dumps(spec))
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
        _end_group(process)
    return _believe(output, f"exit {process.returncode}")


def _believe(output: bytes, note: str) -> AttackOutcome:
    """Take the last line for the result, and a pickle for what it says it is, as naive hosts do."""
    if output.startswith(b"\x80"):
        # In a process of its own: what it does there is what it would have done to a host that loads pickles.
        loader = [sys.executable, "-I", "-S", "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)"]
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


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nothing was left
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
