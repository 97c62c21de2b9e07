"""The papers' tables, filled by small runs, against values that plain loops compute from
journals and data.
"""

import json
import statistics
from itertools import pairwise
from types import SimpleNamespace

import msgspec
import pytest
import scripted_misfits  # noqa: F401  # adds models
from golden import play_season, stored as played

from tradeassay.core.errors import UserError
from tradeassay_bench.account import Ledger
from tradeassay_bench.api import make_spec
from tradeassay_bench.benchmarks.exhibits import PAPERS, exhibits
from tradeassay_bench.papers import paper_page
from tradeassay_bench.papers.cells import latency
from tradeassay_bench.runs import Run, load_run, run

pytestmark = pytest.mark.journey

MODELS = ("scripted/sensible", "scripted/overspender", "scripted/injector")
MASKS, MODES = ("bright", "blinded"), ("memory-only", "open-research")


def shelf(page, id):
    return next(one.ours for one in page.exhibits if one.exhibit.id == id)


def cell(table, row, column):
    (found,) = [one for one in table.rows if one.head.text == row]
    return found.cells[table.columns.index(column) - 1].measure.value


def nav(one, key):
    """An account's values, from its journal alone."""
    ledgers = [(ledger.deposit.cash, ledger.nav()) for ledger, _ in Ledger.steps(one.records(key))]
    return [ledgers[0][0], *(value for _, value in ledgers)] if ledgers else []


def same(found, wanted, middle=statistics.median):
    """Whether a cell is the middle of these values, or empty where there are none."""
    return (
        found is None if not wanted else found == pytest.approx(middle(wanted), rel=1e-5, abs=1e-9)
    )


def change(values):
    return values[-1] / values[0] - 1.0


@pytest.fixture(scope="module")
def ktdfin(tmp_path_factory):
    protocol, days = {"mask": MASKS, "mode": MODES}, {"first": "2022-03-01", "last": "2022-03-04"}
    agents = {"agents": ["momentum-12-1"], "models": MODELS}
    spec = make_spec("ktdfin-paper-v1", **agents, protocol=protocol, seeds=2, **days, name="papers")
    done = run(
        spec, tmp_path_factory.mktemp("papers") / "ktdfin", executor="inline", progress="none"
    )
    return Run.load(done.folder)


@pytest.fixture(scope="module")
def page(ktdfin):
    return paper_page([ktdfin])


def episodes(one, **settings):
    """The episodes with a result of every agent whose cell has these settings, by name."""
    found = {}
    for episode in one.episodes:
        config = one.manifest.protocols[episode.setting].config
        if all(config[key] == value for key, value in settings.items()):
            keys = found.setdefault(one.names[episode.label], [])
            keys += [episode.key] if one.scores.episode(episode.key).status == "done" else []
    return found


def test_every_paper_lists_its_exhibits_once():
    for paper in PAPERS:
        ids = [one.id for one in exhibits(paper)]
        assert len(ids) == len(set(ids)) and {"latency", "groups"} < set(ids)


def test_medians_over_windows_and_seeds_by_mode_and_mask(ktdfin, page):
    (table,) = shelf(page, "table-3").tables
    for mode in MODES:
        for mask in MASKS:
            for name, keys in episodes(ktdfin, mode=mode, mask=mask).items():
                if not name.startswith("scripted"):
                    continue
                returns = [change(nav(ktdfin, key)) for key in keys]
                assert same(cell(table, f"{name}, {mode}", f"return, {mask}"), returns)
                idle = [
                    statistics.mean(not one.decision.orders for one in ktdfin.records(key))
                    for key in keys
                ]
                assert same(cell(table, f"{name}, {mode}", f"abstention, {mask}"), idle)
    (pairs,) = shelf(page, "table-11").tables
    for row in pairs.rows:
        name, mask = row.head.text.rsplit(", ", 1)
        assert cell(pairs, row.head.text, "return") == cell(
            table, f"{name}, open-research", f"return, {mask}"
        )


