"""One truth: whatever a run or an account says, it says the same on every surface.

Runs of traders and of programs, seasons and accounts are drawn at random, every claim is read back
from the terminal, the pages, Markdown, LaTeX, CSV, JSON, a notebook, a tracker, the site, the arena
and Python, and each must be the recorded one.
"""

import contextlib
import csv
import io
import json
import re
from unittest import mock

import msgspec
import pytest
from account_draws import drawn_assay
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
    wrong_in_every,
)
from code_report_sample import coders_given
from drawn import (
    doubted_account,
    drawn_account,
    drawn_masked,
    drawn_programs,
    drawn_run,
    drawn_season,
)
from rich.console import Console
from statements_shown import (
    account_contradictions,
    forbidden_words,
    large_parts,
    marked_otherwise,
    stated_otherwise,
    yearly_of_short,
)
from systrade_sample import builders_given

import tradeassay
import tradeassay_bench
from tradeassay.cli import main
from tradeassay.metrics import BY_ID
from tradeassay.metrics.horizon import YEARLY
from tradeassay.report.formatting import cell_shown, shown
from tradeassay.report.numbers import written
from tradeassay.report.verdicts import VerdictBoard
from tradeassay_arena.queries.seasons import opened_store
from tradeassay_arena.queries.snapshot import SeasonSnapshot, board_of
from tradeassay_arena.web.pages import FORMS, names_of
from tradeassay_arena.web.site import render
from tradeassay_arena.web.words import words as words_of
from tradeassay_bench.examine.luck import LuckConfig, luck_of_run
from tradeassay_bench.papers import paper_pages
from tradeassay_bench.report import (
    paste,
    paste_tables,
    print_leaderboard,
    terminal,
    write_html,
    write_site,
)
from tradeassay_bench.report.code_page import shown_run
from tradeassay_bench.report.run_words import arm_standing, standing
from tradeassay_bench.report.tracking import tracked
from tradeassay_bench.runs import CodeRun
from tradeassay_bench.runs.summary import summary_of

pytestmark = pytest.mark.journey

QUICK_RUNS, QUICK_ACCOUNTS = 1, 4
"""With one run under two masks, one of programs, one season and some accounts in memory: about
ten draws.
"""
RUNS, ACCOUNTS, MASKED, PROGRAMS, SEASONS = 40, 40, 10, 20, 5
IN_MEMORY = 400
"""Accounts that are judged in memory: with those of files and runs, over five hundred pages."""
YEARLY_TITLES = {BY_ID[name].title for name in YEARLY}
PORTFOLIOS = 100
WIDE = mock.patch("rich.console.Console", lambda **given: Console(**{**given, "width": 400}))
CITED = {("0.74", "0.65", "0.82")}
"""What a paper printed beside ours: SysTradeBench's agreement of reviewers."""


def _printed(what):
    out = io.StringIO()
    Console(file=out, width=400).print(what)
    return plain(out.getvalue())


def _of_run(run, folder):
    shown = tradeassay_bench.load_run(run.folder, home=run.home)
    page = shown.report(folder / f"{run.name}.html").read_text()
    # LaTeX shows a few columns unless it is asked for all.
    every = {
        "latex": tuple(
            dict.fromkeys(name for table in paste_tables(run) for name in table.columns[1:])
        )
    }
    forms = [
        Surface(
            form,
            plain(
                paste(run, form, every.get(form, ()))
                .replace("\\", "")
                .replace("{scriptsize[", " [")
            ),
        )
        for form in ("md", "latex", "csv", "card")
    ]
    return [
        Surface("terminal", _printed(terminal(run))),
        Surface("page", visible(page)),
        Surface("notebook", visible(shown._repr_html_())),
        *forms,
    ], page


