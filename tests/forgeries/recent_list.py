"""Forgeries of what was added last: amendments, generated tasks, capacity, reliability, trade logs, memory.

They were written from the manual and from files on disk alone, before anybody looked at how ``verify`` works.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from beside_list import judged
from forged_archives import exchange
from forgery_list import Told, assayed, chosen, of, pages, replace, shown
from forging import Forged, Json, canonical_json, command
from honest_runs import AMENDED, amended_season, play, trained

from tradeassay.arena.season import Amendment


# -- amendments of a season --
def amendments(run: Forged, edit: Callable[[list[Amendment]], object]) -> None:
    """Change what an operator amended; hashes and the log are made again."""
    with run.sql() as base:
        base.row_factory = sqlite3.Row
        rows = base.execute("select * from amendments order by number").fetchall()
        made = [
            msgspec.convert({key: row[key] for key in row.keys() if key != "season"}, Amendment) for row in rows
        ]
        edit(made)
        (before,) = base.execute("select sha256 from seasons").fetchone()
        base.execute("delete from amendments")
        logged = [seq for (seq,) in base.execute("select seq from events where kind = 'amended' order by seq")]
        for number, one in enumerate(made, 1):
            one = msgspec.structs.replace(one, number=number)
            before = one.after(before)
            content = msgspec.to_builtins(msgspec.structs.replace(one, sha256=before))
            names = ", ".join(content)
            base.execute(
                f"insert into amendments (season, {names}) values ('spring'{', ?' * len(content)})",
                list(content.values()),
            )
            if number <= len(logged):
                text = canonical_json(content).decode()
                base.execute("update events set body = ? where seq = ?", (text, logged[number - 1]))
        for seq in logged[len(made) :]:
            base.execute("delete from events where seq = ?", (seq,))


def change(made: list[Amendment], kind: str, **fields: str) -> None:
    place = next(place for place, one in enumerate(made) if one.change == kind)
    made[place] = msgspec.structs.replace(made[place], **fields)


@of("amended")
def a_newcomer_who_was_there_from_the_start(run: Forged) -> None:
    amendments(run, lambda made: change(made, "join", day="2022-03-03"))


@of("amended")
def a_newcomer_written_into_the_spec(run: Forged) -> None:
    def edit(spec: Json) -> None:
        spec["entries"].append(
            {"id": "bear", "architecture": "rule", "model": "", "label": "", "params": {"rule": "sell"}}
        )

    run.season(edit)
    amendments(run, lambda made: made.pop(0))


@of("amended")
def a_newcomer_with_another_rule(run: Forged) -> None:
    amendments(run, lambda made: change(made, "join", value=made[0].value.replace("sell", "hold")))


@of("amended")
def lower_fees_than_were_paid(run: Forged) -> None:
    amendments(run, lambda made: change(made, "rule", value="0"))


@of("amended")
def a_withdrawal_before_the_losses(run: Forged) -> None:
    amendments(run, lambda made: change(made, "withdraw", day="2022-03-09"))


@of("amended")
def a_withdrawal_taken_back(run: Forged) -> None:
    amendments(run, lambda made: made.pop())


@of("amended", "rule: openai/gpt-5|openai/gpt-5. for trend, rule")
def an_entry_renamed_like_a_model(run: Forged) -> None:
    amendments(run, lambda made: change(made, "rename", value="openai/gpt-5"))


@of("amended", "2021-01-01")
def amended_before_the_season_was_made(run: Forged) -> None:
    amendments(run, lambda made: change(made, "withdraw", at="2021-01-01T00:00:00Z"))


@of("amended")
def an_amendment_of_sessions_that_were_played(run: Forged) -> None:
    def edit(made: list[Amendment]) -> None:
        made.append(msgspec.structs.replace(made[2], what="window_s", value="7", day="2022-03-03"))

    amendments(run, edit)


@of("amended")
def an_amendment_left_out_of_the_page_of_rules(run: Forged) -> Told:
    out = pages(run)
    changed = 0
    for page in out.rglob("*.html"):
        text = page.read_text()
        if "fee_bp" in text:
            page.write_text(text.replace("fee_bp", "delay_s"))
            changed += 1
    assert changed
    return command("verify", run.path, "--pages", out)


def signed(run: Forged) -> Path:
    key = run.root / "operator"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    spec = AMENDED.replace(
        'title = "Spring"', f'title = "Spring"\noperator = "{key.with_suffix(".pub").read_text().strip()}"'
    )
    (run.root / "s").mkdir()
    return amended_season(run.root / "s", spec, "--sign", key)


@of("amended")
def an_amendment_signed_by_a_stranger(run: Forged) -> None:
    run.path = signed(run)
    with run.sql() as base:
        base.execute("update amendments set signature = (select signature from amendments where number = 2)")


@of("amended", "5 of an operator whose key the spec does not name")
def a_season_without_its_operators_key(run: Forged) -> None:
    run.path = signed(run)
    run.season(lambda spec: spec.pop("operator"))
    amendments(run, lambda made: [change(made, one.change, signature="") for one in list(made)])


# -- generated tasks, and how reliable programs are --
@of("generated")
def another_variant_of_a_generated_task(run: Forged) -> None:
    run.present_as(("gen-rsi-low-1-7", "gen-rsi-low-1-8"))


@of("generated")
def another_hash_of_a_generated_task(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["facts"]["task gen-rsi-low-1-7"] = "34" * 32


@of("generated", "tasks gen-rsi-low-1-7, gen-rsi-low-1-9 instead of the benchmark's own")
def one_drawn_task_called_the_benchmark(run: Forged) -> None:
    pass


@of("generated")
def a_generated_task_called_one_of_the_144(run: Forged) -> None:
    run.scores(lambda found: found["scores"]["cells"][0]["groups"][0].update(value="tradeassay"))


@of("generated")
def a_program_that_always_solves_its_task(run: Forged) -> None:
    page = run.path / "report.html"
    text = page.read_text()
    assert "in 0.0% of plays" in text
    page.write_text(text.replace("in 0.0% of plays", "in 100.0% of plays"))


@of("generated", r"rules cannot be checked there is no task 'gen-rsi-low-1-9{30}'")
def a_variant_without_end(run: Forged) -> None:
    run.present_as(("gen-rsi-low-1-7", "gen-rsi-low-1-" + "9" * 30))


@of("rule")
def a_rule_that_is_always_ahead(run: Forged) -> Told:
    chosen(run, "--first", "2022-01-10", "--last", "2022-01-20", "-a", "random", "--seeds", "3")
    page = run.path / "report.html"
    text = page.read_text()
    assert "8.4% to 100.0%" in text
    page.write_text(text.replace("8.4% to 100.0%", "98.4% to 100.0%"))
    return command("verify", run.path, "--workers", "1")


LATE = "not done after 60 s"


def out_of_time(run: Forged, **checks: Json) -> None:
    """Write that the clock ended a program into its journal and into its record."""

    def edit(found: Json) -> None:
        found["judge"].update(reason=LATE)
        found["judge_behaviour"].update(reason=LATE)
        for name, content in checks.items():
            found[name].update(content)

    with run.journal("gen-rsi-low-1-7", rescore=False) as lines:
        edit(lines[0]["result"])
    with run.outcome("gen-rsi-low-1-7") as outcome:
        edit(outcome["program"]["record"]["turns"][0]["evaluation"])


@of("generated", "1 program out of time, as stated by the runner")
def a_wrong_program_that_was_only_slow(run: Forged) -> None:
    out_of_time(run)


@of("generated")
def a_program_that_was_slow_and_passed(run: Forged) -> None:
    out_of_time(run, judge={"status": "passed"}, judge_behaviour={"status": "passed", "agreement": 1.0})


# -- capacity --
def with_capacity(run: Forged, **lie: object) -> Told:
    chosen(run, "--last", "2022-06-30")
    found = assayed(run)
    for one in found["assay"]["agents"]:
        assert one["capacity"]["dies"]
        one["capacity"].update(lie)
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


@of("rule")
def a_size_a_thousand_times_larger(run: Forged) -> Told:
    return with_capacity(run, dies=6.8e11)


@of("rule")
def a_size_that_is_certain(run: Forged) -> Told:
    return with_capacity(run, low=6.5e8, high=6.9e8)


@of("rule")
def another_size_on_the_page(run: Forged) -> Told:
    chosen(run, "--last", "2022-06-30")
    assayed(run)
    page = run.path / "report.html"
    text = page.read_text()
    assert "680 million" in text
    page.write_text(text.replace("680 million", "680 billion"))
    return command("verify", run.path, "--workers", "1")


# -- trade logs --
def traded(run: Forged, edit: Callable[[list[Json]], object]) -> Told:
    """Write the fills of the run as somebody's own log, change it, and have it judged."""
    chosen(run, "--last", "2022-06-30")
    rows: list[Json] = []
    for line in (run.episode("momentum") / "events.jsonl").read_text().splitlines():
        told = json.loads(line)
        for fill in told["events"]:
            if fill["type"] == "filled":
                side = "BUY" if fill["quantity"] > 0 else "SELL"
                rows.append(
                    {
                        "id": f"{told['session']}-{fill['order_id']}",
                        "time": f"{told['session']} 10:00:00",
                        "symbol": fill["symbol"],
                        "side": side,
                        "quantity": abs(fill["quantity"]),
                        "price": fill["price"],
                        "fees": fill["fee"],
                    }
                )
    edit(rows)
    log = run.root / "trades.csv"
    log.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return command("assay", log, "--dataset", "synthetic/us:7", "--portfolios", "0")


