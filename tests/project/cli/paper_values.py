"""Numbers of the papers' tables, made again by plain loops over the lines of journals and
records.
"""

import json
import math
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, pstdev, stdev
from typing import Any

import numpy as np
import pytest

from tradeassay_bench.core.time import DAY, MINUTE
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data import load_dataset, write_snapshot
from tradeassay_bench.data.source import Listing, MinutePanel, Panel, PanelFacts

Json = dict[str, Any]
QUARTER = 60
"""Sessions below which the corrected convention scores nothing that is scaled to a year."""


def tables(told, exhibit):
    """Return an exhibit's tables as ``reproduce --json`` prints them."""
    (one,) = (one for one in told["paper"]["exhibits"] if one["exhibit"]["id"] == exhibit)
    found = one["ours"]["tables"]
    return found


def cells(table):
    """Return what stands in each row: a number, None where there is none, or a text."""
    return {
        row["head"]["text"]: [
            cell["measure"]["value"] if cell.get("measure") else cell.get("text")
            for cell in row["cells"]
        ]
        for row in table["rows"]
    }


def same(found, wanted, what):
    """Numbers are kept with twelve digits; None stands where none can be had."""
    assert len(found) == len(wanted), what
    for one, two in zip(found, wanted, strict=True):
        assert (one is None) == (two is None), (what, found, wanted)
        assert one is None or one == pytest.approx(two, rel=1e-9, abs=1e-11), (what, found, wanted)


def average(values):
    """Return the mean of what is known; None where nothing is."""
    known = [one for one in values if one is not None]
    return mean(known) if known else None


def check_beside(told):
    """Make again what stands beside every paper: times of answers by model."""
    times = {}
    for run in map(Path, told["runs"]):
        for path in sorted((run / "models").glob("*.jsonl")) if run.is_dir() else ():
            for line in map(json.loads, path.read_text().splitlines()):
                if "reply" in line and not line["reply"].get("error_kind"):
                    times.setdefault(line["asked"]["model"], []).append(line.get("seconds"))
    found = {name: row for table in tables(told, "latency") for name, row in cells(table).items()}
    assert set(found) == set(times)
    for model, seconds in times.items():
        known = sorted(one for one in seconds if one is not None)
        # Nine of ten: between the two nearest of them.
        at = 0.9 * (len(known) - 1)
        slow = (
            known[int(at)] + (at % 1) * (known[math.ceil(at)] - known[int(at)]) if known else None
        )
        wanted = [median(known) if known else None, slow, len(known), len(seconds) - len(known)]
        same(found[model], wanted, ("latency", model))
    return {"latency"} if found else set()


def grouped(told, title, rows, exhibit="groups"):
    """Compare the groups of the two models whose kinds are known with the means of their rows."""
    known = ("qwen2.5", "smollm2")
    if not any(one in name for name in rows for one in known):
        assert not tables(told, exhibit)  # where no model is of a known kind there are no groups
        return
    (table,) = (one for one in tables(told, exhibit) if one["title"] == title)
    members = {"instruct": known, "general": ("smollm2",), "specialised": ("qwen2.5",)}
    for head, row in cells(table).items():
        if head.startswith("printed"):
            continue
        group = members.get(head.split(" (")[0], ())
        these = [values for name, values in rows.items() if any(one in name for one in group)]
        assert head.endswith(f"({len(these)})"), head
        wanted = [average(values[at] for values in these) for at in range(len(row))]
        same(row, wanted, ("groups", title, head))


# Runs that trade