def _wrong_cells(run, data, texts):
    """Return entries of tables that are not the recorded measure, or that a format or the
    tracker lacks.
    """
    wrong = []
    tracker = set(tracked(run)[1].values())
    for cell, table in zip(data.settings, paste_tables(run), strict=True):
        rows = {one.name: one for one in cell.agents}
        for entries in table.rows:
            said = dict(zip(table.columns, entries, strict=True))
            agent = rows[said["agent"].text]
            expected = {"Return": agent.result, cell.excess_title: agent.excess}
            for title, measure in expected.items():
                if measure is None or measure.value is None:
                    continue
                entry = said[title]
                if (entry.value, entry.low, entry.high) != (
                    measure.value,
                    measure.low,
                    measure.high,
                ):
                    wrong.append(f"table: {agent.name} {title} is {entry}, not {measure}")
                if measure.value not in tracker:
                    wrong.append(f"tracker: no {title} of {agent.name}")
                for form in ("md", "latex", "csv"):
                    lines = [line for line in texts[form].splitlines() if agent.name in line]
                    if not any(plain(entry.text) in line for line in lines):
                        wrong.append(f"{form}: {agent.name} has no {entry.text}")
            lines = [line for line in texts["terminal"].splitlines() if agent.name in line]
            if agent.result.value is not None and not any(
                plain(said["Return"].text) in line for line in lines
            ):
                wrong.append(f"terminal: {agent.name} has no {said['Return'].text}")
            tier = None if cell.contest is None else cell.contest.tier_of(agent.name)
            if cell.contest is not None and said["tier"].value != tier:
                wrong.append(f"table: {agent.name} is in tier {said['tier'].text}, not {tier}")
    kept = {(one["low"], one["high"]) for one in csv.DictReader(io.StringIO(paste(run, "csv")))}
    entries = (
        one for table in json.loads(paste(run, "json")) for row in table["rows"] for one in row
    )
    wrong += [
        f"csv: no {one}"
        for one in entries
        if "low" in one and (repr(one["low"]), repr(one["high"])) not in kept
    ]
    return wrong


def _marked(page, data):
    """Return marked claims of a page that are missing, or shown in two ways, or not the recorded
    ones.
    """
    found, wrong = claims(page), []
    for cell in data.settings:
        for one in cell.agents:
            if one.result.value is None:
                continue
            name = f"{cell.id}/{one.name}"
            for what, measure in (("return", one.result), ("difference", one.excess)):
                if measure is None or measure.value is None:
                    continue
                value = _change(measure.value)
                whole = f"{value} {_change(measure.low)} to {_change(measure.high)}"
                texts = found.get(f"{name}/{what}", set())
                if not texts or not all(
                    text == value or text.startswith((whole, f"{value} no ")) for text in texts
                ):
                    wrong.append(f"page: the {what} of {one.name} is {texts}, not {whole}")
            labels = {text.lstrip("▲▼✕ ") for text in found.get(f"{name}/standing", set())}
            if labels != {standing(one, cell).label}:
                wrong.append(f"page: {one.name} stands {labels}, not {standing(one, cell).label}")
    return wrong


def _change(value):
    return plain(written(value, "change"))


def _of_assay(found, folder):
    page = found.report(folder / f"{found.title}-verdicts.html").read_text()
    return [
        Surface("verdict terminal", _printed(VerdictBoard(found))),
        Surface("verdict page", visible(page)),
        Surface("verdict notebook", visible(found._repr_html_())),
    ], page