@of("rule", "range")
def bought_below_the_days_low(run: Forged) -> Told:
    return traded(run, lambda rows: rows[0].update(price=rows[0]["price"] * 0.7))


@of("rule", "11 of 11 fills are of more than 'synthetic/us:7' says was traded that day")
def more_than_the_market_traded(run: Forged) -> Told:
    return traded(run, lambda rows: [row.update(quantity=row["quantity"] * 1e6) for row in rows])


@of("rule", "short")
def a_purchase_left_out_of_the_log(run: Forged) -> Told:
    def edit(rows: list[Json]) -> None:
        sold = next(row["symbol"] for row in rows if row["side"] == "SELL")
        rows.remove(next(row for row in rows if row["symbol"] == sold and row["side"] == "BUY"))

    return traded(run, edit)


@of("rule", "1 fills have the id of another and other cells")
def one_fill_at_two_prices(run: Forged) -> Told:
    return traded(run, lambda rows: rows.append({**rows[0], "price": rows[0]["price"] * 1.01}))


# -- memory --
def asked_again(run: Forged, *words: str) -> Told:
    """Ask for other questions, keep the record, and judge the run with it."""
    record = run.path.parent / "recall.json"
    status, said = command(
        "memory", "recall", "--run", run.path, "--questions", "60", "-o", record.with_suffix(".html"), *words
    )
    assert status == 0, said
    return judged(run, "recall.json", lambda found: None)


