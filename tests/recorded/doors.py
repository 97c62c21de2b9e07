"""The doors through which the recorded-run tests reach the package: the only file here to mend when rooms move.

What a run *says* is taken out in one neutral form made of numbers, ids and kinds. Prose (reasons, messages) stays
out of it, because it may be reworded. The neutral form must never change: ``expected.json`` is written in it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

import tradeassay
from tradeassay.cli import main
from tradeassay.core.hashing import sha256_of
from tradeassay.runs import CodeRun, load_run

PACKAGE = Path(tradeassay.__file__).parent
PROSE = frozenset(
    ["reason", "reasons", "note", "notes", "detail", "work_sha256", "events_sha256", "outcomes", "format"]
)
"""Fields of ``scores.json`` that are words, or hashes of files that hold words."""


def play(argv: Sequence[str], out: Path, slug: str, cassettes: Path | None = None) -> int:
    """Play a run with the command that recorded it; from recorded answers when there are any."""
    recorded = () if cassettes is None else ("--cassettes", str(cassettes), "--replay")
    inline = ("--executor", "inline") if argv[0] == "run" else ("--workers", "1")
    return main([*argv, *inline, "--out", str(out), "--slug", slug, *recorded, "--json"])


def verify(folder: Path, *, programs: bool = True) -> int:
    """Return the exit status of ``tradeassay verify``: 0 when everything is re-derived, 3 when not all is."""
    found = tradeassay.verify(folder, workers=1, programs=programs)
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
            told = frame.drop("benchmark", "dataset", "agent", "seed", "session", *words.get(name, ()))
            for key, *row in told.rows():
                tables[key].setdefault(name, []).append(row)
    return {
        "kind": "trading",
        "episodes": {key: {**_episode(run, key), **rows} for key, rows in tables.items()},
        "scores": without_prose(msgspec.to_builtins(run.scores)),
    }


def _episode(run: Any, key: str) -> dict[str, Any]:
    outcome = run.outcome(key)
    spent = None if isinstance(outcome.model, msgspec.UnsetType) else msgspec.to_builtins(outcome.model)
    return {
        "status": outcome.status,
        "steps": outcome.steps,
        "model": spent,
        "sessions": [record.session for record in run.records(key)],
        "orders": [[_order(order) for order in record.decision.orders] for record in run.records(key)],
        "failures": [[failure.kind for failure in record.decision.failures] for record in run.records(key)],
        "questions": [[line.step, line.purpose, line.attempt] for line in run.dialogue(key)],
    }


def _order(order: Any) -> list[Any]:
    return [order.symbol, order.side, order.amount, order.unit, order.kind, order.limit_price, order.confidence]


def _code(run: Any) -> dict[str, Any]:
    told = _quantcode if run.benchmark.startswith("quantcode") else _systrade
    outcomes = {item.key: outcome for item, outcome in run.outcomes()}
    return {
        "kind": "code",
        "items": {key: [found.status, msgspec.to_builtins(found.roles)] for key, found in outcomes.items()},
        "records": {key: told(msgspec.to_builtins(record)) for key, record in run.records().items()},
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
    markets = ("market", "value", "fills", "exposure", "entries", "exits", "matched", "candidate_events")
    return {
        **found,
        "stages": {name: _some(evaluation.get(name) or {}, ("status", "error_class")) for name in stages},
        **_some(evaluation, ("decided_by", "trades", "earned")),
        "behaviour": _some(behaviour, ("status", "agreement", "threshold")),
        "markets": [_some(market, markets) for market in behaviour.get("markets", ())],
        "language": _some(language, ("status", "judge", "attempts")),
        "criteria": [_some(one, ("name", "verdict")) for one in language.get("criteria", ())],
        "leak": _some(leak, ("verdict", "cause", "runs", "bars", "failed_runs", "screened", "unconfirmed", "fed")),
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
            trail, ("bars", "rows", "timeframe", "first", "last", "trades", "counts", "marks", "audit")
        ),
    }


def _scorecard(card: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if card is None:
        return None
    scores = ("sound", "paper", "paper_parts", "overall", "complexity", "year", "data")
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


def play_season(file: Path, db: Path) -> int:
    """Play a season into a database; stopped or not, its end is the same."""
    return main(["arena", "run", "--season", str(file), "--db", str(db)])


def season_said(db: Path) -> dict[str, Any]:
    """Return every decision, position, fee and value of a season's database, and its standings."""
    from tradeassay.arena.queries.snapshot import board_of

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
    from tradeassay.account import venues

    return {name: sha256_of(venue) for name, venue in venues.items()}


def benchmark_hashes() -> dict[str, str]:
    """Return the hash of what decides a score in every registered benchmark."""
    words = {"title", "description"}
    found = {benchmark.id: msgspec.to_builtins(benchmark) for benchmark in tradeassay.list_benchmarks()}
    return {
        name: sha256_of({key: value for key, value in spec.items() if key not in words})
        for name, spec in found.items()
    }


def prompt_hashes() -> dict[str, str]:
    """Return the hashes of all prompt files that are shipped, by their place in the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(PACKAGE.rglob("prompts/*.txt"))
    }


def no_sandbox() -> bool:
    """Whether this machine cannot hold untrusted code."""
    from tradeassay.sandbox import ask_kernel, refusal

    return refusal(ask_kernel()) is not None


def replayed(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a run says without where its answers came from: live once, recorded the second time."""
    if found["kind"] == "code":
        return found
    episodes = {}
    for key, episode in found["episodes"].items():
        model = episode["model"] and {name: one for name, one in episode["model"].items() if name != "answers"}
        episodes[key] = {**episode, "model": model}
    return {**found, "episodes": episodes}
