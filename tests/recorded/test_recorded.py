"""Golden runs are played again: numbers, ids and the texts that models are sent stay; prose may
be reworded.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import golden  # noqa: E402  # beside this file, which is no package

pytestmark = pytest.mark.journey

needs_walls = pytest.mark.skipif(
    golden.no_sandbox(), reason="this machine cannot hold untrusted code"
)
PLAYED = [
    pytest.param(name, marks=needs_walls if argv[0] == "code" else ())
    for name, argv in golden.RUNS.items()
]


def expected(name):
    return json.loads((golden.EXPECTED / f"{name}.json").read_bytes())


def same(found, wanted):
    """Compare two plain values: numbers to 1e-12, everything else exactly; names where they
    differ.
    """
    plain = json.loads(json.dumps(found, default=str))
    differing = list(_differences(plain, wanted, ""))
    assert not differing, "\n".join(differing[:20])


def _differences(found, wanted, place):
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*found, *wanted}):
            if (key in found) != (key in wanted):
                yield f"{place}/{key}: {'new' if key in found else 'missing'}"
            else:
                yield from _differences(found[key], wanted[key], f"{place}/{key}")
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(found) != len(wanted):
            yield f"{place}: {len(found)} instead of {len(wanted)} entries"
        for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
            yield from _differences(one, other, f"{place}/{number}")
    elif (
        isinstance(wanted, float) and isinstance(found, float | int) and not isinstance(found, bool)
    ):
        if not math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12):
            yield f"{place}: {found!r} instead of {wanted!r}"
    elif found != wanted:
        yield f"{place}: {found!r} instead of {wanted!r}"


@pytest.mark.parametrize("name", PLAYED)
def test_a_golden_run_says_what_it_said_and_is_verified(name, capsys):
    folder = golden.stored(name)
    same(golden.said(folder), expected(name))
    if name in golden.SMALLEST:
        return  # the matrix verifies it
    believed = golden.RUNS[name][0] == "code"  # programs are examined again in the tests of runs
    assert golden.verify(folder, programs=False) == (3 if believed else 0), capsys.readouterr().out


@pytest.mark.parametrize("name", golden.SEASONS)
def test_a_golden_season_says_what_it_said(name, tmp_path):
    same(golden.season_said(golden.play_season(name, tmp_path / "arena.db")), expected(name))


def test_what_decides_a_score_is_frozen():
    """A venue, a benchmark or a prompt that changes gets a version of its own."""
    frozen, now = expected("hashes"), golden.hashes()
    for kind, hashes in frozen.items():
        assert {name: now[kind].get(name) for name in hashes} == hashes, kind