def test_the_leaderboard_agrees_with_its_index_row(ktdfin, page):
    table, *others = shelf(page, "table-4").tables
    assert "blinded, open-research" in table.title and len(others) == 3
    found = episodes(ktdfin, mode="open-research", mask="blinded")
    key = found["equal-weight"][0]
    sessions = [record.session for record in ktdfin.records(key)]
    snapshot = ktdfin.snapshot(key)
    rows = snapshot.rows(sessions[0], sessions[-1])
    levels = snapshot.at(rows.stop - 1, "close").index_levels("IDX", len(rows)).tolist()
    assert cell(table, "IDX buy and hold", "total return") == pytest.approx(change(levels))
    for name, keys in found.items():
        totals = [change(nav(ktdfin, one)) for one in keys]
        assert same(cell(table, name, "total return"), totals)
        assert same(cell(table, name, "excess"), [total - change(levels) for total in totals])
        # The index is counted from the first close, so that its first day is nothing.
        steps, ratios = [0.0, *(b / a - 1.0 for a, b in pairwise(levels))], []
        for one in keys:
            gaps = [
                b / a - 1.0 - s
                for (a, b), s in zip(pairwise(nav(ktdfin, one)), steps, strict=False)
            ]
            ratios.append(statistics.mean(gaps) / statistics.stdev(gaps) * 252**0.5)
        if (ratio := cell(table, name, "IR")) is not None:
            assert ratio == pytest.approx(statistics.median(ratios), rel=1e-4)
    assert shelf(page, "table-4").comparable.startswith("no, because our data is synthetic")
    assert any(not row.ours and "CSI300" in row.head.text for row in table.rows)


def test_parts_add_up_and_the_account_stands_beside_them(ktdfin, page):
    """The paper's parts follow closing weights, so that their sum is not what the account
    returned.
    """
    table = shelf(page, "table-5").tables[0]
    assert table.columns == ("", "common", "style", "selection", "sum of parts", "account")
    assert "without fees" in table.note and "Table 4" in table.note
    assert len(table.rows) == 5
    found = episodes(ktdfin, mode="open-research", mask="blinded")
    for row in table.rows:
        *parts, total, account = (one.measure.value for one in row.cells if one.measure is not None)
        keys = found[row.head.text]
        assert (None in (*parts, total)) == (not keys)
        assert same(account, [change(nav(ktdfin, key)) for key in keys], statistics.mean)
        if keys:
            assert sum(parts) == pytest.approx(total, abs=1e-5)


def test_exposures_count_who_held_something(ktdfin, page, tmp_path):
    exposures = shelf(page, "table-8").tables[0]
    found = episodes(ktdfin, mode="open-research", mask="blinded")
    assert exposures.columns == (
        "",
        "rules (2)",
        f"language models ({holders(ktdfin, found)})",
        "difference",
    )
    for row in exposures.rows:
        rules, models, gap = (one.measure.value for one in row.cells if one.measure is not None)
        if rules is not None and models is not None:
            assert gap == pytest.approx(rules - models, abs=1e-4)
    days = {"first": "2022-03-01", "last": "2022-03-04"}
    asked = {"models": ["scripted/sensible", "scripted/never-submits"]}
    spec = make_spec("ktdfin-v1", **asked, **days, name="silent")
    silent = Run.load(run(spec, tmp_path / "silent", executor="inline").folder)
    table = shelf(paper_page([silent]), "table-8").tables[0]
    assert table.columns[2] == "language models (1)"
    assert "not counted, without a holding or a result: scripted-never-submits" in table.note


def holders(one, found):
    """How many models held a position on some day of some episode."""
    return sum(
        name.startswith("scripted")
        and any(ledger.held() for key in keys for ledger, _ in Ledger.steps(one.records(key)))
        for name, keys in found.items()
    )


def test_windows_accounts_reasons_and_what_is_missing(ktdfin, page):
    (windows,) = shelf(page, "table-2").tables
    snapshot = ktdfin.snapshot(ktdfin.episodes[0].key)
    for row in windows.rows:
        first, last = row.cells[0].text, row.cells[1].text
        days = snapshot.rows(first, last)
        levels = snapshot.at(days.stop - 1, "close").index_levels("IDX", len(days)).tolist()
        assert cell(windows, row.head.text, "index") == pytest.approx(change(levels), rel=1e-4)
    (curves,) = shelf(page, "figure-2").curves
    ends = {name: values[-1] for name, values in curves.lines}
    for name, keys in episodes(ktdfin, mode="open-research", mask="blinded").items():
        if name in ends:
            assert ends[name] == pytest.approx(
                statistics.mean(change(nav(ktdfin, key)) for key in keys)
            )
    boxes = shelf(page, "appendix-a").tables[0]
    assert boxes.columns == ("", "bright", "blinded") and len(boxes.rows) >= 3
    for id, why in (
        ("table-9", "factor models"),
        ("figure-3", "--grid"),
        ("figure-1", "a drawing"),
    ):
        assert why in shelf(page, id).missing
    assert "a script answers immediately" in str(
        shelf(page, "latency").tables[0].rows[0].cells[0].measure
    )


