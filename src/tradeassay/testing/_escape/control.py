"""The control: the same attack in a plain subprocess, the way harnesses without a sandbox run code.

The naive harness loads all prices, hands the visible ones to the code, scores its decisions in the same process
and prints the result. It is bounded, so that an attack that succeeds hurts nobody: memory, processor time, file
size and clock have limits of its own, and whatever it left running is ended with its process group.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import subprocess
import sys
from typing import Final

from tradeassay.testing._escape.arena import VISIBLE, Arena
from tradeassay.testing._escape.attack import Attack, AttackOutcome

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
