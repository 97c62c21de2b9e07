"""Runs that were recorded once are read, verified and played again: numbers and ids stay, prose may be reworded.

Played again from recorded answers, a run also proves that every text sent to a model is still the same, byte for
byte: an answer is found by the hash of its question.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tradeassay.core.errors import TradeassayWarning

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import doors  # noqa: E402  # beside this file, which is no package
from record import RUNS, SEASONS  # noqa: E402

V1 = HERE / "v1"
needs_walls = pytest.mark.skipif(doors.no_sandbox(), reason="this machine cannot hold untrusted code")
PLAYED = [pytest.param(name, marks=needs_walls if argv[0] == "code" else ()) for name, argv in RUNS.items()]


def expected(name: str) -> Any:
    return json.loads((V1 / name / "expected.json").read_bytes())


def same(found: Any, wanted: Any) -> None:
    """Compare two plain values: numbers to 1e-12, everything else exactly; names where they differ."""
    plain = json.loads(json.dumps(found, default=str))
    differing = list(_differences(plain, wanted, ""))
    assert not differing, "\n".join(differing[:20])


def _differences(found: Any, wanted: Any, place: str) -> Iterator[str]:
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
    elif isinstance(wanted, float) and isinstance(found, float | int) and not isinstance(found, bool):
        if not math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12):
            yield f"{place}: {found!r} instead of {wanted!r}"
    elif found != wanted:
        yield f"{place}: {found!r} instead of {wanted!r}"


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_says_what_it_said(name: str) -> None:
    same(doors.said(V1 / name / "run"), expected(name))


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_is_verified(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    believed = RUNS[name][0] == "code"
    assert doors.verify(V1 / name / "run", programs=False) == (3 if believed else 0), capsys.readouterr().out


@pytest.mark.slow
@needs_walls
@pytest.mark.parametrize("name", [name for name, argv in RUNS.items() if argv[0] == "code"])
def test_the_programs_of_a_recorded_run_are_examined_again(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doors.verify(V1 / name / "run") == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", PLAYED)
def test_a_recorded_run_is_played_again(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = V1 / name / "run"
    doors.play(RUNS[name], tmp_path, name, recorded if (recorded / "models").is_dir() else None)
    same(doors.replayed(doors.said(tmp_path / name)), doors.replayed(expected(name)))


@pytest.mark.parametrize("name", SEASONS)
def test_a_recorded_season_is_played_again(name: str, tmp_path: Path) -> None:
    assert doors.play_season(V1 / name / "season.toml", tmp_path / "again.db") == 0
    same(doors.season_said(tmp_path / "again.db"), expected(name))


def test_a_recorded_season_says_what_it_said(tmp_path: Path) -> None:
    shutil.copy(V1 / "arena" / "arena.db", tmp_path / "arena.db")
    with pytest.warns(TradeassayWarning, match="is converted from format 1 to"):
        same(doors.season_said(tmp_path / "arena.db"), expected("arena"))


def test_venues_and_benchmarks_of_existing_versions_are_frozen() -> None:
    frozen = json.loads((V1 / "hashes.json").read_bytes())
    for kind, found in (("venues", doors.venue_hashes()), ("benchmarks", doors.benchmark_hashes())):
        assert {name: found.get(name) for name in frozen[kind]} == frozen[kind]


def test_prompts_of_existing_versions_are_frozen() -> None:
    """Wherever a prompt's file lies today, its bytes are there."""
    frozen = json.loads((V1 / "hashes.json").read_bytes())["prompts"]
    found = set(doors.prompt_hashes().values())
    assert not {name for name, digest in frozen.items() if digest not in found}