def _wrong_verdicts(found, surfaces, page):
    wrong = [line for one in found.agents for line in contradictions(one)]
    frame = found.frame("polars").to_dicts()
    marks = claims(page)
    for one, row in zip(found.agents, frame, strict=True):
        if (row["sentence"], row["verdict"]) != (one.verdict.sentence, one.verdict.kind):
            wrong.append(f"frame: {row}")
        for quantity in ("return", "market", "style", "selection", "unexplained", "alpha"):
            stated = one.statement(quantity)
            if row[quantity] != (None if stated is None else stated.value):
                wrong.append(f"frame: {quantity} is {row[quantity]}, not {stated}")
        wrong += marked_otherwise(one, page)
        for surface in surfaces:
            if one.baseline and surface.name == "page of both":
                continue
            lost = [
                line
                for line in (one.verdict.sentence, *one.verdict.limits)
                if plain(line) not in surface.text
            ]
            wrong += [f"{surface.name}: {one.agent} without '{line}'" for line in lost]
        name = f"{one.setting}/{one.agent}"
        labels = {
            text.lstrip("▲▼✕ ")
            for text in marks.get(f"{name}/verdict", marks.get(f"{name}/standing", set()))
        }
        if labels != {one.verdict.label}:
            wrong.append(f"verdict page: {one.agent} is {labels}, not {one.verdict.label}")
        alpha = one.statement("alpha")
        shown = marks.get(f"{name}/alpha", set())
        if alpha is not None and alpha.value is not None and shown:
            whole = _change(alpha.value)
            if alpha.low is not None:
                whole += f" {_change(alpha.low)} to {_change(alpha.high)}"
            if not all(text.startswith(whole) for text in shown):
                wrong.append(f"verdict page: the alpha of {one.agent} is {shown}, not {alpha}")
    short = found.agents[0] if found.agents else None
    wrong += [] if short is None else yearly_of_short(short, surfaces)
    return [*wrong, *forbidden_words(surfaces), *large_parts(surfaces), *stated_otherwise(found)]


def _excess_returns(data):
    """Return the excess returns of a run as its surfaces show them."""
    found = [one.excess for cell in data.settings for one in cell.agents]
    for contrast in data.contrasts:
        found += [arm.excess for row in contrast.rows for arm in row.arms if arm is not None]
    return found


def _yearly_of_short(data, surfaces):
    """Return numbers of a year that tables and pages of a run under a quarter show."""
    if not all(cell.horizon.is_short for cell in data.settings):
        return []
    wrong = []
    for table in paste_tables(data):
        for row in table.rows:
            for title, cell in zip(table.columns, row, strict=True):
                if title in YEARLY_TITLES and cell.value is not None:
                    wrong.append(f"table: {title} {cell.text} of a record under a quarter")
    for surface in surfaces:
        shown = re.findall(r"[+-]?[\d.,]+%[^.;|\n]{0,40} (?:a|per) year\b", surface.text)
        wrong += [f"{surface.name}: '{words}'" for words in shown if "costs" not in words]
    return wrong


def _twins(run):
    """Return where one agent under two labels is judged in two ways."""
    rows = {one.agent: one for one in run.scores.agents}
    if "twin" not in rows or "holder-0" not in rows:
        return []
    one, two = rows["holder-0"], rows["twin"]
    same = one.measures == two.measures and one.versus_baseline == two.versus_baseline
    return [] if same else [f"{run.name}: one agent under two labels has two results"]


def run_disagreements(run, folder, portfolios=0):
    """Return what the surfaces of one drawn run say against each other."""
    data = summary_of(run)
    surfaces, page = _of_run(run, folder)
    found = tradeassay.assay(
        tradeassay_bench.load_run(run.folder, home=run.home), portfolios=portfolios
    )
    judged, verdicts = _of_assay(found, folder)
    known = recorded(run.scores, data, _excess_returns(data), found, paper_pages(run))
    wrong = [line for one in (*surfaces, *judged) for line in foreign_intervals(one, known)]
    wrong += [line for one in (*surfaces, *judged) for line in wrong_in_every(one, data.settings)]
    wrong += _wrong_cells(run, data, {one.name: one.text for one in surfaces})
    wrong += [*forbidden_words(surfaces), *_yearly_of_short(data, surfaces)]
    wrong += [
        *_marked(page, data),
        *_wrong_verdicts(found, judged, verdicts),
        *run_against_assay(data, found),
    ]
    # The one page of a run that was judged: its leaderboard and its verdicts beside each other.
    both = write_html(run, folder / "both.html", summary=data, assay=found).read_text()
    seen = Surface("page of both", visible(both))
    wrong += [
        *foreign_intervals(seen, known),
        *_marked(both, data),
        *_wrong_verdicts(found, [seen], both),
    ]
    wrong += wrong_in_every(seen, data.settings)
    for row in run.scores.agents:
        versus = row.versus_baseline
        if versus is not None and ("beats" in versus.sentence) != (versus.side == "above"):
            wrong.append(f"scores: {versus}")
    told = {one.name: one.text for one in (*surfaces, *judged, seen)}
    wrong += [
        *_wrong_contrasts(data, told),
        *_wrong_luck(run, found, told, portfolios),
        *_twins(run),
    ]
    return [f"{run.name}, {line}" for line in wrong]


