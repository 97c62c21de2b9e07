"""One truth: whatever a run or an account says, it says the same on every surface.

Runs and accounts are drawn at random, every claim is read back from the terminal, the pages, Markdown, LaTeX, CSV,
JSON, a notebook, a tracker, the site and Python, and each must be the recorded one.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest
from claims import (
    Surface,
    claims,
    contradictions,
    foreign_intervals,
    plain,
    recorded,
    run_against_assay,
    visible,
    wrong_comparisons,
)
from drawn import drawn_account, drawn_run
from rich.console import Console

import tradeassay
from tradeassay.report import paste, paste_tables, terminal, write_html, write_site
from tradeassay.report.tracking import tracked
from tradeassay.report.verdicts import VerdictBoard
from tradeassay.runs import Run
from tradeassay.runs.summary import RunSummary, summary_of

QUICK_RUNS, QUICK_ACCOUNTS = 6, 14
RUNS, ACCOUNTS = 100, 200


def _printed(what: object) -> str:
    out = io.StringIO()
    Console(file=out, width=400).print(what)
    return plain(out.getvalue())


def _of_run(run: Run, data: RunSummary, folder: Path) -> tuple[list[Surface], str]:
    shown = tradeassay.load_run(run.folder, home=run.home)
    page = shown.report(folder / f"{run.name}.html").read_text()
    # LaTeX shows a few columns unless it is asked for all.
    every = {"latex": tuple(dict.fromkeys(name for table in paste_tables(run) for name in table.columns[1:]))}
    forms = [
        Surface(form, plain(paste(run, form, every.get(form, ())).replace("\\", "").replace("{scriptsize[", " [")))
        for form in ("md", "latex", "csv", "card")
    ]
    return [
        Surface("terminal", _printed(terminal(run))),
        Surface("page", visible(page)),
        Surface("notebook", visible(shown._repr_html_())),
        *forms,
    ], page


def _wrong_cells(run: Run, data: RunSummary, texts: dict[str, str]) -> list[str]:
    """Return entries of tables that are not the recorded measure, or that a format or the tracker lacks."""
    wrong: list[str] = []
    tracker = set(tracked(run)[1].values())
    for cell, table in zip(data.cells, paste_tables(run), strict=True):
        rows = {one.name: one for one in cell.agents}
        for entries in table.rows:
            said = dict(zip(table.columns, entries, strict=True))
            agent = rows[said["agent"].text]
            against = next(title for title in table.columns if title.startswith("against"))
            expected = {"Return": agent.result, against: None if agent.versus is None else agent.versus.difference}
            for title, measure in expected.items():
                if measure is None or measure.value is None:
                    continue
                entry = said[title]
                if (entry.value, entry.low, entry.high) != (measure.value, measure.low, measure.high):
                    wrong.append(f"table: {agent.name} {title} is {entry}, not {measure}")
                if measure.value not in tracker:
                    wrong.append(f"tracker: no {title} of {agent.name}")
                for form in ("md", "latex", "csv"):
                    lines = [line for line in texts[form].splitlines() if agent.name in line]
                    if not any(plain(entry.text) in line for line in lines):
                        wrong.append(f"{form}: {agent.name} has no {entry.text}")
            lines = [line for line in texts["terminal"].splitlines() if agent.name in line]
            if agent.result.value is not None and not any(plain(said["Return"].text) in line for line in lines):
                wrong.append(f"terminal: {agent.name} has no {said['Return'].text}")
            tier = None if cell.contest is None else cell.contest.tier_of(agent.name)
            if cell.contest is not None and said["tier"].value != tier:
                wrong.append(f"table: {agent.name} is in tier {said['tier'].text}, not {tier}")
    kept = {(one["low"], one["high"]) for one in csv.DictReader(io.StringIO(paste(run, "csv")))}
    entries = (one for table in json.loads(paste(run, "json")) for row in table["rows"] for one in row)
    wrong += [
        f"csv: no {one}" for one in entries if "low" in one and (repr(one["low"]), repr(one["high"])) not in kept
    ]
    return wrong


def _marked(page: str, data: RunSummary) -> list[str]:
    """Return marked claims of a page that are missing, or shown in two ways, or not the recorded ones."""
    from tradeassay.report.words import standing

    found, wrong = claims(page), []
    for cell in data.cells:
        for one in cell.agents:
            if one.result.value is None:
                continue
            name = f"{cell.id}/{one.name}"
            versus = None if one.versus is None else one.versus.difference
            for what, measure in (("return", one.result), ("difference", versus)):
                if measure is None or measure.value is None:
                    continue
                value = plain(_change(measure.value))
                whole = f"{value} {plain(_change(measure.low))} to {plain(_change(measure.high))}"
                texts = found.get(f"{name}/{what}", set())
                if not texts or not all(
                    text == value or text.startswith((whole, f"{value} no ")) for text in texts
                ):
                    wrong.append(f"page: the {what} of {one.name} is {texts}, not {whole}")
            labels = {text.lstrip("▲▼✕ ") for text in found.get(f"{name}/standing", set())}
            if labels != {standing(one, cell).label}:
                wrong.append(f"page: {one.name} stands {labels}, not {standing(one, cell).label}")
    return wrong


def _change(value: float | None) -> str:
    from tradeassay.report.numbers import written

    return "n/a" if value is None else written(value, "change")


def _of_assay(found: tradeassay.api.ShownAssay, folder: Path) -> tuple[list[Surface], str]:
    page = found.report(folder / f"{found.title}-verdicts.html").read_text()
    return [
        Surface("verdict terminal", _printed(VerdictBoard(found))),
        Surface("verdict page", visible(page)),
        Surface("verdict notebook", visible(found._repr_html_())),
    ], page


def _wrong_verdicts(found: tradeassay.api.ShownAssay, surfaces: list[Surface], page: str) -> list[str]:
    wrong = [line for one in found.agents for line in contradictions(one)]
    frame = found.frame("polars").to_dicts()
    marks = claims(page)
    for one, row in zip(found.agents, frame, strict=True):
        if (row["sentence"], row["verdict"], row["total"]) != (
            one.verdict.sentence,
            one.verdict.kind,
            one.total.value,
        ):
            wrong.append(f"frame: {row}")
        for surface in surfaces:
            if (
                not (one.baseline and surface.name == "page of both")
                and plain(one.verdict.sentence) not in surface.text
            ):
                wrong.append(f"{surface.name}: without the sentence of {one.agent}")
        name = f"{one.cell}/{one.agent}"
        labels = {
            text.lstrip("▲▼✕ ") for text in marks.get(f"{name}/verdict", marks.get(f"{name}/standing", set()))
        }
        if labels != {one.verdict.label}:
            wrong.append(f"verdict page: {one.agent} is {labels}, not {one.verdict.label}")
        edge = None if one.edge is None else one.edge.tested
        shown = marks.get(f"{name}/edge", set())
        if edge is not None and edge.value is not None and shown:
            whole = f"{_change(edge.value)} {_change(edge.low)} to {_change(edge.high)}"
            if not all(
                text.startswith(plain(whole if edge.low is not None else _change(edge.value))) for text in shown
            ):
                wrong.append(f"verdict page: the edge of {one.agent} is {shown}, not {edge}")
        market = marks.get(f"{one.cell}/{one.agent}/market", set())
        if one.market.value is not None and market != {plain(_change(one.market.value))}:
            wrong.append(f"verdict page: the market of {one.agent} is {market}, not {one.market.value}")
    return wrong


def _twins(run: Run) -> list[str]:
    """Return where one agent under two labels is judged in two ways."""
    rows = {one.agent: one for one in run.scores.agents}
    if "twin" not in rows or "holder-0" not in rows:
        return []
    one, two = rows["holder-0"], rows["twin"]
    same = one.measures == two.measures and one.versus_baseline == two.versus_baseline
    return [] if same else [f"{run.name}: one agent under two labels has two results"]


def run_disagreements(seed: int, folder: Path) -> list[str]:
    """Return what the surfaces of one drawn run say against each other."""
    run = drawn_run(seed, folder)
    data = summary_of(run)
    surfaces, page = _of_run(run, data, folder)
    found = tradeassay.assay(tradeassay.load_run(run.folder, home=run.home), portfolios=0)
    judged, verdicts = _of_assay(found, folder)
    known = recorded(run.scores, data, found)
    wrong = [line for one in (*surfaces, *judged) for line in foreign_intervals(one, known)]
    wrong += [line for one in (*surfaces, *judged) for cell in data.cells for line in wrong_comparisons(one, cell)]
    wrong += _wrong_cells(run, data, {one.name: one.text for one in surfaces})
    wrong += [*_marked(page, data), *_wrong_verdicts(found, judged, verdicts), *run_against_assay(data, found)]
    # The one page of a run that was judged: its leaderboard and its verdicts beside each other.
    both = write_html(run, folder / "both.html", summary=data, assay=found).read_text()
    seen = Surface("page of both", visible(both))
    wrong += [*foreign_intervals(seen, known), *_marked(both, data), *_wrong_verdicts(found, [seen], both)]
    wrong += [line for cell in data.cells for line in wrong_comparisons(seen, cell)]
    for row in run.scores.agents:
        versus = row.versus_baseline
        if versus is not None and ("beats" in versus.sentence) != (versus.side == "above"):
            wrong.append(f"scores: {versus}")
    return [f"run {seed}, {line}" for line in (*wrong, *_twins(run))]


def account_disagreements(seed: int, folder: Path) -> list[str]:
    """Return what the surfaces of one drawn account say against each other."""
    drawn = drawn_account(seed, folder)
    found = tradeassay.assay(drawn.returns, against=drawn.against, portfolios=0)
    surfaces, page = _of_assay(found, folder)
    known = recorded(found)
    wrong = [line for one in surfaces for line in foreign_intervals(one, known)]
    wrong += _wrong_verdicts(found, surfaces, page)
    said = any("compared with its column" in one.text for one in surfaces)
    if said != (drawn.column and drawn.against is None):
        wrong.append(f"'compared with its column' is {'said' if said else 'not said'} of {drawn}")
    return [f"account {seed}, {line}" for line in wrong]


def site_disagreements(folder: Path) -> list[str]:
    """Return what a site over all runs of a folder says other than the runs do."""
    report = write_site(folder / "runs", folder / "site", home=folder / "home", workers=1)
    wrong = [f"site: left out {one}" for one in report.left_out]
    for name in report.runs:
        run = tradeassay.load_run(folder / "runs" / name, home=folder / "home")
        assert isinstance(run, Run)
        data = summary_of(run, details=False)
        known = recorded(run.scores, data)
        page = (folder / "site" / "runs" / name / "index.html").read_text()
        surface = Surface(f"site {name}", visible(page))
        wrong += [*foreign_intervals(surface, known), *_marked(page, data)]
        wrong += [line for cell in data.cells for line in wrong_comparisons(surface, cell)]
    every = recorded(
        *(tradeassay.load_run(folder / "runs" / name, home=folder / "home").scores for name in report.runs)
    )
    for page in (folder / "site").rglob("*.html"):
        wrong += foreign_intervals(Surface(f"site {page.name}", visible(page.read_text())), every)
    return wrong


def test_runs_drawn_at_random_say_one_thing_everywhere(tmp_path: Path) -> None:
    wrong = [line for seed in range(QUICK_RUNS) for line in run_disagreements(seed, tmp_path)]
    assert not wrong, "\n".join(wrong)
    wrong = site_disagreements(tmp_path)
    assert not wrong, "\n".join(wrong)


def test_accounts_drawn_at_random_say_one_thing_everywhere(tmp_path: Path) -> None:
    wrong = [line for seed in range(QUICK_ACCOUNTS) for line in account_disagreements(seed, tmp_path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_three_hundred_say_one_thing_everywhere(tmp_path: Path, part: int) -> None:
    seeds = range(1000 + part, 1000 + RUNS, 10)
    wrong = [line for seed in seeds for line in run_disagreements(seed, tmp_path)]
    wrong += [line for seed in range(part, ACCOUNTS, 10) for line in account_disagreements(5000 + seed, tmp_path)]
    wrong += site_disagreements(tmp_path)
    assert not wrong, "\n".join(wrong)


def test_the_reader_sees_what_is_wrong(tmp_path: Path) -> None:
    """A check that cannot fail would prove nothing: each kind of contradiction is found when it is written."""
    shown = Surface("x", "Return +2.0% -11.9% to +18.1%; and then +3.0% [+1.0%, +4.0%]")
    assert len(foreign_intervals(shown, {("2.0%", "-4.3%", "8.6%"), ("3.0%", "1.0%", "4.0%")})) == 1
    run = drawn_run(1, tmp_path)
    data = summary_of(run)
    cell = data.cells[0]
    agents = [one for one in cell.agents if one.versus is not None and one.versus.distinguishable is not None]
    assert agents and cell.contest is not None
    for agent in agents:
        said = {
            side: wrong_comparisons(Surface("x", f"{agent.name} {verb} buy and hold."), cell)
            for side, verb in (("above", "beats"), ("below", "falls behind"), (None, "cannot be told apart from"))
        }
        assert {side for side, wrong in said.items() if not wrong} == {agent.versus.side if agent.versus else ""}
    first = cell.contest.tiers[0]
    best = wrong_comparisons(Surface("x", f"{first[0]} is best: it is."), cell)
    assert bool(best) == (len(first) > 1)
    page = tradeassay.load_run(run.folder, home=run.home).report(tmp_path / "x.html").read_text()
    assert not _marked(page, data)
    value = _change(agents[0].result.value)
    assert _marked(page.replace(f">{value}<", ">+77.7%<"), data)
    found = tradeassay.assay(tradeassay.load_run(run.folder, home=run.home), portfolios=0)
    one = next(one for one in found.agents if one.verdict.kind != "failed")
    for words in (
        f"{one.agent} returned +77.7%, which is the market",
        "the edge is positive in both halves: 0.0% and +14.6% a year",
        "the market returned +77.7% over the same sessions",
        "under 'blinded' it loses +40.9% a year",
    ):
        told = msgspec.structs.replace(one.verdict, sentence=words)
        assert contradictions(msgspec.structs.replace(one, verdict=told)), words
    other = msgspec.structs.replace(one, total=msgspec.structs.replace(one.total, low=-0.119, high=0.181))
    assert run_against_assay(data, msgspec.structs.replace(found, agents=(other,)))
