"""Write ``docs/evidence/real-models.md`` from the recordings: the results of small real models.

    python scripts/results_page.py

Every number below the introduction comes from a recording's own scores, outcomes and label.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.metrics import wilson_interval
from tradeassay.metrics.ranks import MOST_FAILED
from tradeassay_arena.recording import STANDINGS
from tradeassay_arena.season import BASELINE
from tradeassay_arena.standings import Standings
from tradeassay_bench.runs import CodeRun, Run, load_run
from tradeassay_bench.runs.store.archive import OpenRecording, list_recordings, open_recording

PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "real-models.md"

HEAD = """# What two small real models do

Two open models ran the benchmarks like any other model: with the same prompts and rules, and with every answer
recorded (`recordings list` names engine and precision). `scripts/results_page.py` writes this page from those
recordings. Replay them with

<!-- needs: time -->
```text
tradeassay recordings list
tradeassay run ktdfin-v1 --recordings recorded/qwen2.5-coder-1.5b --replay
```

**Summary.** Qwen2.5-Coder-1.5B answers in the right form on 97 % of the days of KTD-Fin. Otherwise it asks for
weights above 1 or exceeds its token limit. It mostly repeats targets that are already met, without a trade.
On StockBench half of its days have no valid answer, mostly because it tries to spend all of its cash on each of
several stocks. The other days have no order. Four of five of its QuantCode programs compile, one in twenty runs, and
none solves its task. Half of its SysTradeBench submissions are valid, and none passes the scenarios. SmolLM2, with 135
million parameters, gives no valid answer on any day of KTD-Fin and StockBench. One of its programs runs, and none
trades.

**Failures.** Questions show the form of an answer with placeholders, and no rule depends on the length of a name.
Days without a valid answer can therefore be compared between masks.

**Conclusions from models of this size.** The prompts can be followed, and the page shows token use and kinds of
failures. The models cannot show trading skill, because the windows are short and the intervals wide. A dash is a
number that could not be computed.

**Other Python versions.** The models ran on Python 3.12. Every recording replays on Python 3.11. Three programs got a
different error message there, but their later answers are unchanged. Recordings of programs are refused under versions
that differ from the recorded ones.