def _wrong_contrasts(data, told):
    """Return where an agent under another mask is compared with itself in another way than
    recorded.
    """
    wrong = []
    results = {(cell.id, one.name): one.result for cell in data.settings for one in cell.agents}
    for contrast in data.contrasts:
        for row in contrast.rows:
            said = []
            for label, cell, arm in zip(contrast.labels, contrast.settings, row.arms, strict=True):
                if arm is None:
                    continue
                if arm.result != results[cell, row.agent]:
                    wrong.append(f"contrast: {row.agent} under {label} returned {arm.result}")
                told_apart = arm_standing(arm, contrast.labels[0])
                chip = "" if arm.versus is None else f" ({told_apart.label})"
                said.append(f"{label} {_change(arm.result.value)}{chip}")
                sentence = plain(f"{row.agent} under {label} {told_apart.sentence}.")
                for name in ("page", "page of both") if arm.versus is not None else ():
                    if sentence not in told[name]:
                        wrong.append(f"{name}: without '{sentence}'")
            if f"- {row.agent}: {', '.join(said)}" not in told["terminal"].splitlines():
                wrong.append(f"terminal: without {row.agent}: {', '.join(said)}")
    return wrong


def _wrong_luck(run, found, told, portfolios):
    """Return percentiles among random portfolios that differ between the verdict and
    ``tradeassay luck``.
    """
    if not portfolios:
        return []
    ranked = {}
    for one in luck_of_run(run, config=LuckConfig(portfolios=portfolios)):
        ranked.setdefault(one.agent, []).append(
            None if one.place is None else one.place.percentile.value
        )
    wrong = []
    for one in found.agents:
        share = one.luck.percentile.value
        if share not in ranked.get(one.agent, [None]):
            wrong.append(
                f"luck: {one.agent} is at {share} in the assay, {ranked[one.agent]} by the command"
            )
        rows = [
            line
            for line in told["verdict terminal"].splitlines()
            if line.startswith(f"{one.agent} ")
        ]
        if share is None or one.verdict.kind in ("cash", "failed"):
            continue
        if not any(f"{share:.1%}" in line.split() for line in rows):
            wrong.append(f"verdict terminal: {one.agent} without {share}")
        if f"{share:.1%} of {one.luck.portfolios:,} random" not in told["verdict page"]:
            wrong.append(f"verdict page: {one.agent} without {share}")
    return wrong


def program_disagreements(run, folder):
    """Return entries of the table of a run of programs that a surface lacks, or intervals nobody
    computed.
    """
    page, out = shown_run(run), io.StringIO()
    with contextlib.redirect_stdout(out), WIDE:
        print_leaderboard(run)
    pasted = {
        form: plain(paste(run, form).replace("\\", "")) for form in ("md", "latex", "csv", "card")
    }
    told = {
        **pasted,
        "terminal": plain(out.getvalue()),
        "page": visible(write_html(run, folder / f"{run.name}.html").read_text()),
        "notebook": visible(tradeassay_bench.load_run(run.folder)._repr_html_()),
    }
    known = recorded(run.scores, page) | CITED
    wrong = [
        line
        for name, text in told.items()
        for line in foreign_intervals(Surface(name, text), known)
    ]
    for row, kept in zip(page.board.rows, json.loads(paste(run, "json"))[0]["rows"], strict=True):
        for place, cell in enumerate(row.cells, 1):
            text = plain(cell_shown(cell).text)
            if cell.measure is not None and kept[place].get("value") != cell.measure.value:
                wrong.append(f"json: {row.head.text} {page.board.columns[place]} is {kept[place]}")
            for name in ("terminal", "md", "csv", "page", "notebook"):
                if not any(text in line for line in told[name].splitlines()):
                    wrong.append(
                        f"{name}: {row.head.text} without {page.board.columns[place]} {text}"
                    )
    lost = [name for name in ("terminal", "page") if plain(page.headline) not in told[name]]
    wrong += [f"{name}: without '{page.headline}'" for name in lost]
    return [f"{run.name}, {line}" for line in wrong]


