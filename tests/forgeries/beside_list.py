"""Forgeries of what stands beside a run: records of memory, assays, sites, papers, plans, cards, arena pages.

They were written from the manual and from files on disk alone, before anybody looked at how ``verify`` works.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from forged_archives import exchange
from forgery_list import (
    FORGERIES,
    SHORT,
    Told,
    assayed,
    of,
    pages,
    planned,
    play_plan,
    record,
    replace,
    sealed,
    site,
)
from forging import Forged, Json, canonical_json, command
from honest_runs import AGENT, PIPE, play

from tradeassay.benchmarks import Benchmark, benchmarks

BEFORE = len(FORGERIES)
K3 = 'agents = [{name = "momentum-12-1", params = {k = 3}}]'


def edited(path: Path, edit: Callable[[Any], object]) -> None:
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_bytes(canonical_json(content))


# -- what a model remembers --
def judged(run: Forged, name: str, edit: Callable[[Json], object]) -> Told:
    """Change a record of memory, judge the run with it as its runner would, and verify the run."""
    edited(run.path.parent / name, edit)
    status, said = judge(run)
    return command("verify", run.path, "--workers", "1") if status == 0 else (1, said)


def judge(run: Forged) -> tuple[int, str]:
    records = [run.path.parent / name for name in ("recall.json", "changed.json")]
    words = [word for path in records for word in ("--recall", path)]
    return command("assay", run.path, "--portfolios", "100", *words)


@of("recalled")
def an_audit_that_found_nothing_remembered(run: Forged) -> Told:
    def edit(found: Json) -> None:
        found.update(told="no sign", sentence="scripted/sensible remembers nothing of this market.")

    return judged(run, "recall.json", edit)


@of("recalled")
def answers_of_an_audit_exchanged(run: Forged) -> Told:
    def edit(found: Json) -> None:
        for answer in found["answers"]:
            answer["said"] = "unknown"

    return judged(run, "recall.json", edit)


@of("recalled")
def the_answers_of_an_audit_that_hurt_left_out(run: Forged) -> Told:
    return judged(run, "recall.json", lambda found: found.update(answers=found["answers"][::2]))


@of("recalled", "another model|asked of")
def the_audit_of_another_model(run: Forged) -> Told:
    return judged(run, "recall.json", lambda found: found.update(model="scripted/cautious"))


@of("recalled", "cutoff")
def an_audit_with_an_early_cutoff(run: Forged) -> Told:
    def edit(found: Json) -> None:
        found["cutoff"] = found["config"]["cutoff"] = "2015-01-01"

    return judged(run, "recall.json", edit)


@of("recalled")
def a_share_that_recall_explains_made_small(run: Forged) -> Told:
    def edit(found: Json) -> None:
        found["recall"] = {"value": 0.0, "low": -0.01, "high": 0.01, "level": 0.95, "n": 232}

    return judged(run, "recall.json", edit)


@of("recalled", "another run|other run")
def the_audit_of_another_run(run: Forged) -> Told:
    return judged(run, "recall.json", lambda found: found.update(run="another"))


@of("recalled")
def a_changed_market_that_changed_every_decision(run: Forged) -> Told:
    def edit(found: Json) -> None:
        for arm in found["arms"]:
            arm["depends"].update(value=1.0, low=0.99, high=1.0)

    return judged(run, "changed.json", edit)


@of("recalled")
def decisions_in_a_changed_market_exchanged(run: Forged) -> Told:
    return judged(run, "changed.json", lambda found: found.update(decisions=found["decisions"][:3]))


@of("recalled")
def a_changed_market_of_a_reader(run: Forged) -> Told:
    return judged(run, "changed.json", lambda found: found.update(by_name=False, sentence="It reads prices."))


@of("recalled")
def recall_excluded_in_the_assay(run: Forged) -> Told:
    def edit(found: Json) -> None:
        for one in found["assay"]["agents"]:
            one["recall"] = {**(one["recall"] or {}), "excluded": "the window lies after its cutoff"}

    edited(run.path / "assay.json", edit)
    return None


@of("recalled")
def a_limit_of_recall_left_out_of_the_assay(run: Forged) -> None:
    def edit(found: Json) -> None:
        for one in found["assay"]["agents"]:
            one["verdict"]["limits"] = [word for word in one["verdict"]["limits"] if "recall" not in word]

    edited(run.path / "assay.json", edit)


@of("recalled")
def a_record_of_recall_taken_away(run: Forged) -> None:
    def edit(found: Json) -> None:
        assert found["memory"]
        del found["memory"]

    edited(run.path / "assay.json", edit)


@of("recalled")
def a_page_on_which_recall_is_excluded(run: Forged) -> Told:
    page = run.path / "report.html"
    text = page.read_text()
    assert "recall is not excluded" in text
    page.write_text(text.replace("recall is not excluded", "recall is excluded"))
    return None


# -- assays --
def assay_by_hand(run: Forged, **config: object) -> Told:
    """Make the assay with other settings than the command has, as a runner can from Python."""
    found = assayed(run)
    found["assay"]["config"].update(config)
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


@of("rule")
def the_luckiest_draw_of_portfolios(run: Forged) -> Told:
    return assay_by_hand(run, seed=77)


@of("rule", "skilled")
def a_lower_threshold_of_skill(run: Forged) -> Told:
    return assay_by_hand(run, skilled=0.0001)


@of("rule", "level")
def an_assay_of_half_the_level(run: Forged) -> Told:
    return assay_by_hand(run, level=0.5)


@of("rule", "trials")
def fewer_tries_than_were_made(run: Forged) -> Told:
    for name in ("second", "third"):
        play(run.path.parent.parent, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--slug", name)
    return assay_by_hand(run, trials=1, folder=False)


@of("rule")
def an_assay_of_real_data(run: Forged) -> Told:
    found = assayed(run)
    found["assay"]["badges"] = ["real data"]
    for one in found["assay"]["agents"]:
        one["badges"] = ["real data"]
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


@of("rule")
def a_losing_agent_left_out_of_the_assay(run: Forged) -> Told:
    found = assayed(run)
    del found["assay"]["agents"][-1]
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


# -- sites --
def on_the_site(run: Forged, edit: Callable[[Path], object]) -> Told:
    assert site(run)[0] == 0
    edit(run.root / "site")
    return command("verify", run.root / "site", "--runs", run.path.parent, "--workers", "1")


@of("rule")
def a_row_left_out_of_the_board(run: Forged) -> Told:
    return on_the_site(run, lambda out: edited(out / "board.json", lambda rows: rows.pop()))


@of("rule")
def freedoms_left_out_of_the_sites_json(run: Forged) -> Told:
    return on_the_site(
        run, lambda out: edited(out / "runs.json", lambda runs: runs[0]["freedom"].update(departures=[]))
    )


@of("rule")
def another_root_on_the_site(run: Forged) -> Told:
    return on_the_site(
        run, lambda out: edited(out / "runs.json", lambda runs: runs[0]["verdict"].update(root="ab" * 32))
    )


@of("rule")
def a_script_more_on_the_site(run: Forged) -> Told:
    return on_the_site(run, lambda out: (out / "more.js").write_text("document.title = 'audited'"))


@of("rule", "neither a file nor a folder|link")
def a_page_of_the_site_behind_a_link(run: Forged) -> Told:
    def edit(out: Path) -> None:
        (out / "index.html").rename(run.root / "elsewhere.html")
        (out / "index.html").symlink_to(run.root / "elsewhere.html")

    return on_the_site(run, edit)


@of("rule")
def another_sealed_run_to_download(run: Forged) -> Told:
    shutil.copy(sealed(run), run.path.parent / "rule.seal")

    def edit(out: Path) -> None:
        (found,) = out.rglob("*.seal")
        found.write_bytes(found.read_bytes() + b"x")

    return on_the_site(run, edit)


@of("rule")
def a_site_that_tells_of_one_plan(run: Forged) -> Told:
    for k in (5, 7):
        planned(run, f'agents = [{{name = "momentum-12-1", params = {{k = {k}}}}}]').unlink()
    runs = planned(run, K3).parent
    play(run.root / "x", "run", runs / "x.plan.spec.json")
    out = run.root / "site"
    assert command("site", runs, "-o", out, "--workers", "1")[0] == 0
    for page in [*out.rglob("*.html"), *out.rglob("*.json"), out / "feed.xml"]:
        page.write_text(page.read_text().replace("1 of 3 plans of ada, 2 unrevealed", "1 of 1 plans of ada"))
    return command("verify", out, "--runs", runs, "--workers", "1")


@of("rule")
def plans_left_out_of_the_log_on_the_site(run: Forged) -> Told:
    for k in (5, 7):
        planned(run, f'agents = [{{name = "momentum-12-1", params = {{k = {k}}}}}]')
    runs, out = planned(run, K3).parent, run.root / "site"
    play(run.root / "x", "run", runs / "x.plan.spec.json")
    assert command("site", runs, "-o", out, "--workers", "1")[0] == 0
    (log,) = out.rglob("plans.jsonl")
    log.write_text(log.read_text().splitlines(keepends=True)[-1])
    return command("verify", out, "--runs", runs, "--workers", "1")


# -- plans --
@of("rule")
def a_log_of_plans_numbered_anew(run: Forged) -> Told:
    """Two of three plans vanish, the hashes of the lines are made again, and the site is written anew."""
    for k in (5, 7):
        planned(run, f'agents = [{{name = "momentum-12-1", params = {{k = {k}}}}}]')
    runs, out = planned(run, K3).parent, run.root / "site"
    play(run.root / "x", "run", runs / "x.plan.spec.json")
    assert command("site", runs, "-o", out, "--workers", "1")[0] == 0
    last = json.loads((runs / "plans.jsonl").read_text().splitlines()[-1])
    (runs / "plans.jsonl").write_bytes(canonical_json({**last, "number": 1, "before": ""}) + b"\n")
    return command("site", runs, "-o", out, "--workers", "1")


@of("rule")
def a_line_of_the_log_with_another_root(run: Forged) -> Told:
    planned(run, 'agents = [{name = "momentum-12-1", params = {k = 5}}]')
    plan = planned(run, K3)
    play_plan(run, plan)
    log = plan.with_name("plans.jsonl")
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    first["root"] = "ab" * 32
    log.write_bytes(canonical_json(first) + b"\n" + canonical_json(second) + b"\n")
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule")
def a_longer_window_than_planned(run: Forged) -> Told:
    plan = planned(run, K3)
    spec = plan.with_suffix("").with_suffix(".plan.spec.json")
    edited(spec, lambda found: found["window"].update(last="2022-01-28"))
    replace(run, play(run.root / "x", "run", spec))
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule")
def a_planned_spec_exchanged_in_its_seal(run: Forged) -> Told:
    plan = planned(run, 'agents = [{name = "momentum-12-1", params = {k = 5}}]')
    kept = plan.read_bytes()
    play_plan(run, planned(run, K3))
    plan.write_bytes(kept)
    exchange(plan, "plan.json", lambda text: text.replace(b'"k":5', b'"k":3'))
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule")
def a_secret_that_was_not_planned(run: Forged) -> Told:
    plan = planned(run, K3)
    spec = plan.with_suffix("").with_suffix(".plan.spec.json")
    edited(spec, lambda found: found.update(secret="00" * 16))
    replace(run, play(run.root / "x", "run", spec))
    return command("verify", run.path, "--plan", plan, "--workers", "1")


# -- rules --
@of("rule", "these are not the rules of 'daily-us-v1': market.cash is 10000000.0, registered is 1000000.0")
def a_benchmark_under_its_id_with_other_rules(run: Forged) -> None:
    """The run is honest in itself: it was made where the benchmark is registered with ten times the cash."""
    plain = benchmarks.get

    def richer(name: str) -> Benchmark:
        market = msgspec.structs.replace(plain(name).market, cash=1e7)
        return msgspec.structs.replace(plain(name), market=market)

    with mock.patch.object(benchmarks, "get", richer):
        words = ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--executor", "inline", "--slug", "rule")
        replace(run, play(run.root / "x", *words))
    assert command("verify", run.path, "--workers", "1")[0] == 3


# -- what follows from nothing, and files that do not belong --
@of("rule", "AUDIT.md")
def a_certificate_in_the_folder(run: Forged) -> None:
    (run.path / "AUDIT.md").write_text("Audited and found correct.")


@of("rule")
def a_field_more_in_the_manifest(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["audited_by"] = "the exchange"


@of("rule")
def a_field_more_in_the_scores(run: Forged) -> None:
    run.scores(lambda found: found.update(audited_by="the exchange"))


@of("rule")
def a_field_more_in_the_journal(run: Forged) -> None:
    with run.journal("momentum") as lines:
        lines[0]["note"] = "audited by the exchange"


@of("rule")
def a_field_more_in_an_outcome(run: Forged) -> None:
    with run.outcome("momentum") as outcome:
        outcome["audited_by"] = "the exchange"


@of("rule", "times that cannot be true|timing")
def a_run_in_less_than_no_time(run: Forged) -> None:
    edited(run.path / "timing.json", lambda found: found["starts"][0].update(play=-5.0))


@of("rule", "numpy 1.0|other versions")
def made_with_a_numpy_of_long_ago(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["versions"]["packages"]["numpy"] = "1.0"


@of("own")
def the_class_exchanged_after_the_run(run: Forged) -> Told:
    (run.root / "on_a_pipe.py").write_text(PIPE)
    (run.root / "my_agent.py").write_text(AGENT.replace("r20", "r5"))
    return command("verify", run.path, "--workers", "1", "--agent-files", run.root)


@of("own")
def a_program_without_its_files(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["files"].pop("on_a_pipe")


# -- programs, and their cards --
@of("systrade")
def a_card_of_another_program(run: Forged) -> None:
    (card,) = (run.path / "cards").iterdir()
    shutil.copy(card, card.with_name("openai-gpt-5__bollinger__s0.html"))


@of("systrade")
def a_card_without_its_failed_gate(run: Forged) -> None:
    (card,) = (run.path / "cards").iterdir()
    text = card.read_text()
    assert "leak" in text
    card.write_text(text.replace("leak", "scan"))


@of("systrade")
def a_reviewers_reply_exchanged(run: Forged) -> None:
    with run.lines(run.cassette("builder-peeps")) as lines:
        replies = [line for line in lines if "reply" in line]
        replies[-1]["reply"]["text"] = replies[-1]["reply"]["text"].replace("6", "10").replace("7", "10") + " "
    with run.lines(run.episode("builder-peeps") / "dialogue.jsonl") as lines:
        lines[-1]["reply"]["text"] = lines[-1]["reply"]["text"].replace("6", "10").replace("7", "10") + " "


@of("quantcode")
def a_failed_turn_left_out_everywhere(run: Forged) -> None:
    folder = next((run.path / "episodes").iterdir())
    with run.lines(folder / "dialogue.jsonl") as lines:
        del lines[0]

    def edit(outcome: Json) -> None:
        found = outcome["program"]["record"]
        del found["turns"][0]
        for number, turn in enumerate(found["turns"], 1):
            turn["number"] = number
        found["solved_at"] = 3
        outcome["program"]["words"] = "solved at turn 3"

    with run.journal(folder.name, rescore=False) as lines:
        del lines[0]
        for step, line in enumerate(lines):
            line["step"] = step
    record(run, edit)


@of("quantcode")
def a_prompt_with_a_hint(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["facts"]["prompt task.v1"] = "ab" * 32


# -- the arena and its pages --
def on_its_pages(run: Forged, name: str, old: str, new: str) -> Told:
    out = pages(run)
    file = out / name
    text = file.read_text()
    assert old in text, text[:500]
    file.write_text(text.replace(old, new))
    return command("verify", run.path, "--pages", out)


@of("arena")
def another_value_in_the_equity_of_a_season(run: Forged) -> Told:
    return on_its_pages(run, "seasons/spring/equity.json", "1", "2")


@of("arena")
def a_season_in_chinese_with_other_numbers(run: Forged) -> Told:
    return on_its_pages(run, "zh/seasons/spring/index.html", "%", " %")


@of("arena")
def a_script_of_the_arena_exchanged(run: Forged) -> Told:
    out = pages(run)
    (script,) = (out / "static").glob("charts-*.js")
    script.write_text("document.title = 'audited'")
    return command("verify", run.path, "--pages", out)


@of("arena")
def rules_of_a_season_told_otherwise(run: Forged) -> Told:
    return on_its_pages(run, "seasons/spring/rules/index.html", "fee", "gift")


@of("arena")
def a_table_of_audits_in_the_arena(run: Forged) -> None:
    run.execute("create table audits (by text)", "insert into audits values ('the exchange')")


@of("arena")
def news_of_a_round_written_later(run: Forged) -> None:
    text = '[{"text":"It will rise"}]'
    digest = hashlib.sha256(text.encode()).hexdigest()
    run.execute(f"update stream_rounds set news = '{text}', sha256 = '{digest}' where session = '2022-03-04'")


@of("arena", "second")
def a_second_season_that_was_never_played(run: Forged) -> None:
    with run.sql() as base:
        (text,) = base.execute("select spec from seasons").fetchone()
        spec = {**json.loads(text), "id": "second", "title": "Audited"}
        text = canonical_json(spec).decode()
        digest = hashlib.sha256(text.encode()).hexdigest()
        base.execute("insert into seasons values ('second', ?, ?, '2022-02-28T00:00:00Z')", (text, digest))


@of("arena")
def the_debate_of_a_desk_left_out_of_the_calls(run: Forged) -> None:
    run.execute("delete from calls where rowid = (select max(rowid) from calls)")


@of("arena")
def a_rule_with_other_parameters_than_it_played(run: Forged) -> None:
    run.season(lambda spec: spec["entries"][2]["params"].update(rule="buy"))


@of("arena")
def dollars_for_a_scripted_model(run: Forged) -> None:
    run.execute("update decisions set usd = 1e300 where entry = 'bare' and session = '2022-03-04'")


@of("arena")
def an_agent_of_the_door_that_never_came(run: Forged) -> None:
    run.execute(
        "insert into door_agents values ('x','spring','bare','https://openai.com',x'00',x'00','2022-03-01T00:00:00Z',null)"
    )