**Missing data.** The mask probe is stored as numbers, without answers, because its questions show real prices that we
cannot ship.
"""


def shown(measure: Measure | None, form: str = ".1%") -> str:
    """Format a measure with its interval."""
    if measure is None or measure.value is None:
        return "-"
    text = format(measure.value, form)
    if measure.low is None or measure.high is None:
        return text
    return f"{text} ({format(measure.low, form)} to {format(measure.high, form)})"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Format a table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def trading(run: Run) -> str:
    """Format a trading run: returns, failed days and tokens, by setting."""
    rows, baselines, unanswered = [], set(), Counter[str]()
    for one in run.scores.agents:
        measures = {name: found.median for name, found in one.measures.items()}
        if one.baseline:
            baselines.add(f"{one.agent} {shown(measures.get('cumulative_return'))}")
            continue
        played = [episode for episode in run.scores.episodes if episode.key in one.episodes]
        kinds = sum((Counter(episode.failures) for episode in played), Counter[str]())
        if measures["failure_rate"].value == 1:
            unanswered += kinds + Counter({"settings": 1})
            continue
        outcomes = [run.outcome(episode.key) for episode in played]
        spent = [one.spending for one in outcomes if one is not None and one.spending is not None]
        setting = one.setting.split("__")[-1] if one.setting.count("__") > 1 else ""
        row = [
            ", ".join(part for part in setting.split("+") if not part.startswith("max_tokens"))
            or "all"
        ]
        row += [
            shown(measures.get("cumulative_return")),
            shown(measures.get("failure_rate"), ".0%"),
        ]
        row += [
            shown(measures.get("abstention_rate"), ".0%"),
            shown(measures.get("turnover"), ".2f"),
        ]
        row += [", ".join(f"{kind} {count}" for kind, count in kinds.most_common(3)) or "-"]
        rows.append((*row, f"{sum(one.calls for one in spent)}"))
    head = (
        "setting",
        "return",
        "days without a valid answer",
        "without an order",
        "turnover",
        "failures",
        "questions",
    )
    parts = [f"Baseline: {'; '.join(sorted(baselines))}."] + [table(head, rows)] * bool(rows)
    if settings := unanswered.pop("settings", 0):
        failures = ", ".join(f"{kind} {count}" for kind, count in unanswered.most_common(3))
        parts.append(
            f"No valid answer on any day of {settings} setting{'s' * (settings > 1)}: {failures}."
        )
    return "\n\n".join(parts)


def quantcode(run: CodeRun) -> str:
    """Format a run of QuantCode: the stages that the programs reached."""
    rows = []
    stages = ("compile", "backtest", "trade", "judge")
    for cell in run.scores.cells:
        rates = cell.rates
        found = [shown(getattr(rates, stage), ".1%") for stage in stages]
        rows.append((cell.setting, cell.wording, str(rates.items), str(rates.failed), *found))
    text = table(("setting", "wording", "programs", "no answer", *stages), rows)
    ends: Counter[str] = Counter()
    for record in run.records().values():
        ends[str(record.failure_class or "solved")] += 1
    last = ", ".join(f"{name} {count}" for name, count in ends.most_common(10))
    codes = [turn.code for record in run.records().values() for turn in record.turns]
    held = sum(code is not None for code in codes)
    whole = sum(code is not None and parses(code) for code in codes)
    return (
        f"{text}\n\nLast programs by outcome: {last}. Answers with a program: "
        f"{_of(held, len(codes))}; "
        f"one that parses: {_of(whole, len(codes))}."
    )


def _of(count: int, total: int) -> str:
    low, high = wilson_interval(count, total, 0.95)
    return f"{count} of {total} ({low:.0%} to {high:.0%})"


def parses(code: str) -> bool:
    """Return whether a whole text is valid Python."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def systrade(run: CodeRun) -> str:
    """Format a run of SysTradeBench: gates and scores."""
    parts = []
    for model in run.scores.models:
        gates = [(name, shown(rate, ".0%")) for name, rate in model.gates.items()]
        scores = [(name, shown(score, ".2f")) for name, score in model.scores.items()]
        handed = sum(
            any(one.submission is not None for one in record.iterations)
            for record in run.records().values()
        )
        parts += [
            f"{model.items} strategies, {model.unanswered} without an answer, {handed} with a "
            "readable "
            f"submission; valid: {shown(model.valid, '.0%')}.",
            table(
                tuple(name for name, _ in [*gates, *scores]),
                [tuple(value for _, value in [*gates, *scores])],
            ),
        ]
    return "\n\n".join(parts)


def spent(opened: OpenRecording) -> str:
    """Format the facts on a recording's label."""
    label = opened.label
    return (
        f"Recorded {label.recorded}; "
        f"{label.answers:,} answers, {label.input_tokens:,} tokens read, {label.output_tokens:,} "
        "written."
    )


def body(opened: OpenRecording) -> str:
    """Format one recording."""
    if opened.is_season:
        return arena(opened)
    run: Any = load_run(opened.folder)
    if isinstance(run, Run):
        return trading(run)
    return quantcode(run) if run.benchmark.startswith("quantcode") else systrade(run)


_ARENA = ("CR", "MDD")


def arena(opened: OpenRecording) -> str:
    """Format a season of the arena: the standings, and the entries without decisions."""
    board = msgspec.json.decode((opened.folder / STANDINGS).read_bytes(), type=Standings)
    unranked = [row for row in board.rows if row.rank is None and row.entry != BASELINE]
    rows = [
        (
            row.entry,
            row.model or "rule",
            str(row.sessions),
            str(row.failed + row.missed),
            *("not ranked" if row in unranked else shown(row.measures[one]) for one in _ARENA),
        )
        for row in [*(row for row in board.rows if row not in unranked), *unranked]
    ]
    text = table(
        ("entry", "model", "sessions", "rounds without a decision", "return", "deepest loss"), rows
    )
    if unranked:
        text += (
            f"\n\nAn entry without a decision in more than {MOST_FAILED:.0%} of the rounds kept "
            "its earlier "
            "position, so its return does not measure the model."
        )
    return text