def season_disagreements(seed, folder):
    """Return what the arena's first page, its JSON, Python and ``arena standings`` say against
    each other.
    """
    db, season = drawn_season(seed, folder)
    board = board_of(db)
    told = {}
    for name, more in (("terminal", []), ("json", ["--json"])):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), WIDE:
            assert main(["arena", "standings", "--db", db, *more]) == 0
        told[name] = out.getvalue()
    with opened_store(db) as store:
        files = dict(render(SeasonSnapshot(store, season), (), ()))
    home = f"seasons/{season.id}/"
    page, names = visible(files[f"{home}index.html"].decode()), names_of(words_of("en"), season)
    kept = json.loads(msgspec.json.encode(board))
    both = {"json": told["json"], "standings.json": files[f"{home}standings.json"]}
    wrong = [
        f"{name}: other than Python" for name, text in both.items() if json.loads(text) != kept
    ]
    known = recorded(board)
    for surface in (Surface("terminal", plain(told["terminal"])), Surface("page", page)):
        wrong += foreign_intervals(surface, known)
        for row in board.rows:
            called = names[row.entry]
            lines = surface.text.splitlines()
            for what, measure in (
                ("CR", row.measures["CR"]),
                ("excess", row.excess),
                ("best", row.best),
            ):
                if measure.value is not None:
                    text = plain(shown(measure, FORMS[what]).text)
                    if surface.name == "terminal":
                        lines = [
                            line for line in surface.text.splitlines() if plain(called) in line
                        ]
                    if not any(text in line for line in lines):
                        wrong.append(f"{surface.name}: {called} without {what} {text}")
    return [f"{season.id}, {line}" for line in wrong]


def account_disagreements(seed, folder):
    """Return what the surfaces of one drawn account say against each other."""
    drawn = drawn_account(seed, folder)
    found = tradeassay.assay(drawn.returns, benchmark=drawn.against, portfolios=0)
    surfaces, page = _of_assay(found, folder)
    known = recorded(found)
    wrong = [line for one in surfaces for line in foreign_intervals(one, known)]
    wrong += _wrong_verdicts(found, surfaces, page)
    wrong += account_contradictions(found, surfaces[0].text)
    said = any("compared with its column" in one.text for one in surfaces)
    if said != (drawn.column and drawn.against is None):
        wrong.append(f"'compared with its column' is {'said' if said else 'not said'} of {drawn}")
    return [f"account {seed}, {line}" for line in wrong]


def memory_disagreements(seed):
    """Return what the surfaces of one account that is judged in memory say against each other."""
    found = drawn_assay(seed)
    out = io.StringIO()
    Console(file=out, width=5000).print(VerdictBoard(found))
    return account_contradictions(found, out.getvalue())


