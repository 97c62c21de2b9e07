"""What the product says today, in numbers: the fixture that stays green while code moves.

Each set is a list of commands as a user gives them. Numbers, truth values and single words of
their JSON are kept. Sentences, paths, hashes and times may change while no number moves, so only
their presence is kept. ``python tests/journeys/frozen.py [NAME ...]`` writes ``expected/NAME.json``
anew: do that only for a change that is meant to move a number, and say so in the commit. With
``--rename`` it accepts renamed keys and words, and stops where a number moved."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
RECORDINGS = HERE.parents[1] / "recordings" / "src" / "tradeassay_recordings"

TOLERANCE = 1e-9
"""Relative difference up to which two numbers are equal."""
LONG_LIST = 24
"""A longer list of numbers is kept as its count, ends, sum and sum of squares."""
HIDDEN = "..."
"""Stands for a text that may change: a sentence, a path, a hash, a time."""
VOLATILE = {
    "seconds",
    "wall_seconds",
    "cpu_seconds",
    "cpu_s",
    "started",
    "ended",
    "created",
    "version",
    "versions",
}
"""Keys whose values depend on the machine or the moment."""

PAPERS = ("stockbench", "ktdfin", "ama", "quantcode", "systrade")
SECRET = "9d" * 16
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.+*-]{0,39}")
_HASH = re.compile(r"[0-9a-f]{8,}")


# --- The commands ---------------------------------------------------------------------------------


def commands(name: str, folder: Path) -> list[list[str]]:
    """Return the commands of a set, without ``tradeassay`` and ``--json``."""
    if name == "demo":
        return [["demo", "--runs", "runs", "--workers", "2"]]
    if name == "programs":
        return [
            ["code", "validate", "--sample", "12", "--secret", SECRET, "--workers", "2"],
            ["code", "validate", "--look-ahead", "7", "--workers", "2"],
        ]
    if name == "accounts":
        return list(account_commands(folder))
    paper = name.removeprefix("paper-")
    recorded = [
        "--recordings",
        "recorded/qwen2.5-coder-1.5b",
        "--recordings",
        "recorded/smollm2",
        "--replay",
    ]
    return [["reproduce", paper, *recorded, "--runs", "runs"]]


SETS = ("demo", *(f"paper-{paper}" for paper in PAPERS), "programs", "accounts")


def account_commands(folder: Path) -> Iterator[list[str]]:
    """Write twenty accounts of known nature, and yield the command that judges each."""
    for seed in range(20):
        file = folder / f"account-{seed:02d}.csv"
        file.write_text(account_csv(seed))
        words = ["assay", "file", file.name, "--benchmark", "market", "--column", "return"]
        if seed % 4 == 3:
            words += ["--tries", "20"]
        yield words


def account_csv(seed: int) -> str:
    """Return a table of daily returns of an account and its market.

    The five natures take turns: luck, the market at a weight, skill, rare large losses, cash."""
    generator = np.random.default_rng(1000 + seed)
    sessions = 250 * (1 + seed % 3) + 6
    market = 0.0003 + 0.011 * generator.standard_t(5, sessions) / math.sqrt(5 / 3)
    noise = 0.006 * generator.standard_normal(sessions)
    nature = seed % 5
    if nature == 0:
        account = noise
    elif nature == 1:
        account = (0.5 + 0.1 * seed) * market
    elif nature == 2:
        account = 0.6 * market + noise + 0.0008
    elif nature == 3:
        account = np.where(generator.random(sessions) < 0.01, -0.05, 0.0009) + 0.2 * noise
    else:
        account = np.full(sessions, 0.00008)
    days = np.busday_offset("2019-01-02", np.arange(sessions), roll="forward")
    lines = ["date,return,market"]
    for day, own, other in zip(days, account, market, strict=True):
        lines.append(f"{day},{own:.10f},{other:.10f}")
    return "\n".join(lines) + "\n"


def answer(words: list[str], folder: Path) -> Any:
    """Give one command in ``folder`` and return its exit status and reduced JSON."""
    environment = {**os.environ, "TRADEASSAY_RECORDINGS": str(RECORDINGS)}
    program = [sys.executable, "-m", "tradeassay", *words, "--json"]
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
    if not done.stdout.strip():
        raise AssertionError(f"{' '.join(words)} printed nothing: {done.stderr.strip()[-800:]}")
    return {"status": done.returncode, "said": reduced(json.loads(done.stdout))}


def played(name: str) -> dict[str, Any]:
    """Give all commands of a set in an empty folder."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return {" ".join(words): answer(words, folder) for words in commands(name, folder)}