class Played:
    """One episode, from the lines of its journal."""

    def __init__(self, run: Path, episode: Json) -> None:
        self.key, self.seed = episode["key"], episode["seed"]
        self.settings, self.cell = episode["protocol"], episode["cell"]
        self.paper = "-paper-" in episode["benchmark"]
        label = episode["agent"].get("label")
        params = episode["agent"].get("params", {})
        self.model = params.get("model")
        given = (
            "".join(f"-{key}={value}" for key, value in sorted(params.items()))
            if not self.model
            else ""
        )
        self.name = label or episode["agent"]["name"] + given
        folder = run / "episodes" / episode["key"]
        self.lines = [
            json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()
        ]
        self.done = json.loads((folder / "outcome.json").read_text())["status"] == "done"
        first = self.lines[0]["opening"]
        self.nav = [sum(event["cash"] for event in first if event["type"] == "deposited")]
        self.nav += [line["events"][-1]["nav"] for line in self.lines]

    @property
    def returns(self) -> list[float]:
        return [after / before - 1.0 for before, after in pairwise(self.nav)]

    @property
    def total(self) -> float:
        return self.nav[-1] / self.nav[0] - 1.0

    @property
    def fall(self) -> float:
        top, deepest = -math.inf, 0.0
        for value in self.nav:
            top = max(top, value)
            deepest = min(deepest, value / top - 1.0)
        return deepest

    @property
    def sortino(self) -> float | None:
        if self.paper:
            losses = [one for one in self.returns if one < 0]
            return mean(self.returns) / stdev(losses) if len(losses) > 1 else None
        below = mean(min(one, 0.0) ** 2 for one in self.returns)
        return mean(self.returns) / math.sqrt(below) * math.sqrt(252) if below else None

    @property
    def sharpe(self) -> float | None:
        spread = stdev(self.returns)
        return mean(self.returns) / spread * math.sqrt(252) if spread > 1e-15 else None

    @property
    def turnover(self) -> float:
        turned = []
        for before, line in zip(self.nav, self.lines, strict=False):
            fills = [one for one in (*line["opening"], *line["events"]) if one["type"] == "filled"]
            turned.append(sum(abs(one["quantity"] * one["price"]) for one in fills) / 2 / before)
        return mean(turned) * 252

    @property
    def cash(self) -> float:
        return mean(line["events"][-1]["cash"] / line["events"][-1]["nav"] for line in self.lines)

    @property
    def abstained(self) -> float:
        said = [line["decision"] for line in self.lines]
        return mean(not one.get("orders") and one.get("status", "ok") != "failed" for one in said)

    @property
    def failed(self) -> float:
        """The share of sessions without a usable answer."""
        return mean(line["decision"].get("status") == "failed" for line in self.lines)

    @property
    def parse_failures(self) -> float:
        """The share of failed sessions on which no submission was in the right form."""
        failed = [
            one
            for one in (line["decision"] for line in self.lines)
            if one.get("status") == "failed"
        ]
        formless = [
            one for one in failed if all(f["kind"] != "constraint" for f in one["failures"])
        ]
        return len(formless) / len(self.lines)

    def share(self, kind: str) -> float:
        """The share of sessions with a failure of a kind."""
        return mean(
            any(f["kind"] == kind for f in line["decision"].get("failures", ()))
            for line in self.lines
        )


def episodes(runs):
    """Return the episodes of some runs by the name of the run."""
    found = {}
    for run in map(Path, runs):
        manifest = json.loads((run / "manifest.json").read_text())
        found[run.name] = [Played(run, one) for one in manifest["episodes"]]
    return found


def z(values):
    spread = pstdev(values)
    return [0.0 if not spread else (one - mean(values)) / spread for one in values]


def standings(played):
    """Return return, drawdown, Sortino, composite and rank by agent, one seed each.

    Nobody with more than a fifth of failed days has the last two.
    """
    failing = {one.name for one in played if one.failed > 0.2}
    found = {one.name: [one.total, one.fall, one.sortino, None, None] for one in played if one.done}
    whole = {
        name: row for name, row in found.items() if None not in row[:3] and name not in failing
    }
    columns = [z([float(row[at] or 0.0) for row in whole.values()]) for at in range(3)]
    totals = dict(zip(whole, (mean(three) for three in zip(*columns, strict=True)), strict=True))
    for name, total in totals.items():
        found[name][3:] = [total, 1.0 + sum(other > total for other in totals.values())]
    return found


