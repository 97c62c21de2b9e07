"""Forgeries of what stands beside a run: records of memory, assays, sites, papers, plans, cards, arena pages.

They were written from the manual and from files on disk alone, before anybody looked at how ``verify`` works.
"""

import hashlib
import json
import shutil
from unittest import mock

import msgspec
from forged_archives import exchange
from forgery_list import (
    K3,
    SHORT,
    against,
    cassette,
    dialogue,
    of,
    on_the_site,
    plan_others,
    planned,
    play_plan,
    program,
    replace,
    rows,
    sealed,
    swap,
    these,
    without,
)
from forging import canonical_json, command
from honest_runs import AGENT, PIPE, play

from tradeassay.benchmarks import benchmarks


def edited(path, edit):
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_bytes(canonical_json(content))


# -- what a model remembers --
def judged(name, edit):
    """Change a record of memory, judge the run with it as its runner would, and leave the run for ``verify``."""

    def forge(run):
        edited(run.path.parent / name, edit)
        records = [run.path.parent / record for record in ("recall.json", "changed.json")]
        words = [word for path in records for word in ("--recall", path)]
        status, said = command("assay", run.path, "--portfolios", "100", *words)
        return None if status == 0 else (1, said)

    return forge


def recall(edit):
    return judged("recall.json", edit)


def in_the_assay(edit):
    return lambda run: edited(run.path / "assay.json", edit)


def _early(found):
    found["cutoff"] = found["config"]["cutoff"] = "2015-01-01"


def _excluded(found):
    for one in found["assay"]["agents"]:
        one["recall"] = {**(one["recall"] or {}), "excluded": "the window lies after its cutoff"}


def _unlimited(found):
    for one in found["assay"]["agents"]:
        one["verdict"]["limits"] = [word for word in one["verdict"]["limits"] if "recall" not in word]


SMALL = {"value": 0.0, "low": -0.01, "high": 0.01, "level": 0.95, "n": 232}
these(
    "recalled",
    an_audit_that_found_nothing_remembered=recall(
        lambda found: found.update(told="no sign", sentence="scripted/sensible remembers nothing of this market.")
    ),
    answers_of_an_audit_exchanged=recall(
        lambda found: [answer.update(said="unknown") for answer in found["answers"]]
    ),
    the_answers_of_an_audit_that_hurt_left_out=recall(lambda found: found.update(answers=found["answers"][::2])),
    the_audit_of_another_model=(
        "another model|asked of",
        recall(lambda found: found.update(model="scripted/cautious")),
    ),
    an_audit_with_an_early_cutoff=("cutoff", recall(_early)),
    a_share_that_recall_explains_made_small=recall(lambda found: found.update(recall=SMALL)),
    the_audit_of_another_run=("another run|other run", recall(lambda found: found.update(run="another"))),
    a_changed_market_that_changed_every_decision=judged(
        "changed.json",
        lambda found: [arm["depends"].update(value=1.0, low=0.99, high=1.0) for arm in found["arms"]],
    ),
    decisions_in_a_changed_market_exchanged=judged(
        "changed.json", lambda found: found.update(decisions=found["decisions"][:3])
    ),
    a_changed_market_of_a_reader=judged(
        "changed.json", lambda found: found.update(by_name=False, sentence="It reads prices.")
    ),
    recall_excluded_in_the_assay=in_the_assay(_excluded),
    a_limit_of_recall_left_out_of_the_assay=in_the_assay(_unlimited),
    a_record_of_recall_taken_away=in_the_assay(lambda found: found.pop("memory")),
    a_page_on_which_recall_is_tested=lambda run: swap(
        run.path / "report.html", "recall is not tested", "recall is tested"
    ),
)


# -- sites --
def _linked(run, out):
    (out / "index.html").rename(run.root / "elsewhere.html")
    (out / "index.html").symlink_to(run.root / "elsewhere.html")