# --- What is kept ---------------------------------------------------------------------------------


def reduced(value: Any) -> Any:
    """Keep numbers, truth values and single words; replace other texts by ``HIDDEN``."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            if key not in VOLATILE:
                kept[hidden(key)] = reduced(item)
        return kept
    if isinstance(value, list):
        if len(value) > LONG_LIST and all(_is_number(item) for item in value):
            numbers = [float(item) for item in value]
            return {
                "count": len(numbers),
                "first": numbers[0],
                "last": numbers[-1],
                "sum": math.fsum(numbers),
                "squares": math.fsum(number * number for number in numbers),
            }
        return [reduced(item) for item in value]
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and not _HASH.fullmatch(value) else HIDDEN
    return value


def hidden(key: str) -> str:
    """Return a key, with hashes in it hidden."""
    return _HASH.sub(HIDDEN, key)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- What differs ---------------------------------------------------------------------------------


class Renames:
    """Old words and the new ones that stand in their place, each always for the same."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self.new: dict[str, str] = {}

    def accepts(self, old: str, new: str) -> bool:
        """Return whether ``new`` may stand where ``old`` stood."""
        if old == new:
            return True
        return self.allowed and self.new.setdefault(old, new) == new


def differences(now: Any, then: Any, renames: Renames, place: str = "") -> Iterator[str]:
    """Yield a line for each place where ``now`` differs from ``then``."""
    if isinstance(now, dict) and isinstance(then, dict):
        yield from _differences_of_keys(now, then, renames, place)
    elif isinstance(now, list) and isinstance(then, list):
        if len(now) != len(then):
            yield f"{place}: {len(now)} entries instead of {len(then)}"
            return
        for number, (item, old) in enumerate(zip(now, then, strict=True)):
            yield from differences(item, old, renames, f"{place}/{number}")
    elif _is_number(now) and _is_number(then):
        # The last digits of a sum around zero depend on its order, so zero has a width of its own.
        if not math.isclose(now, then, rel_tol=TOLERANCE, abs_tol=1e-12):
            yield f"{place}: {now!r} instead of {then!r}"
    elif isinstance(now, str) and isinstance(then, str):
        if not renames.accepts(then, now):
            yield f"{place}: {now!r} instead of {then!r}"
    elif now is not then:
        yield f"{place}: {now!r} instead of {then!r}"


def _differences_of_keys(
    now: dict[str, Any], then: dict[str, Any], renames: Renames, place: str
) -> Iterator[str]:
    if not renames.allowed:
        for key in sorted(now.keys() ^ then.keys()):
            yield f"{place}/{key}: {'new' if key in now else 'missing'}"
        for key in now.keys() & then.keys():
            yield from differences(now[key], then[key], renames, f"{place}/{key}")
        return
    if len(now) != len(then):
        yield f"{place}: {len(now)} keys instead of {len(then)}: {sorted(now.keys() ^ then.keys())}"
        return
    for (key, item), (old_key, old) in zip(now.items(), then.items(), strict=True):
        if renames.accepts(old_key, key):
            yield from differences(item, old, renames, f"{place}/{key}")
        else:
            yield f"{place}: the key {key} in place of {old_key}"


# --- Writing the expected files -------------------------------------------------------------------


def expected(name: str) -> dict[str, Any]:
    """Return what the commands of a set said when the fixture was written."""
    return json.loads((EXPECTED / f"{name}.json").read_text())


def write(name: str, said: dict[str, Any]) -> None:
    """Write the expected file of a set, one line per command."""
    lines = []
    for command, what in said.items():
        lines.append(f"{json.dumps(command)}: {json.dumps(what, separators=(',', ':'))}")
    (EXPECTED / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    """Write the expected files of the sets that are named, or of all."""
    renaming = "--rename" in sys.argv
    names = [word for word in sys.argv[1:] if word != "--rename"] or SETS
    for name in names:
        said = played(name)
        if renaming:
            moved = list(
                differences(
                    list(said.values()), list(expected(name).values()), Renames(allowed=True)
                )
            )
            if moved:
                sys.exit(f"{name}: more than names changed:\n" + "\n".join(moved[:20]))
        write(name, said)
        print(name, len(said), "commands")


if __name__ == "__main__":
    main()