def check_stockbench(told):
    """Make the tables of StockBench again; return the exhibits that were compared."""
    runs = episodes(told["runs"])
    checked = {"main", "figure-3", "groups", "thinking"}
    main = [
        one
        for name, played in runs.items()
        for one in played
        if name.endswith("-stockbench") or name in ("models", "rules")
    ]
    once = list({one.name: one for one in main}.values())
    ours = cells(tables(told, "main")[0])
    for name, wanted in standings(once).items():
        same(ours[name], wanted, ("main", name))
    assert all(ours[one.name] == [None] * 5 for one in once if not one.done)
    for exhibit in ("groups", "thinking"):
        grouped(
            told,
            "Groups of models",
            {one.name: ours[one.name][:3] for one in once if one.model},
            exhibit,
        )
    kinds = ("schema", "arithmetic", "liquidity", "give_up")
    errors = cells(tables(told, "figure-3")[0])
    for one in (one for one in once if one.model):
        lost = [
            line["decision"] for line in one.lines if line["decision"].get("status") == "failed"
        ]
        gave_up = [any(f["kind"] == "give_up" for f in each["failures"]) for each in lost]
        wanted_shares = [*map(one.share, kinds), gave_up.count(False) / len(one.lines)]
        of_main = [name for name in errors if name.startswith(f"{one.name}, ") and " to " in name]
        (head,) = (
            name
            for name in of_main
            if not any(word in name for word in ("names", "no-", "neither"))
        )
        same(errors[head], wanted_shares, ("figure-3", one.name))
    if "size-5" in runs:
        sizes = cells(tables(told, "table-3")[0])
        at = [5, 10, 20, 30]
        for name, row in sizes.items():
            for place, size in enumerate(at):
                played = once if size == 20 else runs[f"size-{size}"]
                (value,) = [one.total for one in played if one.name == name and one.done] or [None]
                same([row[place]], [value], ("table-3", name, size))
        left_out = cells(tables(told, "ablations")[0])
        ways = ("no-news", "no-fundamentals", "neither")
        for one in (one for one in runs["ablations"] if one.model):
            place = 1 + ways.index(one.settings["inputs"])
            same(
                [left_out[one.name][at] for at in (place, place + 4)],
                [one.total, one.fall],
                "ablations",
            )
        regimes = cells(tables(told, "figure-4")[0])
        for place, window in enumerate(("down", "up"), 1):
            wanted_rows = standings([one for one in runs["regimes"] if one.cell.endswith(window)])
            for name, (gain, fall, _, total, rank) in wanted_rows.items():
                same(
                    regimes[name][4 * place : 4 * place + 4],
                    [gain, fall, total, rank],
                    (window, name),
                )
        checked |= {"table-3", "ablations", "figure-4"}
    return checked


def check_ktdfin(told):
    """Make the tables of KTD-Fin again; return the exhibits that were compared."""
    every = [one for played in episodes(told["runs"]).values() for one in played]
    checked = {"table-4", "table-5"}
    groups = {}
    for one in every:
        way = (one.settings.get("mask", ""), one.settings.get("mode", ""))
        groups.setdefault(way, {}).setdefault(one.name, one)
    if len(groups) > 1:
        # A run of rules alone has neither mask nor mode: they stand in every table.
        rules = groups.pop(("", ""), {})
        groups = {way: rules | these for way, these in groups.items()}
    for table in tables(told, "table-4"):
        ours = cells(table)
        way = tuple(table["title"].split(", ")[1:3])
        (index,) = (
            row
            for name, row in ours.items()
            if name.endswith("buy and hold") and "printed" not in name
        )
        for name, one in groups[way].items():
            same(
                [ours[name][9]], [one.parse_failures if one.model else None], ("table-4", way, name)
            )
            if not one.done:
                assert ours[name][:4] == [None] * 4
                continue
            row = ours[name]
            wanted = [one.total, one.total - index[0], one.sharpe, one.fall]
            same(row[:4], wanted, ("table-4", way, name))
            same(
                [row[5], row[7], row[8]],
                [one.turnover, one.cash, one.abstained],
                ("table-4", way, name),
            )
        if table["title"] in [one["title"] for one in tables(told, "groups")]:
            models = {name: ours[name][:6] for name, one in groups[way].items() if one.model}
            grouped(told, table["title"], models)
            (drawn,) = (
                one for one in told["paper"]["exhibits"] if one["exhibit"]["id"] == "figure-2"
            )
            (curves,) = drawn["ours"]["curves"]
            lines = dict(curves["lines"])
            assert curves["x"] == [
                line["session"] for line in next(iter(groups[way].values())).lines
            ]
            for name, path in lines.items():
                if name in groups[way]:
                    same(
                        path,
                        [nav / groups[way][name].nav[0] - 1.0 for nav in groups[way][name].nav[1:]],
                        name,
                    )
            checked |= {"groups", "figure-2"}
    (table,) = tables(told, "table-2")
    checked.add("table-2")
    played = {one.cell.rsplit("/", 1)[-1] for one in every}
    snapshot = load_dataset(table["title"].removeprefix("Windows of "))
    for name, (first, last, sessions, index, _, here) in cells(table).items():
        rows = [at for at, day in enumerate(map(str, snapshot.sessions)) if first <= day <= last]
        levels = snapshot.at(rows[-1], "close").index_levels("IDX")
        same(
            [sessions, index],
            [len(rows), levels[rows[-1]] / levels[rows[0]] - 1.0],
            ("table-2", name),
        )
        assert (here == "yes") == any(name in cell for cell in played), name
    for table in tables(told, "table-5"):
        for name, row in cells(table).items():
            way = tuple(table["title"].split(", ")[1:3])
            if not groups[way][name].done:
                assert row == [None] * len(row), name
                continue
            total = (
                table["columns"].index("sum of parts" if "account" in table["columns"] else "total")
                - 1
            )
            assert sum(row[:total]) == pytest.approx(row[total], abs=1e-9), ("parts add up", name)
            same([row[-1]], [groups[way][name].total], ("table-5", name))
    return checked | (_ktdfin_grid(told, every, groups) if tables(told, "table-3") else set())


