"""Golden runs: one small run of every benchmark and of both tracks, and what each says in numbers,
ids and kinds.

Everything is synthetic, every model scripted and every secret fixed. Prose (reasons, messages)
stays out, because it may be reworded, but the hash of every question is part of it: texts sent to
models do not change unnoticed. ``python tests/recorded/golden.py [NAME ...]`` writes
``expected/NAME.json`` anew; do so only for a change that is meant to move numbers, and say so.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "support"))  # of a script, no conftest does it

import scripted_misfits  # noqa: F401  # adds models
from shared_session import session_folder, session_home
from sources import FOLDERS, PYTHONPATH

import tradeassay_bench
from tradeassay.cli import main
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.llm.recording import content_id
from tradeassay_bench.play.dialogue_log import whole_messages
from tradeassay_bench.runs import CodeRun, load_run

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
SECRET = "9d" * 16
_ASK = "--first 2022-06-27 --last 2022-06-29"
_KTDFIN = "--first 2022-03-01 --last 2022-03-02"
_LINES = {
    "daily": "run daily-us-v1 daily-ashare-v1 daily-crypto-v1 -a momentum-12-1:k=3,every=2 -a "
    "random:k=4,every=2"
    " -a min-variance:every=3 -a index-hold --first 2022-03-01 --last 2022-03-04",
    "stockbench": "run stockbench-v1 -a random:k=4 -m scripted/sensible -m scripted/broken-json -m "
    "scripted/away " + _ASK,
    "stockbench-paper": f"run stockbench-paper-v1 -m scripted/overspender {_ASK}",
    "ktdfin": "run ktdfin-v1 -m scripted/sensible --mask bright,blinded"
    f" --mode memory-only,fixed-candidate,open-research {_KTDFIN}",
    "ktdfin-us": "run ktdfin-us-v1 -a reversal:k=5,every=1 -m scripted/never-submits -m "
    "scripted/future-asker"
    f" -m scripted/broken-json --mask blinded --mode open-research {_KTDFIN}",
    "ktdfin-paper": "run ktdfin-paper-v1 -m scripted/sensible --mask date-blind --mode "
    f"open-research {_KTDFIN}",
    "quantcode": "code run quantcode-v1 -m scripted/coder-mends -m scripted/coder-sma -m "
    "scripted/coder-cheat"
    " -t d-ibs-long --setting agentic --turns 4 --judge scripted/code-judge",
    "quantcode-frame": "code run quantcode-v1 -m scripted/coder-gold -m scripted/coder-silent"
    " -t d-sma-cross-long -t h-band-short --framework frame --wording conversational",
    "systrade": "code run systrade-v1 -m scripted/builder-mends --strategy bollinger --iterations "
    "3",
    "systrade-peeps": "code run systrade-v1 -m scripted/builder-peeps --strategy double-ma "
    "--iterations 1",
}
RUNS = {name: tuple(line.split()) for name, line in _LINES.items()}
"""Name of the run -> the command that plays it."""
TRADING = tuple(name for name, argv in RUNS.items() if argv[0] == "run")
SEASONS = ("arena", "arena-paper")
"""Seasons of the arena; ``expected/NAME.toml`` is what is played."""
SMALLEST = ("daily", "stockbench-paper", "ktdfin-paper", "systrade-peeps")
"""Small runs of most protocols, which the matrix of commands verifies every time."""


PROSE = frozenset(
    [
        "reason",
        "reasons",
        "note",
        "notes",
        "detail",
        "work_sha256",
        "events_sha256",
        "outcomes",
        "format",
    ]
)
"""Fields of ``scores.json`` that are words, or hashes of files that hold words."""


def play(name: str, out: Path) -> Path:
    """Play one of the runs below ``out``; returns its folder."""
    argv = RUNS[name]
    inline = ("--executor", "inline") if argv[0] == "run" else ("--workers", "1")
    main([*argv, *inline, "--runs", str(out), "--name", name, "--secret", SECRET, "--json"])
    return out / name


_PLAY = """
import golden, pathlib, sys
for name in sys.argv[2:]:
    golden.play(name, pathlib.Path(sys.argv[1]))