these(
    "rule",
    a_row_left_out_of_the_board=on_the_site(lambda _, out: edited(out / "board.json", lambda found: found.pop())),
    freedoms_left_out_of_the_sites_json=on_the_site(
        lambda _, out: edited(out / "runs.json", lambda runs: runs[0]["freedom"].update(departures=[]))
    ),
    another_root_on_the_site=on_the_site(
        lambda _, out: edited(out / "runs.json", lambda runs: runs[0]["verdict"].update(root="ab" * 32))
    ),
    a_script_more_on_the_site=on_the_site(
        lambda _, out: (out / "more.js").write_text("document.title = 'audited'")
    ),
    a_page_of_the_site_behind_a_link=("neither a file nor a folder|link", on_the_site(_linked)),
    a_run_in_less_than_no_time=(
        "times that cannot be true|timing",
        lambda run: edited(run.path / "timing.json", lambda found: found["starts"][0].update(play=-5e6)),
    ),
)


@of("rule")
def another_sealed_run_to_download(run):
    shutil.copy(sealed(run), run.path.parent / "rule.seal")

    def edit(_, out):
        (found,) = out.rglob("*.seal")
        found.write_bytes(found.read_bytes() + b"x")

    return on_the_site(edit)(run)


def site_of_plans(run):
    """Plan three runs, play one of them, and write the site; return the folder of runs and the site."""
    plan_others(run)
    runs, out = planned(run).parent, run.root / "site"
    play(run.root / "x", "run", runs / "x.plan.spec.json")
    assert command("site", runs, "-o", out, "--workers", "1")[0] == 0
    return runs, out


@of("rule")
def a_site_that_tells_of_one_plan(run):
    runs, out = site_of_plans(run)
    for page in [*out.rglob("*.html"), *out.rglob("*.json"), out / "feed.xml"]:
        page.write_text(page.read_text().replace("1 of 3 plans of ada, 2 unrevealed", "1 of 1 plans of ada"))
    return command("verify", out, "--runs", runs, "--workers", "1")


@of("rule")
def plans_left_out_of_the_log_on_the_site(run):
    runs, out = site_of_plans(run)
    (log,) = out.rglob("plans.jsonl")
    log.write_text(log.read_text().splitlines(keepends=True)[-1])
    return command("verify", out, "--runs", runs, "--workers", "1")


# -- plans --
@of("rule")
def a_log_of_plans_numbered_anew(run):
    """Two of three plans vanish, the hashes of the lines are made again, and the site is written anew."""
    runs, out = site_of_plans(run)
    last = json.loads((runs / "plans.jsonl").read_text().splitlines()[-1])
    (runs / "plans.jsonl").write_bytes(canonical_json({**last, "number": 1, "before": ""}) + b"\n")
    return command("site", runs, "-o", out, "--workers", "1")


@of("rule")
def a_line_of_the_log_with_another_root(run):
    planned(run, K3.replace("k = 3", "k = 5"))
    plan = planned(run)
    play_plan(run, plan)
    log = plan.with_name("plans.jsonl")
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    first["root"] = "ab" * 32
    log.write_bytes(canonical_json(first) + b"\n" + canonical_json(second) + b"\n")
    return against(run, plan)


def played_otherwise(edit):
    """Change a planned spec, play it, and verify the run against the plan."""

    def forge(run):
        plan = planned(run)
        edited(plan.with_suffix("").with_suffix(".plan.spec.json"), edit)
        play_plan(run, plan)
        return against(run, plan)

    return forge


these(
    "rule",
    a_longer_window_than_planned=played_otherwise(lambda found: found["window"].update(last="2022-01-28")),
    a_secret_that_was_not_planned=played_otherwise(lambda found: found.update(secret="00" * 16)),
)


@of("rule")
def a_planned_spec_exchanged_in_its_seal(run):
    plan = planned(run, K3.replace("k = 3", "k = 5"))
    kept = plan.read_bytes()
    play_plan(run, planned(run))
    plan.write_bytes(kept)
    exchange(plan, "plan.json", lambda text: text.replace(b'"k":5', b'"k":3'))
    return against(run, plan)