@of("recalled", "seed 77")
def the_questions_of_a_lucky_seed(run: Forged) -> Told:
    return asked_again(run, "--seed", "77")


@of("recalled", "questions 5|5 questions")
def five_questions(run: Forged) -> Told:
    return asked_again(run, "--questions", "5")


@of("recalled", "share 0.1")
def a_tenth_of_the_decisions_asked_again(run: Forged) -> Told:
    record = run.path.parent / "changed.json"
    words = ("memory", "counterfactual", run.path, "--share", "0.1", "-o", record.with_suffix(".html"))
    status, said = command(*words)
    assert status == 0, said
    return judged(run, "changed.json", lambda found: None)


@of("recalled")
def recall_of_another_market(run: Forged) -> Told:
    return judged(run, "recall.json", lambda found: edited_dataset(found, "synthetic/us:11"))


def edited_dataset(found: Json, name: str) -> None:
    assert "synthetic/" in json.dumps(found)
    text = json.dumps(found).replace("synthetic/us:7", name).replace("synthetic/ashare:7", name)
    found.clear()
    found.update(json.loads(text))


@of("recalled")
def wordings_that_hurt_left_out(run: Forged) -> Told:
    def edit(found: Json) -> None:
        kept = [one for one in found["answers"] if not one.get("wording")]
        assert 0 < len(kept) < len(found["answers"])
        found["answers"] = kept

    return judged(run, "recall.json", edit)


@of("recalled")
def recall_of_every_session_that_was_not_asked(run: Forged) -> Told:
    def edit(found: Json) -> None:
        text = json.dumps(found)
        assert '"every": ' in text
        found.clear()
        found.update(json.loads(re.sub(r'"every": (\d+|null)', '"every": 1', text)))

    return judged(run, "recall.json", edit)