"""


def stored(name: str) -> Path:
    """Return the folder of one of the runs; the first of a session's processes that asks plays it
    for all.

    Those that trade are played together: to start Python takes longer than most of them.
    """
    shared, together = session_folder(), TRADING if name in TRADING else (name,)
    with (shared / f"{together[0]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name / "scores.json").exists():
            # In a process of its own: what a test has patched must not show in a run that others read.
            path = os.pathsep.join((str(HERE), str(HERE.parent / "support"), PYTHONPATH))
            environment = {**os.environ, "PYTHONPATH": path, "TRADEASSAY_HOME": str(session_home())}
            done = subprocess.run(
                [sys.executable, "-c", _PLAY, shared, *together],
                env=environment,
                capture_output=True,
                text=True,
            )
            assert (shared / name / "scores.json").exists(), done.stderr
            for one in together:
                (shared / one / "report.html").unlink(missing_ok=True)
    return shared / name


def verify(folder: Path, *, programs: bool = True) -> int:
    """Return the exit status of ``tradeassay verify``: 0 when everything is re-derived, 3 when
    not all is.
    """
    found = tradeassay_bench.verify(folder, workers=1, programs=programs)
    print(*found.violations, found.summary(), sep="\n")
    return found.exit_code


def said(folder: Path) -> dict[str, Any]:
    """Return what a run on disk says, in the neutral form, whichever format it was written in."""
    run = load_run(folder)
    return _code(run) if isinstance(run, CodeRun) else _trading(run)


def _trading(run: Any) -> dict[str, Any]:
    frames = run.frames("polars")
    words = {"decisions": ["reason"], "rejections": ["detail"]}
    tables: dict[str, dict[str, list[Any]]] = {episode.key: {} for episode in run.episodes}
    for name, frame in frames:
        if name != "scores":
            told = frame.drop(
                "benchmark", "dataset", "agent", "seed", "session", *words.get(name, ())
            )
            for key, *row in told.rows():
                tables[key].setdefault(name, []).append(row)
    return {
        "kind": "trading",
        "episodes": {key: {**_episode(run, key), **rows} for key, rows in tables.items()},
        "scores": without_prose(msgspec.to_builtins(run.scores)),
    }


def _episode(run: Any, key: str) -> dict[str, Any]:
    outcome = run.outcome(key)
    spent = (
        None if isinstance(outcome.model, msgspec.UnsetType) else msgspec.to_builtins(outcome.model)
    )
    return {
        "status": outcome.status,
        "steps": outcome.steps,
        "model": spent,
        "sessions": [record.session for record in run.records(key)],
        "orders": [
            [_order(order) for order in record.decision.orders] for record in run.records(key)
        ],
        "failures": [
            [failure.kind for failure in record.decision.failures] for record in run.records(key)
        ],
        "questions": questions(run, key),
    }


def questions(run: Any, key: str) -> list[list[Any]]:
    """Return where each question was asked, what for, and the hash of everything that it said."""
    lines = list(run.dialogue(key))
    asked = [
        sha256_of([content_id(one) for one in messages])[:16] for messages in whole_messages(lines)
    ]
    return [
        [line.step, line.purpose, line.attempt, one] for line, one in zip(lines, asked, strict=True)
    ]


def _order(order: Any) -> list[Any]:
    return [
        order.symbol,
        order.side,
        order.amount,
        order.unit,
        order.kind,
        order.limit_price,
        order.confidence,
    ]


def _roles(outcome: Any) -> Any:
    """Return what each role's answers cost, where models played and there are several."""
    roles = getattr(outcome.model, "roles", msgspec.UNSET)
    return {} if roles is msgspec.UNSET else msgspec.to_builtins(roles)


def _code(run: Any) -> dict[str, Any]:
    told = _quantcode if run.benchmark.startswith("quantcode") else _systrade
    outcomes = {item.key: outcome for item, outcome in run.outcomes()}
    return {
        "kind": "code",
        "items": {key: [found.status, _roles(found)] for key, found in outcomes.items()},
        "questions": {key: questions(run, key) for key in outcomes},
        "records": {
            key: told(msgspec.to_builtins(record)) for key, record in run.records().items()
        },
        "scores": without_prose(msgspec.to_builtins(run.scores)),
    }


def _quantcode(record: Mapping[str, Any]) -> dict[str, Any]:
    named = ("task", "setting", "wording", "framework", "solved", "stage", "failure_class")
    return {**_some(record, named), "turns": [_turn(turn) for turn in record["turns"]]}


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    found = {**_some(turn, ("number", "stage", "form", "code_sha256")), "usage": _tokens(turn)}
    evaluation = turn.get("evaluation")
    if evaluation is None:
        return found
    stages = ("compile", "backtest", "trade", "lookahead", "judge")
    behaviour, language, leak = (
        evaluation.get(name) or {} for name in ("judge_behaviour", "judge_language", "leak")
    )
    markets = (
        "market",
        "value",
        "fills",
        "exposure",
        "entries",
        "exits",
        "matched",
        "candidate_events",
    )
    return {
        **found,
        "stages": {
            name: _some(evaluation.get(name) or {}, ("status", "error_class")) for name in stages
        },
        **_some(evaluation, ("decided_by", "trades", "earned")),
        "behaviour": _some(behaviour, ("status", "agreement", "threshold")),
        "markets": [_some(market, markets) for market in behaviour.get("markets", ())],
        "language": _some(language, ("status", "judge", "attempts")),
        "criteria": [_some(one, ("name", "verdict")) for one in language.get("criteria", ())],
        "leak": _some(
            leak,
            ("verdict", "cause", "runs", "bars", "failed_runs", "screened", "unconfirmed", "fed"),
        ),
        "tricks": [trick["name"] for trick in evaluation.get("tricks", ())],
    }