def _ktdfin_grid(told, every, groups):
    (table,) = tables(told, "table-3")
    masks = [title.partition(", ")[2] for title in table["columns"][1:]]
    masks = masks[: len(masks) // 3]
    for head, row in cells(table).items():
        name, mode = head.rsplit(", ", 1)
        for at, mask in enumerate(masks):
            ways = {"mask": mask, "mode": mode}.items()
            these = [
                one
                for one in every
                if one.name == name and one.done and ways <= one.settings.items()
            ]
            for place, of in enumerate(("total", "abstained", "turnover")):
                wanted_value = median(getattr(one, of) for one in these) if these else None
                same([row[at + place * len(masks)]], [wanted_value], ("table-3", head, mask, of))
    for head, row in cells(tables(told, "table-11")[0]).items():
        name, mask = head.rsplit(", ", 1)
        one = groups[mask, "open-research"][name]
        wanted = [one.total, one.abstained, one.turnover] if one.done else [None] * 3
        same(row, wanted, ("table-11", head))
    for table in tables(told, "table-8"):
        for name, (rules, models, apart) in cells(table).items():
            assert apart is None or apart == pytest.approx(rules - models, abs=1e-9), name
    spoken = cells(tables(told, "appendix-a")[1])
    for head, row in spoken.items():
        name, mode, mask = head.rsplit(", ", 2)
        one = groups[mask, mode][name]
        said = [order for line in one.lines for order in line["decision"].get("orders", ())]
        assert row[0] == sum(bool(order.get("reason")) for order in said), head
    _attackers(told)
    return {"table-3", "table-11", "table-8", "appendix-a", "figure-3", "table-12"}


def _attackers(told):
    """Make the attackers' shares again from every answer and the truth beside it."""
    probe = json.loads((Path(told["page"]).parent / "paper.json").read_text())["probe"]
    days = [str(day) for day in load_dataset(probe["dataset"]).sessions]
    (table,) = tables(told, "figure-3")
    for attacker in {one["attacker"] for one in probe["answers"]}:
        mine = [one for one in probe["answers"] if one["attacker"] == attacker]
        named = [one for one in mine if one.get("tickers")]
        dated = [one for one in mine if one.get("date")]
        first = [one["tickers"][0] == one["symbol"] for one in named]
        among = {one["number"]: one["symbol"] in one["tickers"] for one in named}
        near = {
            one["number"]: abs(days.index(one["date"]) - days.index(one["session"])) <= 7
            for one in dated
        }
        joint = [among[number] and near[number] for number in among if number in near]
        wanted = [
            mean(each) if each else None for each in (first, among.values(), near.values(), joint)
        ]
        same(cells(table)[attacker], wanted, ("figure-3", attacker))
        assert set(cells(table)[attacker]) <= set(cells(tables(told, "table-12")[0])[attacker])


# Programs


def programs(runs):
    """Yield every episode of runs of programs with its record."""
    for run in map(Path, runs):
        for one in json.loads((run / "manifest.json").read_text())["episodes"]:
            outcome = json.loads((run / "episodes" / one["key"] / "outcome.json").read_text())
            yield one, outcome["program"]["record"]


_STAGES = ("compile", "backtest", "trade", "judge")
_ENDS = {
    "solved": "Solved",
    "judge": "Rejected by the judge",
    "trade": "No trade",
    "backtest": "Crashes while running",
    "compile": "Does not compile",
    "no_code": "No code, reasoning loop",
    "cut_off": "Cut off by the token limit",
}
_CLASSES = {
    "signals-never-activate": "Signals never activate",
    "line-object": "Line object in place of a value",
    "missing-attribute": "Missing attribute or method",
    "wrong-api-params": "Wrong API parameters",
    "does-not-match": "Does not match the task",
    "type-or-none": "Type or None",
    "other-runtime": "Other error while running",
    "syntax-at-runtime": "Syntax error while running",
    "index-out-of-range": "Index out of range",
    "compilation": "Does not compile",
    "timeout": "Time-out",
    "cut-off": "Cut off by the token limit",
}


def check_quantcode(told):
    """Make the tables of QuantCode-Bench again; return the exhibits that were compared."""
    by, tasks, checked = {}, set(), set()
    for episode, record in programs(told["runs"]):
        by.setdefault((episode["agent"]["params"]["model"], record["setting"]), []).append(record)
        tasks.add(episode["task"])
    for exhibit, setting in (("table-3", "single-turn"), ("table-4", "agentic")):
        for table in tables(told, exhibit):
            ours = cells(table)
            for (model, way), records in by.items():
                if way != setting:
                    continue
                (row,) = (row for name, row in ours.items() if name.startswith(f"{model} ("))
                ends = [record["turns"][-1]["stage"] for record in records]
                for place, stage in enumerate(_STAGES):
                    passed = [end == "solved" or end in _STAGES[place + 1 :] for end in ends]
                    same([row[place]], [mean(passed)], (exhibit, model, stage))
                if setting == "agentic":
                    same(
                        [row[4]],
                        [mean(len(record["turns"]) for record in records)],
                        (exhibit, model, "turns"),
                    )
                    for place, turn in enumerate((1, 3, 5, 10), 5):
                        first = (
                            [one["stage"] for one in record["turns"][:turn]] for record in records
                        )
                        same(
                            [row[place]],
                            [mean("solved" in some for some in first)],
                            (exhibit, model, turn),
                        )
                checked.add(exhibit)
    _failed(told, by)
    for setting, titles in (("single-turn", "table-3"), ("agentic", "table-4")):
        rows = {
            name: row[:4] for table in tables(told, titles) for name, row in cells(table).items()
        }
        ours = {name: row for name, row in rows.items() if "(" in name}
        for table in tables(told, "groups"):
            if table["title"].startswith(setting):
                grouped(told, table["title"], ours)
    (table,) = tables(told, "table-2")[:1]
    counted = sum(row[1] or 0 for row in cells(table).values())
    assert counted == len(tasks)
    assert sum(row[1] or 0 for row in cells(tables(told, "table-1")[0]).values()) == len(tasks)
    return checked | {"table-1", "table-2", "table-5", "table-6", "table-7", "table-8", "groups"}


def _failed(told, by):
    """Make the tables of ends and of failures by class again."""
    for setting, ends, failures in (
        ("single-turn", "table-5", "table-6"),
        ("agentic", "table-7", "table-8"),
    ):
        last = [record for (_, way), records in by.items() if way == setting for record in records]
        stages = [record["turns"][-1]["stage"] for record in last]
        for table in tables(told, ends):
            for stage, name in _ENDS.items():
                if name in cells(table):
                    same(
                        [cells(table)[name][1]],
                        [mean(end == stage for end in stages)],
                        (ends, name),
                    )
        classes = [record["failure_class"] for record in last if record["stage"] != "solved"]
        for table in tables(told, failures):
            rows = cells(table)
            for name, title in _CLASSES.items():
                of = len(last) if setting == "single-turn" else len(classes)
                assert (title in rows) or name not in classes, (failures, name)
                if title in rows and of:
                    same([rows[title][-1]], [classes.count(name) / of], (failures, name))
            assert sum(row[-1] for row in rows.values()) == pytest.approx(
                len(classes) / of if of else 0.0
            )
            if setting == "agentic":  # the first answers: all that were not right are of some class
                first = mean(record["turns"][0]["stage"] != "solved" for record in last)
                assert sum(row[1] for row in rows.values()) == pytest.approx(first)


def check_systrade(told):
    """Make the tables of SysTradeBench again; return the exhibits that were compared."""
    records = [record for _, record in programs(told["runs"])]
    last = {}
    for record in records:
        counted = [
            one["scored"]
            for one in record["iterations"]
            if one.get("scored") and not one.get("set_aside")
        ]
        last.setdefault(record["model"], []).append(counted[-1] if counted else None)
    (table,) = tables(told, "table-3")
    ours = cells(table)
    for model, scored in last.items():
        for place, gate in enumerate(table["columns"][1:]):
            passed = [
                one is not None
                and any(
                    g["name"] == gate and g["status"] == "passed"
                    for g in one["scorecard"]["gates"]["gates"]
                )
                for one in scored
            ]
            same([ours[model][place]], [mean(passed)], ("table-3", model, gate))
    by_number = {}
    for record in records:
        for one in record["iterations"]:
            if one.get("scored"):
                by_number.setdefault(f"{record['model']}, iteration {one['number']}", []).append(
                    one
                )
    returned = cells(tables(told, "section-5-4-2")[0])
    assert set(returned) == set(by_number)
    for name, these in by_number.items():
        years = [one["scored"]["scorecard"].get("year") for one in these]
        totals = [year["costs"][0]["total"] for year in years if year]
        trails = [one["scored"]["trail"]["trades"] for one in these if one["scored"].get("trail")]
        wanted = [len(these), len(totals), average(totals), len(trails), average(trails)]
        same([returned[name][at] for at in (0, 1, 2, 4, 5)], wanted, ("section-5-4-2", name))
    rest = _systrade_rest(told, records, last, by_number) | _systrade_groups(told, last)
    return {"table-3", "section-5-4-2"} | rest | _review_map(told, records)


def _systrade_rest(told, records, last, by_number):
    found = cells(tables(told, "table-4")[0])
    by_strategy = {}
    for record, card in zip(
        records, (one for model in last.values() for one in model), strict=True
    ):
        by_strategy.setdefault(record["strategy"], []).extend([card["scorecard"]] if card else [])
    for strategy, cards in by_strategy.items():
        row = found[strategy]
        same(
            [row[0]],
            [cards[0]["complexity"] if cards else row[0]],
            ("table-4", strategy, "complexity"),
        )
        for place, names in ((2, ("D1", "D2")), (4, ("D3", "D4"))):
            halves = [[card["paper"][name]["value"] for name in names] for card in cards]
            whole = average(mean(half) for half in halves if None not in half)
            same([row[place]], [whole], ("table-4", strategy, names))
        # The paper's overall is the mean of the two numbers beside it.
        both = None if None in (row[2], row[4]) else (row[2] + row[4]) / 2
        same([row[6]], [both], ("table-4", strategy, "overall"))
    through = cells(tables(told, "section-5-4-1")[0])
    tests = {}
    for model, scored in last.items():
        cards = [one["scorecard"] for one in scored if one]
        tried = [card["windows"] for card in cards if "tests" in (card.get("windows") or {})]
        tests[model] = [sum(one["passed"] for one in tried), sum(one["tests"] for one in tried)]
    tests["all valid submissions"] = [sum(one[at] for one in tests.values()) for at in (0, 1)]
    for name, (passed, tried_tests) in tests.items():
        same(
            [through[name][0]],
            [passed / tried_tests if tried_tests else None],
            ("section-5-4-1", name),
        )
    means = cells(tables(told, "figure-2")[0])
    for name, these in by_number.items():
        cards = [one["scored"]["scorecard"]["corrected"] for one in these]
        for place, dimension in enumerate(("D1", "D2", "D3", "D4")):
            wanted = average(card[dimension]["value"] for card in cards)
            same([means[name][place]], [wanted], ("figure-2", name, dimension))
    used = {}
    for record in records:
        for one in record["iterations"]:
            used.setdefault(f"{record['model']}, iteration {one['number']}", []).append(
                one["usage"]
            )
    for name, row in cells(tables(told, "figure-3")[0]).items():
        these = used[name]
        wanted = [
            len(these),
            *(mean(one[key] for one in these) for key in ("input_tokens", "output_tokens")),
        ]
        same(row, wanted, ("figure-3", name))
    # Every answer was paid for: what iterations took adds up to what the strategy took.
    for record in records:
        for key in ("input_tokens", "output_tokens"):
            taken = sum(one["usage"].get(key, 0) for one in record["iterations"])
            assert taken == record["usage"].get(key, 0), (record["model"], record["strategy"], key)
    prices = cells(tables(told, "section-5-6")[0])
    for model in last:
        paid = [record["usage"]["usd"] for record in records if record["model"] == model]
        same([prices[model][0]], [mean(paid)], ("section-5-6", model))
    return {"table-4", "section-5-4-1", "figure-2", "figure-3", "section-5-6"}


def _systrade_groups(told, last):
    gates = {"parse", "schema", "exec", "determinism", "leak", "audit"}
    of_models = {}
    for model, scored in last.items():
        cards = [one["scorecard"] for one in scored if one is not None]
        tried = (
            [gate for gate in card["gates"]["gates"] if gate["status"] == "passed"]
            for card in cards
        )
        of_models[model] = [
            sum(gates <= {gate["name"] for gate in passed} for passed in tried) / len(scored)
        ]
        for dimension in ("D1", "D2", "D3", "D4"):
            of_models[model].append(
                average(card["corrected"][dimension]["value"] for card in cards)
            )
    grouped(told, "Groups of models", of_models)
    return {"groups"}


def _review_map(told, records):
    marks = {}
    for record in records:
        for one in record["iterations"]:
            for review in one.get("reviews", ()):
                if review.get("fidelity") is not None:
                    both = (review["fidelity"] + review["risk"]) / 2
                    marks.setdefault(review["reviewer"], {}).setdefault(record["model"], []).append(
                        both
                    )
    for table in tables(told, "figure-5")[:1]:
        for reviewer, row in cells(table).items():
            given = marks.get(
                reviewer, {}
            )  # a reviewer whose marks could not be read has a row too
            wanted = [mean(given[name]) if name in given else None for name in table["columns"][1:]]
            same(row, wanted, ("figure-5", reviewer))
    if not tables(told, "figure-5"):
        return set()
    # Of whose work the last marks count; nobody here marked its own.
    found = cells(tables(told, "section-5-3")[1])
    by_author = {}
    for given in marks.values():
        for author, some in given.items():
            by_author.setdefault(author, []).extend(some)
    assert set(found) == set(by_author)
    order = sorted(by_author, key=lambda author: -mean(by_author[author]))
    for author, row in found.items():
        same([row[0], row[2]], [mean(by_author[author])] * 2, ("section-5-3", author))
        assert row[1] == row[3] == str(1 + order.index(author))
    return {"figure-5", "section-5-3"}


# Seasons

_ROUNDS = """select d.entry, d.asset, d.action, r.price, r.next_price, r.stage, r.session, d.status
from decisions d
join rounds r on r.id = d.round where r.next_price is not null order by r.session"""


def seasons(told):
    """Yield the spec of every season, and its decisions that were settled."""
    for season in told["runs"]:
        with closing(sqlite3.connect(season)) as opened:
            spec = json.loads(opened.execute("select spec from seasons").fetchone()[0])
            yield spec, opened.execute(_ROUNDS).fetchall()


def check_ama(told):
    """Make the tables of Agent Market Arena again from decisions and prices; return the exhibits
    compared.
    """
    by_asset = {table["title"]: cells(table) for table in tables(told, "main")[1:]}
    matrix = cells(tables(told, "main")[0])
    totals = {}
    for spec, lines in seasons(told):
        assert spec["convention"] == "corrected"
        for entry in spec["entries"]:
            for asset in spec["assets"]:
                mine = [line[2:] for line in lines if line[:2] == (entry["id"], asset["symbol"])]
                held, nav, path = 0, 1.0, [1.0]
                for action, price, after in (line[:3] for line in mine if line[3] == "live"):
                    wanted = {"BUY": 1, "SELL": -1}.get(action, held)
                    nav *= (1.0 - 0.0005 * abs(wanted - held)) * (
                        1.0 + wanted * (after / price - 1.0)
                    )
                    held = wanted
                    path.append(nav)
                moves = [after / before - 1.0 for before, after in pairwise(path)]
                year = 365 if asset["kind"] == "crypto" else 252
                total, spread = path[-1] / path[0] - 1.0, stdev(moves)
                deepest = min(value / max(path[: at + 1]) - 1.0 for at, value in enumerate(path))
                ratio = mean(moves) / spread * math.sqrt(year) if spread > 1e-12 else None
                wanted_row = [
                    total,
                    (1.0 + total) ** (year / len(moves)) - 1.0,
                    spread * math.sqrt(year),
                ]
                if len(moves) < QUARTER:  # a short record has no number per year
                    wanted_row[1:], ratio = [None, None], None
                name = f"{entry['architecture']}, {entry['model']}" if entry.get("model") else None
                if name is None or by_asset[asset["symbol"]][name][0] is None:
                    continue
                same(
                    by_asset[asset["symbol"]][name],
                    [*wanted_row, ratio, deepest],
                    (name, asset["symbol"]),
                )
                assert total == pytest.approx(
                    matrix[name][tables(told, "main")[0]["columns"].index(asset["symbol"]) - 1]
                )
                decided = mean(line[5] == "decided" for line in mine if line[3] == "live")
                if decided < 0.8:
                    continue
                for key in (("figure-2a", entry["architecture"]), ("figure-2b", entry["model"])):
                    totals.setdefault(key, []).append(total)
    for (exhibit, who), values in totals.items():
        (row,) = (
            row
            for head, row in cells(tables(told, exhibit)[0]).items()
            if head.startswith(f"{who} (")
        )
        ends = [mean(values), min(values), max(values), max(values) - min(values)]
        same(row, ends, (exhibit, who))
    assets = [title for title in by_asset if title != "As printed"]
    every = {
        f"{name}, {asset}": row
        for asset in assets
        for name, row in by_asset[asset].items()
        if "/" in name
    }
    grouped(told, "Groups of models", every)
    return {"main", "figure-2a", "figure-2b", "groups"} | _styles(told, matrix)


def _styles(told, matrix):
    """Make the best pairing, the timeline and the styles again."""
    assets = tables(told, "main")[0]["columns"][1:]
    rounds = [
        (entry, line)
        for spec, lines in seasons(told)
        for line in lines
        for entry in spec["entries"]
    ]
    made = {}
    for entry, line in rounds:
        if line[0] == entry["id"] and line[5] == "live":
            name = f"{entry['architecture']}, {entry.get('model')}"
            made.setdefault((name, line[1]), []).append(line[7] == "decided")
    for asset, (agent, model, total) in cells(tables(told, "pairing")[0]).items():
        known = {name: row[assets.index(asset)] for name, row in matrix.items() if ", " in name}
        ranked = [
            (value, name)
            for name, value in known.items()
            if value is not None and mean(made[name, asset]) >= 0.8
        ]
        if not ranked:
            assert (agent, model, total) == ("nobody", "nobody", None)
            continue
        assert f"{agent}, {model}" in {name for value, name in ranked if value == max(ranked)[0]}
        assert max(ranked)[0] == pytest.approx(total)
    found = cells(tables(told, "styles")[0])
    decisions = cells(tables(told, "timeline")[0])
    heads = tables(told, "timeline")[0]["columns"][1:]
    for spec, lines in seasons(told):
        days = {line[6] for line in lines if line[5] == "live"}
        for entry in spec["entries"]:
            name = f"{entry['architecture']}, {entry.get('model')}"
            if name not in found or len(spec["assets"]) != 1:
                continue
            mine = [line for line in lines if line[0] == entry["id"] and line[5] == "live"]
            held, path = 0, []
            for line in mine:
                held = {"BUY": 1, "SELL": -1}.get(line[2], held)
                path.append(held)
            same(
                found[name][1:4],
                [mean(one == side for one in path) for side in (1, -1, 0)],
                ("styles", name),
            )
            turned = mean(one != two for one, two in pairwise(path))
            same([found[name][6]], [turned], ("styles", name, "changes"))
            right = [
                side * (line[4] / line[3] - 1.0) > 0
                for side, line in zip(path, mine, strict=True)
                if side
            ]
            same([found[name][5]], [mean(right) if right else None], ("styles", name, "right"))
            if name in heads:
                shown = [row[heads.index(name)] for day, row in decisions.items() if day in days]
                assert shown == [line[2] for line in mine], name
    return {"pairing", "timeline", "styles"}


# Data


def store_coins(place):
    """Store two years of three coins that trade round the clock, with bars of an hour."""
    days = np.arange(np.datetime64("2021-12-01"), np.datetime64("2023-12-27"))
    opens, rng = days.astype(np.int64) * DAY, np.random.default_rng(5)
    steps = rng.normal(0.0, 0.006, (days.size * 24, 3))
    hourly = 100.0 * np.exp(np.cumsum(steps, axis=0))
    begun = np.vstack((np.full((1, 3), 100.0), hourly[:-1]))
    hours = {
        "open": begun,
        "high": np.maximum(begun, hourly) * 1.001,
        "low": np.minimum(begun, hourly) * 0.999,
    }
    hours |= {"close": hourly, "volume": np.full(hourly.shape, 10.0), "amount": hourly * 10.0}
    parts = {name: table.reshape(days.size, 24, 3) for name, table in hours.items()}
    daily = {
        "open": parts["open"][:, 0],
        "high": parts["high"].max(axis=1),
        "low": parts["low"].min(axis=1),
    }
    daily |= {"close": parts["close"][:, -1], "volume": parts["volume"].sum(axis=1)}
    daily["amount"] = parts["amount"].sum(axis=1)
    names = ("BNB", "BTC", "ETH")
    where = {"currency": "USD", "calendar": "24/7", "minutes_per_bar": 60}
    facts = PanelFacts(kind="synthetic", source="test", query="", **where)
    coins = [Instrument(symbol=name, kind="crypto") for name in names]
    panel = Panel(
        name="coins",
        facts=facts,
        listings=tuple(Listing(instrument=coin, listed=str(days[0])) for coin in coins),
        sessions=days,
        open_time=opens,
        close_time=opens + DAY,
        bars=daily,
        suspended=np.zeros((days.size, 3), dtype=bool),
        minutes=MinutePanel(
            names, (opens[:, None] + np.arange(1, 25) * 60 * MINUTE).ravel(), hours
        ),
    )
    write_snapshot(panel, place, allow_faults=True)
    return place


def earned(decisions, closes, capital=100_000.0):
    """Return what decisions about one leg, shares of equity at a close, earned without costs."""
    wanted = dict(zip(decisions.row.tolist(), decisions.fraction.tolist(), strict=True))
    cash, held = capital, 0.0
    for row, close in enumerate(closes):
        if row in wanted:
            target = wanted[row] * (cash + held * close) / close
            cash, held = cash - (target - held) * close, target
    return (cash + held * closes[-1]) / capital - 1.0
