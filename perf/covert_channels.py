"""Measure how many bits one job of the sandbox can pass to the next, by every channel known to us.

``python perf/covert_channels.py [--rounds N] [--json FILE]``. In each round a sender job gets a
random bit and acts on it or not. Then a reader job takes a measurement. A rule (threshold and side)
is fitted on the first half of the rounds and tested on the second. Bits per job are 1 - H(error),
with the upper end of its 95 % interval. ``together`` runs both jobs at once, as two workers do. Run
it on an idle machine, because other load hides a channel.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable

import click
import numpy as np

from tradeassay.metrics.intervals import wilson_interval
from tradeassay_programs.sandbox import Job, JobLimits, SandboxPool

LIMITS = JobLimits(cpu_s=10, wall_s=60.0, memory_mb=1500)
HEAD = """
import os, sys, time, signal
import numpy as np
def names(number):
    return [f"{os.path.dirname(os.__file__)}/bit-{number}-{place}" for place in range(200)]
def library(number):
    root, found = os.path.dirname(np.__file__), []
    for folder, folders, files in os.walk(root):
        folders.sort()
        found += [os.path.join(folder, name) for name in sorted(files) if name.endswith((".py", ".pyi", ".h"))]
    return found[-1 - int(number) % len(found)]
def quietly(function, *given):
    try:
        return function(*given)
    except OSError:
        return None
def clocked(function, *given):
    start = time.perf_counter_ns()
    quietly(function, *given)
    return float(time.perf_counter_ns() - start)
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def loop():
    return sum(range(200_000))
"""
# What the sender does for a 1, what the reader measures, whether both run at once.
CHANNELS = {
    "descriptor": ("os.set_blocking(0, False)", "float(os.get_blocking(0))", False),
    "page": (
        "open(library(number), 'rb').read()",
        "clocked(lambda: open(library(number), 'rb').read())",
        False,
    ),
    "page put out": (
        "quietly(lambda: os.posix_fadvise(os.open(np.__file__, 0), 0, 0, os.POSIX_FADV_DONTNEED))",
        "clocked(lambda: open(np.__file__, 'rb').read())",
        False,
    ),
    "dentry": (
        "[quietly(os.stat, name) for name in names(number)]",
        "sum(clocked(os.stat, n) for n in names(number))",
        False,
    ),
    "pid": ("[quietly(os.fork) for _ in range(3)]", "float(os.getpid())", False),
    "inode": ("[quietly(os.pipe) for _ in range(25)]", "float(os.fstat(1).st_ino)", False),
    "free memory": ("bytes(bytearray(700 << 20))", "float(os.sysconf('SC_AVPHYS_PAGES'))", True),
    "memory pressure": (
        "bytes(bytearray(700 << 20))",
        "clocked(lambda: bytes(bytearray(64 << 20)))",
        False,
    ),
    "CPU frequency": ("spin(0.2)", "clocked(loop)", False),
    "timing, one after the other": ("spin(0.05)", "min(clocked(loop) for _ in range(20))", False),
    "timing, at once": ("spin(0.4)", "np.median([clocked(loop) for _ in range(30)])", True),
}


def _job(body: str) -> Callable[[int, int], Job]:
    def made(number: int, bit: int) -> Job:
        source = f"{HEAD}\ndef run(columns, number, bit):\n    {body}\n"
        return Job(
            source=source,
            pass_as="columns",
            params={"number": number, "bit": bit},
            limits=LIMITS,
            guard_imports=False,
            fail_on=frozenset(),
        )

    return made


def measure(
    pool: SandboxPool, name: str, rounds: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    send, look, together = CHANNELS[name]
    sender = _job(f"(({send}) if bit else None); return {{'a': [0.0]}}")
    reader = _job(f"return {{'a': [float({look})]}}")
    bits, seen = rng.integers(0, 2, rounds), []
    start = int(rng.integers(0, 10**6))
    for number, bit in enumerate(bits.tolist()):
        sent = pool.submit(sender(start + number, bit))
        if not together:
            sent.result()
        seen.append(float(pool.run(reader(start + number, 0)).need()["a"][0]))
        sent.result()
    return bits, np.array(seen)


def bits_per_job(bits: np.ndarray, seen: np.ndarray) -> tuple[float, float]:
    """Return the information in the second half of a rule fitted on the first, in bits, and its
    upper bound.
    """
    half = len(bits) // 2
    candidates = [(limit, side) for limit in np.unique(seen[:half]) for side in (0, 1)]
    limit, side = max(
        candidates, key=lambda one: ((seen[:half] > one[0]) ^ one[1] == bits[:half]).sum()
    )
    right = int(((seen[half:] > limit) ^ side == bits[half:]).sum())
    low, high = wilson_interval(right, len(bits) - half, 0.95)
    point = right / (len(bits) - half)
    return _bits(point) if point > 0.5 else 0.0, max(_bits(low) if low > 0.5 else 0.0, _bits(high))


def _bits(right: float) -> float:
    if right in (0.0, 1.0):
        return 1.0
    return (
        1.0 + right * math.log2(right) + (1 - right) * math.log2(1 - right) if right > 0.5 else 0.0
    )


@click.command()
@click.option("--rounds", default=200)
@click.option("--only", multiple=True)
@click.option("--json", "file", type=click.Path())
def main(rounds: int, only: tuple[str, ...], file: str | None) -> None:
    """Measure all channels."""
    found = {}
    with SandboxPool(workers=2) as pool:
        for name in only or CHANNELS:
            bits, most = bits_per_job(
                *measure(pool, name, rounds, np.random.default_rng(len(name)))
            )
            found[name] = {"bits": round(bits, 3), "at most": round(most, 3), "rounds": rounds}
            print(f"{name:30s} {bits:6.3f} bits per job, at most {most:.3f}", flush=True)
    if file:
        with open(file, "w", encoding="utf-8") as out:
            json.dump(found, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