def _systrade(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_some(record, ("strategy", "model", "stopped")),
        "iterations": [_iteration(one) for one in record["iterations"]],
    }


def _iteration(one: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"number": one["number"], "usage": _tokens(one)}
    submission, scored = one.get("submission"), one.get("scored")
    if submission is not None:
        found["source"] = hashlib.sha256(submission["source"].encode()).hexdigest()
    if scored is None:
        return found
    drift, trail = scored.get("drift") or {}, scored.get("trail") or {}
    return {
        **found,
        "test": _scorecard(scored["scorecard"]),
        "develop": _scorecard(scored.get("develop")),
        "drift": _some(drift, ("kind", "moved", "before", "after", "changed_lines", "budget")),
        "trail": _some(
            trail,
            ("bars", "rows", "timeframe", "first", "last", "trades", "counts", "marks", "audit"),
        ),
    }


def _scorecard(card: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if card is None:
        return None
    scores = ("corrected", "paper", "paper_parts", "overall", "complexity", "year", "data")
    regimes = [_some(one, ("regime", "decisions", "breaches")) for one in card.get("regimes") or ()]
    gates = card["gates"]
    return {
        "submission": card["submission_sha256"],
        "semantics": gates["semantics_sha256"],
        "rows": gates["rows"],
        "runs": gates["runs"],
        "gates": [_some(gate, ("name", "status", "measures")) for gate in gates["gates"]],
        "regimes": regimes,
        **without_prose(_some(card, scores)),
    }


def _some(found: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: found[name] for name in names if name in found}


def _tokens(found: Mapping[str, Any]) -> list[int]:
    usage = found.get("usage") or {}
    return [usage.get("input_tokens", 0), usage.get("output_tokens", 0)]


def without_prose(value: Any) -> Any:
    """Return a plain value without the fields that hold words."""
    if isinstance(value, Mapping):
        return {key: without_prose(one) for key, one in value.items() if key not in PROSE}
    return [without_prose(one) for one in value] if isinstance(value, list | tuple) else value


def play_season(name: str, db: Path) -> Path:
    """Play a season into a database; returns its file."""
    main(["arena", "run", "--season", str(EXPECTED / f"{name}.toml"), "--db", str(db)])
    return db


def season_said(db: Path) -> dict[str, Any]:
    """Return every decision, position, fee and value of a season's database, and its standings."""
    from tradeassay_arena.queries.snapshot import board_of

    return {
        "decisions": [list(row) for row in _decisions(db)],
        "standings": without_prose(msgspec.to_builtins(board_of(str(db)).rows)),
    }


def _decisions(db: Path) -> Iterator[tuple[Any, ...]]:
    query = """
        SELECT slots.asset, slots.session, slots.entry, slots.stage, status, action, confidence, allocation, calls,
               input_tokens, output_tokens, position_before, position, nav_before, fee, earned, nav,
               rounds.price, rounds.base_price, rounds.next_price
        FROM slots JOIN rounds ON rounds.id = slots.round ORDER BY slots.asset, slots.session, slots.entry
    """
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        yield from connection.execute(query)


def venue_hashes() -> dict[str, str]:
    """Return the hash of every registered venue's rules."""
    from tradeassay_bench.account import venues

    return {name: sha256_of(venue) for name, venue in venues.items()}


def benchmark_hashes() -> dict[str, str]:
    """Return the hash of what decides a score in every registered benchmark."""
    words = {"title", "description"}
    found = {
        benchmark.id: msgspec.to_builtins(benchmark)
        for benchmark in tradeassay_bench.list_benchmarks()
    }
    return {
        name: sha256_of({key: value for key, value in spec.items() if key not in words})
        for name, spec in found.items()
    }


def prompt_hashes() -> dict[str, str]:
    """Return the hashes of all prompt files that are shipped, by their place in their package."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in FOLDERS
        for path in sorted(folder.rglob("prompts/*.txt"))
    }


def no_sandbox() -> bool:
    """Whether this machine cannot hold untrusted code."""
    from tradeassay_programs.sandbox import ask_kernel, refusal

    return refusal(ask_kernel()) is not None


def hashes() -> dict[str, dict[str, str]]:
    """Return the hashes of what decides a score: venues, benchmarks and prompts."""
    return {"venues": venue_hashes(), "benchmarks": benchmark_hashes(), "prompts": prompt_hashes()}


def said_of(name: str, place: Path) -> Any:
    """Play a run or a season below ``place``, and return what it says."""
    if name == "hashes":
        return hashes()
    return (
        season_said(play_season(name, place / "arena.db"))
        if name in SEASONS
        else said(play(name, place))
    )


if __name__ == "__main__":
    for each in sys.argv[1:] or (*RUNS, *SEASONS, "hashes"):
        with tempfile.TemporaryDirectory() as here:
            found = said_of(each, Path(here))
        (EXPECTED / f"{each}.json").write_text(
            json.dumps(found, sort_keys=True, default=str) + "\n"
        )