def site_disagreements(folder):
    """Return what a site over all runs of a folder says other than the runs do."""
    with coders_given(), builders_given():
        report = write_site(folder / "runs", folder / "site", home=folder / "home", workers=1)
    wrong = [f"site: left out {one}" for one in report.left_out]
    every, board = [], json.loads((folder / "site" / "board.json").read_bytes())
    index = "".join(visible(page.read_text()) for page in (folder / "site").glob("*.html"))
    for name in report.runs:
        run = tradeassay_bench.load_run(folder / "runs" / name, home=folder / "home")
        every.append(run.scores)
        page = (folder / "site" / "runs" / name / "index.html").read_text()
        surface = Surface(f"site {name}", visible(page))
        rows = {one["agent"]: one["figures"] for one in board if one["run"] == name}
        if isinstance(run, CodeRun):
            table = paste_tables(run)[0]
            wrong += foreign_intervals(surface, recorded(run.scores, shown_run(run)) | CITED)
            every.append(shown_run(run))
            for cells in table.rows:
                expected = dict(
                    zip(table.columns[1:], json.loads(msgspec.json.encode(cells[1:])), strict=True)
                )
                if (
                    sum(
                        one["agent"] == cells[0].text and one["figures"] == expected
                        for one in board
                    )
                    < 1
                ):
                    wrong.append(f"board.json: {name} {cells[0].text} is not {expected}")
                wrong += [
                    f"board: {name} without {title}"
                    for title in table.columns[1:]
                    if title not in index
                ]
            continue
        data, papers = summary_of(run, details=False), paper_pages(run)
        every += [papers, data.reliability, _excess_returns(data)]
        wrong += [
            *foreign_intervals(surface, recorded(run.scores, data, papers, every[-1])),
            *_marked(page, data),
        ]
        wrong += wrong_in_every(surface, data.settings)
        for cell in data.settings if len(data.settings) == 1 else ():
            for one in cell.agents:
                if rows[one.name]["Return"].get("value") != one.result.value:
                    wrong.append(
                        f"board.json: {one.name} returned {rows[one.name]['Return']}, not "
                        f"{one.result}"
                    )
    known = recorded(*every) | CITED
    for page in (folder / "site").rglob("*.html"):
        wrong += foreign_intervals(Surface(f"site {page.name}", visible(page.read_text())), known)
    return wrong


def test_runs_drawn_at_random_say_one_thing_everywhere(tmp_path):
    wrong = []
    for seed in range(QUICK_RUNS):
        wrong += run_disagreements(drawn_run(seed, tmp_path), tmp_path, PORTFOLIOS * (seed == 0))
    masked = drawn_masked(6, tmp_path)
    wrong += run_disagreements(masked, tmp_path)
    assert _wrong_contrasts(
        summary_of(masked), dict.fromkeys(("terminal", "page", "page of both"), "")
    )
    wrong += program_disagreements(drawn_programs(0, tmp_path), tmp_path)
    wrong += [*site_disagreements(tmp_path), *season_disagreements(0, tmp_path)]
    assert not wrong, "\n".join(wrong)


def test_accounts_drawn_at_random_say_one_thing_everywhere(tmp_path):
    wrong = [
        line for seed in range(QUICK_ACCOUNTS) for line in account_disagreements(seed, tmp_path)
    ]
    for seed in range(3):
        wrong += memory_disagreements(9 + 31 * seed)
    assert not wrong, "\n".join(wrong)