# -- classes and rules --
@of("own")
def the_class_exchanged_after_the_run(run):
    (run.root / "on_a_pipe.py").write_text(PIPE)
    (run.root / "my_agent.py").write_text(AGENT.replace("r20", "r5"))
    return command("verify", run.path, "--workers", "1", "--agent-files", run.root)


@of("rule", "these are not the rules of 'daily-us-v1': market.cash is 10000000.0, registered is 1000000.0")
def a_benchmark_under_its_id_with_other_rules(run):
    """The run is honest in itself: it was made where the benchmark is registered with ten times the cash."""
    plain = benchmarks.get

    def richer(name):
        market = msgspec.structs.replace(plain(name).market, cash=1e7)
        return msgspec.structs.replace(plain(name), market=market)

    with mock.patch.object(benchmarks, "get", richer):
        words = ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--executor", "inline", "--slug", "rule")
        replace(run, play(run.root / "x", *words))
    assert command("verify", run.path, "--workers", "1")[0] == 3


# -- programs, and their cards --
@of("systrade")
def a_card_of_another_program(run):
    (card,) = (run.path / "cards").iterdir()
    shutil.copy(card, card.with_name("openai-gpt-5__bollinger__s0.html"))


@of("systrade")
def a_card_without_its_failed_gate(run):
    (card,) = (run.path / "cards").iterdir()
    swap(card, "leak", "scan")


@of("systrade")
def a_reviewers_reply_exchanged(run):
    def edit(lines):
        reply = [line for line in lines if "reply" in line][-1]["reply"]
        reply["text"] = reply["text"].replace("6", "10").replace("7", "10") + " "

    cassette("builder-peeps", edit)(run)
    dialogue("builder-peeps", edit)(run)


@of("quantcode")
def a_failed_turn_left_out_everywhere(run):
    folder = next((run.path / "episodes").iterdir()).name
    dialogue(folder, lambda lines: lines.pop(0))(run)
    with run.journal(folder, rescore=False) as lines:
        without(lines, 0)

    def edit(end):
        found = end["program"]["record"]
        del found["turns"][0]
        for number, turn in enumerate(found["turns"], 1):
            turn["number"] = number
        found["solved_at"] = 3
        end["program"]["words"] = "solved at turn 3"

    program(edit)(run)


# -- the arena --
NEWS = '[{"text":"It will rise"}]'
DOOR = "'x','spring','bare','https://openai.com',x'00',x'00','2022-03-01T00:00:00Z',null"
these(
    "arena",
    a_table_of_audits_in_the_arena=rows(
        "create table audits (by text)", "insert into audits values ('the exchange')"
    ),
    news_of_a_round_written_later=rows(
        f"update stream_rounds set news = '{NEWS}', sha256 = '{hashlib.sha256(NEWS.encode()).hexdigest()}' "
        "where session = '2022-03-04'"
    ),
    the_debate_of_a_desk_left_out_of_the_calls=rows(
        "delete from calls where rowid = (select max(rowid) from calls)"
    ),
    dollars_for_a_scripted_model=rows(
        "update decisions set usd = 1e300 where entry = 'bare' and session = '2022-03-04'"
    ),
    an_agent_of_the_door_that_never_came=rows(f"insert into door_agents values ({DOOR})"),
)


@of("arena", "second")
def a_second_season_that_was_never_played(run):
    with run.sql() as base:
        (text,) = base.execute("select spec from seasons").fetchone()
        spec = {**json.loads(text), "id": "second", "title": "Audited"}
        text = canonical_json(spec).decode()
        digest = hashlib.sha256(text.encode()).hexdigest()
        base.execute("insert into seasons values ('second', ?, ?, '2022-02-28T00:00:00Z')", (text, digest))