@of("amended")
def an_extension_written_into_the_spec(run: Forged) -> None:
    run.season(lambda spec: spec.update(last="2022-03-21"))
    amendments(run, lambda made: made.remove(next(one for one in made if one.change == "extend")))


# -- masks that were hardened --
@of("hardened", r"hardened in 1 rounds against grid, [^;]*, as stated by the runner")
def a_mask_that_fell_in_one_round(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["spec"]["hardened"].update(rounds=1)


@of("hardened", r"by 0\.001 with true ones, returns by 0\.002\), as stated by the runner")
def shown_prices_that_follow_nothing(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["spec"]["hardened"].update(levels=0.001, returns=0.002)


# -- recordings of a model that is trained --
def recorded(run: Forged) -> Path:
    file = run.root / "trained.tar.xz"
    status, said = command("recordings", "record", run.path, "-o", file)
    assert status == 0, said
    return file


@of("trained")
def a_solved_task_in_a_training_recording(run: Forged) -> Told:
    with run.outcome("gen-adx-trend") as outcome:
        text = json.dumps(outcome)
        assert '"solved": false' in text
        outcome.update(json.loads(text.replace('"solved": false', '"solved": true')))
    return command("recordings", "check", recorded(run))


@of("trained")
def training_answers_of_one_token(run: Forged) -> Told:
    for cassette in (run.path / "models").iterdir():
        with run.lines(cassette) as lines:
            for line in lines[1:]:
                line["reply"]["usage"]["output_tokens"] = 1
    return command("recordings", "check", recorded(run))


@of("trained", "tasks gen-awesome-zero-101-0 instead of the benchmark's own")
def a_failed_task_left_out_of_a_training_recording(run: Forged) -> Told:
    replace(run, trained(run.root / "x", "gen-awesome-zero-101-0"))
    return command("recordings", "check", recorded(run))


# -- plans for programs, and seals on a site --
PROGRAMS = """
benchmark = "quantcode-v1"
models = ["scripted/coder-sma"]
tasks = ["d-ibs-long"]
secret = "5e5e5e5e5e5e5e5e"
"""


def program_plan(run: Forged, text: str) -> Path:
    (run.root / "x").mkdir(exist_ok=True)
    (run.root / "x" / "programs.toml").write_text(text)
    status, said = command("seal", "--plan", run.root / "x" / "programs.toml", "--runs", run.root / "x" / "runs")
    assert status == 0, said
    return run.root / "x" / "runs" / "programs.plan.seal"


@of("quantcode")
def programs_with_more_turns_than_planned(run: Forged) -> Told:
    text = PROGRAMS.replace("coder-sma", "coder-mends").replace("d-ibs-long", "d-sma-cross-long")
    plan = program_plan(run, text + 'settings = ["agentic"]\nturns = 2\n')
    return command("verify", run.path, "--plan", plan, "--workers", "1", "--no-programs")


@of("quantcode", "published before the run began")
def programs_planned_after_they_were_written(run: Forged) -> Told:
    words = ("code", "run", "quantcode-v1", "-m", "scripted/coder-sma", "-t", "d-ibs-long", "--slug", "programs")
    replace(run, play(run.root / "x", *words, "--secret", "5e5e5e5e5e5e5e5e"))
    plan = program_plan(run, PROGRAMS)
    return command("verify", run.path, "--plan", plan, "--workers", "1", "--no-programs")


@of("rule")
def a_signature_of_another_seal(run: Forged) -> Told:
    key, beside = run.root / "ada", run.path.with_suffix(".seal")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", key], check=True)
    assert command("seal", run.path, "-o", run.root / "first.seal", "--sign", key)[0] == 0
    chosen(run, "--first", "2022-01-10", "--last", "2022-01-19")
    assert command("seal", run.path, "-o", beside, "--sign", key)[0] == 0
    with zipfile.ZipFile(run.root / "first.seal") as signed_before:
        (name,) = [one for one in signed_before.namelist() if "sig" in one]
        signature = signed_before.read(name)
    exchange(beside, name, lambda _: signature)
    return shown(run, "rule.seal")