def test_what_rests_on_a_table_s_word_is_said_everywhere(tmp_path, capsys):
    """An account whose losses are called withdrawals is praised, and every surface says on whose
    word.
    """
    table, page = doubted_account(tmp_path), tmp_path / "page.html"
    assert main(["assay", str(table), "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["agents"]
    assert [line.partition(":")[0] for line in one["doubts"]] == ["withdrawals are not verified"]
    assert one["verdict"]["kind"] in ("skill", "timing", "could-be-best-of-few")
    with WIDE:
        assert main(["assay", str(table), "--out", str(page)]) == 0
    found = tradeassay.assay(table)
    (row,) = found.frame("polars").to_dicts()
    told = {
        "JSON": " ".join(one["verdict"]["limits"]),
        "terminal": plain(capsys.readouterr().out),
        "page": visible(page.read_text()),
        "notebook": visible(found._repr_html_()),
    }
    assert [name for name, text in told.items() if one["doubts"][0] not in text] == []
    assert "withdrawals are not verified" in row["sentence"] == one["verdict"]["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_say_one_thing_everywhere(tmp_path, part):
    wrong = []
    for seed in range(1000 + part, 1000 + RUNS, 10):
        wrong += run_disagreements(
            drawn_run(seed, tmp_path), tmp_path, PORTFOLIOS * (seed % 3 == 0)
        )
    for seed in range(part, MASKED, 10):
        wrong += run_disagreements(drawn_masked(2000 + seed, tmp_path), tmp_path)
    for seed in range(part, PROGRAMS, 10):
        wrong += program_disagreements(drawn_programs(3000 + seed, tmp_path), tmp_path)
    wrong += [
        line
        for seed in range(part, SEASONS, 10)
        for line in season_disagreements(4000 + seed, tmp_path)
    ]
    wrong += [
        line
        for seed in range(part, ACCOUNTS, 10)
        for line in account_disagreements(5000 + seed, tmp_path)
    ]
    for seed in range(part, IN_MEMORY, 10):
        wrong += memory_disagreements(seed)
    wrong += site_disagreements(tmp_path)
    assert not wrong, "\n".join(wrong)


def test_the_reader_sees_what_is_wrong(tmp_path):
    """A check that cannot fail would prove nothing: each kind of contradiction is found when it
    is written.
    """
    shown = Surface("x", "Return +2.0% -11.9% to +18.1%; and then +3.0% [+1.0%, +4.0%]")
    assert len(foreign_intervals(shown, {("2.0%", "-4.3%", "8.6%"), ("3.0%", "1.0%", "4.0%")})) == 1
    run = drawn_run(1, tmp_path)
    data = summary_of(run)
    cell = data.settings[0]
    agents = [
        one
        for one in cell.agents
        if one.versus is not None and one.versus.distinguishable is not None
    ]
    assert agents
    for agent in agents:
        said = {
            side: wrong_comparisons(Surface("x", f"{agent.name} {verb} buy and hold."), cell)
            for side, verb in (
                ("above", "beats"),
                ("below", "falls behind"),
                (None, "cannot be told apart from"),
            )
        }
        assert {side for side, wrong in said.items() if not wrong} == {
            agent.versus.side if agent.versus else ""
        }
        returned = [
            one.result.value
            for one in cell.agents
            if not one.baseline and one.result.value is not None
        ]
        highest = wrong_comparisons(
            Surface("x", f"{agent.name} has the highest return, +1.0%."), cell
        )
        assert bool(highest) == (agent.result.value < max(returned))
    assert wrong_comparisons(
        Surface("x", "No agent can be told apart from buy and hold."), cell
    ) or not any(agent.versus.side for agent in agents)
    first = cell.contest.tiers[0]
    best = wrong_comparisons(Surface("x", f"{first[0]} is best: it is."), cell)
    assert bool(best) == (len(first) > 1)
    page = (
        tradeassay_bench.load_run(run.folder, home=run.home).report(tmp_path / "x.html").read_text()
    )
    assert not _marked(page, data)
    value = written(agents[0].result.value, "change")
    assert _marked(page.replace(f">{value}<", ">+77.7%<"), data)
    found = tradeassay.assay(tradeassay_bench.load_run(run.folder, home=run.home), portfolios=0)
    one = next(one for one in found.agents if one.verdict.kind != "failed")
    for words in (
        f"{one.agent} returned +77.7%, which is the market",
        f"{one.agent} returned nothing; skill: it is",
        "the market returned +77.7% over the same sessions",
        "under 'blinded' it loses +40.9% a year",
    ):
        told = msgspec.structs.replace(one.verdict, sentence=words)
        assert contradictions(msgspec.structs.replace(one, verdict=told)), words
    other = msgspec.structs.replace(
        one, total=msgspec.structs.replace(one.total, low=-0.119, high=0.181)
    )
    assert run_against_assay(data, msgspec.structs.replace(found, agents=(other,)))