@pytest.fixture(scope="module")
def portfolio(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("stockbench"), {}
    usual = {
        "first": "2022-06-27",
        "last": "2022-07-01",
        "seeds": 2,
        "agents": ["momentum-weighted"],
    }
    usual["models"] = ("scripted/sensible", "scripted/news-reader", "scripted/overspender")
    for name, fields in {
        "main": {},
        "size-5": {"universe": "IDX:5"},
        "ablations": {"protocol": {"inputs": ["no-news", "neither"]}, "seeds": 1},
        "later": {"first": "2022-07-11", "last": "2022-07-15", "seeds": 1},
    }.items():
        spec = make_spec("stockbench-paper-v1", **{**usual, **fields}, name=name)
        made[name] = Run.load(run(spec, folder / name, executor="inline", progress="none").folder)
    return made


def returns(one, **settings):
    return {
        name: [change(nav(one, key)) for key in keys]
        for name, keys in episodes(one, **settings).items()
    }


def test_studies_of_stockbench_vary_one_thing_each(portfolio):
    page = paper_page(list(portfolio.values()))
    (main,) = shelf(page, "main").tables
    for name, found in returns(portfolio["main"]).items():
        if found:
            assert same(cell(main, name, "return"), found, statistics.mean)
    scores = {row.head.text: row.cells[3].measure for row in main.rows if row.ours}
    known = {name: one.value for name, one in scores.items() if one and one.value is not None}
    for name, value in known.items():
        assert cell(main, name, "rank") == 1 + sum(other > value for other in known.values())
    (sizes,) = shelf(page, "table-3").tables
    for run_name, size in (("main", 20), ("size-5", 5)):
        for name, found in returns(portfolio[run_name]).items():
            assert same(cell(sizes, name, f"return, {size} names"), found)
            spread = cell(sizes, name, f"variation, {size} names")
            if spread is not None:
                assert spread == pytest.approx(
                    statistics.stdev(found) / abs(statistics.mean(found)), rel=1e-4
                )
    (left,) = shelf(page, "ablations").tables
    for inputs, source in (("all", "main"), ("no-news", "ablations"), ("neither", "ablations")):
        for name, found in returns(portfolio[source], inputs=inputs).items():
            if name.startswith("scripted"):
                assert same(cell(left, name, f"return, {inputs}"), found)
    (regimes,) = shelf(page, "figure-4").tables
    assert sum(title.startswith("rank") for title in regimes.columns) == 2
    errors = shelf(page, "figure-3").tables[0]
    assert len(errors.rows) == 3 * 5 and len(shelf(page, "thinking").tables or [1]) == 1
    assert "published baseline" in main.rows[-5].head.text or any(
        "published" in r.head.text for r in main.rows
    )


@pytest.mark.parametrize("benchmark", ["stockbench-v1", "ktdfin-v1"])
def test_rules_of_a_run_of_their_own_stand_in_the_models_table(benchmark, tmp_path):
    """Recorded models are one run and the rules another: they played the same days, so they
    share a table.
    """
    days = {"first": "2022-06-27", "last": "2022-07-01"}
    asked = {"models": ["scripted/sensible"], "protocol": {"max_tokens": 2048}}
    models = make_spec(benchmark, **asked, **days, name="models")
    rules = make_spec(
        benchmark, agents=["momentum-12-1", "momentum-weighted"], **days, name="rules"
    )
    made = [
        Run.load(run(spec, tmp_path / spec.name, executor="inline").folder)
        for spec in (models, rules)
    ]
    page = paper_page(made, attribution=False)
    paper = benchmark.partition("-")[0]
    (table,) = shelf(page, {"stockbench": "main", "ktdfin": "table-4"}[paper]).tables
    names = [row.head.text for row in table.rows if row.ours]
    assert {"scripted-sensible", "equal-weight", "momentum-12-1", "momentum-weighted"} <= set(names)
    assert len(names) == len(set(names))
    if paper == "stockbench":
        whole = [
            name
            for name in names
            if "published" not in name and cell(table, name, "Sortino") is not None
        ]
        ranks = [cell(table, name, "rank") for name in whole]
        assert len(whole) >= 3 and sorted(ranks) == list(range(1, len(whole) + 1))


@pytest.mark.parametrize(
    ("name", "filled", "empty", "missing"),
    [
        ("quantcode-frame", "table-3", "table-4", "needs agentic answers: use --grid"),
        ("quantcode", "table-4", "table-3", "needs single-turn answers"),
    ],
)
@pytest.mark.slow
def test_programs_are_counted_by_model(name, filled, empty, missing):
    one = load_run(played(name))
    page = paper_page([one])
    (table,) = shelf(page, filled).tables
    solved = {}
    for record, item in zip(one.records().values(), one.episodes, strict=True):
        solved.setdefault(item.model, []).append(bool(record.solved))
    for model, found in solved.items():
        (name,) = [
            row.head.text for row in table.rows if row.ours and row.head.text.startswith(model)
        ]
        assert cell(table, name, "Judge") == pytest.approx(statistics.mean(found))
    assert shelf(page, empty).missing == missing and any(not row.ours for row in table.rows)


@pytest.mark.parametrize(
    "name", ["systrade-peeps", pytest.param("systrade", marks=pytest.mark.slow)]
)
def test_learning_curves_trades_and_exceptions_by_model(name):
    one = load_run(played(name))
    page = paper_page([one])
    made = shelf(page, "figure-2")
    (record,) = one.records().values()
    scored = [iteration for iteration in record.iterations if iteration.scored is not None]
    for iteration in scored:
        name = f"{record.model}, iteration {iteration.number}"
        for dimension in ("D1", "D2", "D3", "D4"):
            wanted = iteration.scored.scorecard.corrected[dimension].value
            assert cell(made.tables[0], name, dimension) == (
                None if wanted is None else pytest.approx(wanted)
            )
        trail = iteration.scored.trail
        (traded,) = shelf(page, "section-5-4-2").tables
        assert cell(traded, name, "trades") == (None if trail is None else trail.trades)
    (curves,) = made.curves
    drawn = {name.rsplit(" ", 1)[1]: values for name, values in curves.lines}
    for dimension in ("D1", "D2", "D3", "D4"):
        path = {one.number: one.scored.scorecard.corrected[dimension].value for one in scored}
        # A dimension that was never scored has no line.
        assert (dimension in drawn) == any(
            value is not None for value in path.values()
        ) and curves.steps
        for number, wanted in path.items() if dimension in drawn else ():
            assert drawn[dimension][number] == (
                None if wanted is None else pytest.approx(wanted / 10)
            )
    assert "--reviewer" in shelf(page, "figure-5").missing
    with pytest.raises(
        UserError, match="expected runs of one paper, got runs of stockbench, systrade"
    ):
        paper_page([one, load_run(played("stockbench-paper"))])


def test_agents_by_models_by_assets(tmp_path):
    from tradeassay_arena.queries.export import export_season
    from tradeassay_arena.queries.seasons import opened_store, read_season, season_ids
    from tradeassay_arena.queries.snapshot import SeasonSnapshot
    from tradeassay_bench.papers.ama import SeasonExport, ama_page

    db = play_season("arena", tmp_path / "arena.db")
    with opened_store(str(db)) as store:
        season = read_season(store, next(iter(season_ids(store))))
        assert season is not None
        shot = SeasonSnapshot(store, season)
        # As it comes back from a file.
        exported = msgspec.json.encode(export_season(shot))
        page = ama_page([msgspec.json.decode(exported, type=SeasonExport)])
        matrix = shelf(page, "main").tables[0]
        values = {}
        for (entry, asset), line in shot.lines.items():
            who = season.entry(entry)
            grown = 1.0
            for earned in line.earned.tolist():
                grown *= 1.0 + earned
            name = f"{who.architecture}, {who.model}" if who.model else who.shown
            assert cell(matrix, name, asset) in (None, pytest.approx(grown - 1.0, rel=1e-4))
            ranked = line.statuses.count("decided") >= 0.8 * len(line.statuses)
            if who.model and ranked and cell(matrix, name, asset) is not None:
                values.setdefault(who.architecture, []).append(grown - 1.0)
        for row in shelf(page, "figure-2a").tables[0].rows if values else ():
            found = values[row.head.text.split(" (")[0]]
            measured = [one.measure.value for one in row.cells if one.measure is not None]
            assert measured == pytest.approx(
                [statistics.mean(found), min(found), max(found), max(found) - min(found)],
                rel=1e-4,
                abs=1e-9,
            )
        assert "comparable" not in shelf(page, "main").missing and shelf(page, "main").reasons


def test_latency_is_the_median_of_answers_that_were_timed(tmp_path):
    asked = {"model": "local/m", "params": {}, "messages": [], "purpose": "submit", "attempt": 1}
    asked |= dict.fromkeys(("tools", "must_call", "answer_schema")) | dict.fromkeys(
        ("step", "sample", "index"), 0
    )
    lines = [{"type": "cassette", "format": 1, "texts": False}]
    for n, (seconds, error) in enumerate(
        [(1.0, None), (3.0, None), (None, None), (90.0, "timeout")]
    ):
        reply = {
            "text": "" if error else "yes",
            **({"error_kind": error, "error": "late"} if error else {}),
        }
        line = {"type": "answer", "key": f"{n:064x}", "asked": asked, "reply": reply}
        lines.append(line if seconds is None else {**line, "seconds": seconds})
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    (table,) = latency([SimpleNamespace(folder=tmp_path)]).tables
    (row,) = table.rows
    assert [one.measure.value for one in row.cells if one.measure] == [2.0, 2.8, 2.0, 1.0]
    assert latency([]).missing == "no model was queried"