def beside(folders: Sequence[Path]) -> list[str]:
    """Format the JSON results that are stored with the models' recordings: mask probes, models as
    judges.
    """
    reports = [
        json.loads(file.read_text())
        for folder in folders
        if (file := folder / "probe.json").is_file()
    ]
    masks = list(dict.fromkeys(row["mask"] for report in reports for row in report["rows"]))
    found: dict[tuple[str, str], str] = {}
    for row in (row for report in reports for row in report["rows"]):
        cells = [row["of_all"][name]["value"] for name in ("top_1", "date_1", "joint")]
        found[row["attacker"], row["mask"]] = " / ".join(
            "-" if c is None else f"{c:.0%}" for c in cells
        )
    attackers = sorted({name for name, _ in found}, key=lambda name: ("/" not in name, name))
    judges = {
        one["judge"]: (
            one["judge"],
            _plain(one["false_rejects"]),
            _plain(one["false_accepts"]),
            one.get("note") or one["false_rejects"]["reason"] or "-",
        )
        for folder in folders
        if (file := folder / "judge.json").is_file()
        for one in json.loads(file.read_text())["judges"]
    }
    audits = {
        folder.name: [*json.loads(file.read_text()).values()]
        for folder in folders
        if (file := folder / "recall.json").is_file()
    }
    moves = [
        _range(one["rows"]["moves"]["hit"]["value"] for one in audits[name])
        for name in sorted(audits)
    ]
    first = _range(one["first"]["value"] for each in audits.values() for one in each)
    return [
        "## Recall of real prices",
        "Recall cannot be told (Qwen2.5-Coder on skfolio-sp500: none shown), because the answers "
        "are too "
        "similar: "
        f"Qwen2.5-Coder is right about {moves[0]} % of the moves (SmolLM2 {moves[1]}), no close "
        "and no level; "
        f"the truth is likeliest of five in {first} %. `tradeassay memory recall -m "
        "local/smollm2 --dataset fakestockdata --questions 800 --samples 1 --logprobs 80 "
        "--recordings "
        "recorded/smollm2 --replay`",
        f"## The mask probe ({reports[0]['benchmark']})",
        f"Share of {reports[0]['rows'][0]['response']['n']} questions with the right name / day / "
        "both. `bright` "
        "hides nothing and checks that the model understands the question. `levels`, `grid` and "
        "`match` are programs "
        "that know the real prices.",
        table(
            ("attacker", *masks),
            [(name, *(found[name, mask] for mask in masks)) for name in attackers],
        ),
        "## The models as judges of programs: references they reject, decoys they accept",
        table(("judge", "rejects a reference", "accepts a decoy", "note"), list(judges.values())),
    ]


def _range(values: Iterable[float]) -> str:
    shares = sorted(round(100 * one) for one in values)
    return f"{shares[0]} to {shares[-1]}"


def _plain(value: Any) -> str:
    if isinstance(value, dict) and "value" in value:
        if value["value"] is None:
            return "-"
        low, high, n = value.get("low"), value.get("high"), value.get("n")
        span = "" if low is None else f" ({low:.1%} to {high:.1%})"
        return f"{value['value']:.1%}{span}" + (f" of {n}" if n else "")
    return f"{value:.3g}" if isinstance(value, float) else "-" if value is None else str(value)


def render() -> str:
    """Return the page."""
    parts, left_out, folders = [HEAD.strip()], [], dict[str, Path]()
    for info in list_recordings():
        name, _, what = info.name.partition("/")
        if not info.label.complete:
            left_out.append(
                f"`{info.name}` was not finished ({info.label.answers} answers are in it)"
            )
            continue
        if name not in folders:
            parts.append(f"## {name}")
            folders[name] = Path(info.path).parent
        opened = open_recording(Path(info.path))
        parts += [f"### {', '.join(info.label.benchmarks)} ({what})", spent(opened), body(opened)]
    parts += beside(list(folders.values()))
    if left_out:
        parts.append("## What is missing\n\n" + "\n".join(f"- {line}" for line in left_out))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
