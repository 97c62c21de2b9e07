"""Forgeries of what was added last: amendments, generated tasks, capacity, reliability, trade logs, memory.

They were written from the manual and from files on disk alone, before anybody looked at how ``verify`` works.
"""

import json
import re
import shutil
import sqlite3
import subprocess
import zipfile

import msgspec
from beside_list import judged, recall
from forged_archives import exchange
from forgery_list import (
    assay,
    assayed,
    chosen,
    journal,
    manifest,
    of,
    on_its_pages,
    outcome,
    replace,
    scores,
    shift,
    shown,
    swap,
    these,
)
from forging import canonical_json, command
from honest_runs import AMENDED, amended_season, play, trained

from tradeassay.arena.season import Amendment


# -- amendments of a season --
def amendments(run, edit):
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


def changed(kind, **fields):
    """Change the first amendment of a kind."""

    def edit(made):
        place = next(place for place, one in enumerate(made) if one.change == kind)
        made[place] = msgspec.structs.replace(made[place], **fields)

    return lambda run: amendments(run, edit)


def _from_the_start(run):
    bear = {"id": "bear", "architecture": "rule", "model": "", "label": "", "params": {"rule": "sell"}}
    run.season(lambda spec: spec["entries"].append(bear))
    amendments(run, lambda made: made.pop(0))


def _extended(run):
    run.season(lambda spec: spec.update(last="2022-03-21"))
    amendments(run, lambda made: made.remove(next(one for one in made if one.change == "extend")))


def _told_otherwise(run, out):
    pages = [page for page in out.rglob("*.html") if "fee_bp" in page.read_text()]
    assert pages
    for page in pages:
        swap(page, "fee_bp", "delay_s")


these(
    "amended",
    a_newcomer_who_was_there_from_the_start=changed("join", day="2022-03-03"),
    a_newcomer_written_into_the_spec=_from_the_start,
    a_newcomer_with_another_rule=lambda run: amendments(
        run,
        lambda made: made.insert(
            0, msgspec.structs.replace(made.pop(0), value=made[0].value.replace("sell", "hold"))
        ),
    ),
    lower_fees_than_were_paid=changed("rule", value="0"),
    a_withdrawal_before_the_losses=changed("withdraw", day="2022-03-09"),
    a_withdrawal_taken_back=lambda run: amendments(run, lambda made: made.pop()),
    an_entry_renamed_like_a_model=(
        "rule: openai/gpt-5|openai/gpt-5. for trend, rule",
        changed("rename", value="openai/gpt-5"),
    ),
    amended_before_the_season_was_made=("2021-01-01", changed("withdraw", at="2021-01-01T00:00:00Z")),
    an_amendment_of_sessions_that_were_played=lambda run: amendments(
        run,
        lambda made: made.append(msgspec.structs.replace(made[2], what="window_s", value="7", day="2022-03-03")),
    ),
    an_amendment_left_out_of_the_page_of_rules=on_its_pages(_told_otherwise),
    an_extension_written_into_the_spec=_extended,
)


def signed(run):
    key = run.root / "operator"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    spec = AMENDED.replace(
        'title = "Spring"', f'title = "Spring"\noperator = "{key.with_suffix(".pub").read_text().strip()}"'
    )
    (run.root / "s").mkdir()
    return amended_season(run.root / "s", spec, "--sign", key)


@of("amended")
def an_amendment_signed_by_a_stranger(run):
    run.path = signed(run)
    with run.sql() as base:
        base.execute("update amendments set signature = (select signature from amendments where number = 2)")


@of("amended", "5 of an operator whose key the spec does not name")
def a_season_without_its_operators_key(run):
    run.path = signed(run)
    run.season(lambda spec: spec.pop("operator"))
    amendments(run, lambda made: made.extend(msgspec.structs.replace(made.pop(0), signature="") for _ in made[:]))


# -- generated tasks, and how reliable programs are --
def on_the_page(old, new):
    return lambda run: swap(run.path / "report.html", old, new)


def sent_to(run, folder):
    """Let a page name another folder in the command that checks it."""
    page = run.path / "report.html"
    page.write_text(re.sub("(?<=tradeassay verify )[^<]+", folder, page.read_text()))


LATE = "not done after 60 s"


def out_of_time(run, **checks):
    """Write that the clock ended a program into its journal and into its record."""

    def edit(found):
        found["judge"].update(reason=LATE)
        found["judge_behaviour"].update(reason=LATE)
        for name, content in checks.items():
            found[name].update(content)

    with run.journal("gen-rsi-low-1-7", rescore=False) as lines:
        edit(lines[0]["result"])
    with run.outcome("gen-rsi-low-1-7") as outcome:
        edit(outcome["program"]["record"]["turns"][0]["evaluation"])


these(
    "generated",
    another_variant_of_a_generated_task=lambda run: run.present_as(("gen-rsi-low-1-7", "gen-rsi-low-1-8")),
    another_hash_of_a_generated_task=manifest(
        lambda found: found["facts"].update({"task gen-rsi-low-1-7": "34" * 32})
    ),
    one_drawn_task_called_the_benchmark=(
        "tasks gen-rsi-low-1-7, gen-rsi-low-1-9 instead of the benchmark's own",
        lambda run: None,
    ),
    a_generated_task_called_one_of_the_144=scores(
        lambda found: found["scores"]["cells"][0]["groups"][0].update(value="tradeassay")
    ),
    a_program_that_always_solves_its_task=on_the_page("in 0.0% of plays", "in 100.0% of plays"),
    a_page_that_sends_its_readers_to_an_honest_run=(
        "tells its readers to verify /srv/honest, which is not what was checked",
        lambda run: sent_to(run, "/srv/honest"),
    ),
    a_variant_without_end=(
        r"rules cannot be checked there is no task 'gen-rsi-low-1-9{30}'",
        lambda run: run.present_as(("gen-rsi-low-1-7", "gen-rsi-low-1-" + "9" * 30)),
    ),
    a_wrong_program_that_was_only_slow=("1 program out of time, as stated by the runner", out_of_time),
    a_program_that_was_slow_and_passed=lambda run: out_of_time(
        run, judge={"status": "passed"}, judge_behaviour={"status": "passed", "agreement": 1.0}
    ),
)


@of("rule")
def a_page_that_sends_its_readers_to_another_run(run):
    sent_to(run, "demo")


@of("rule")
def a_rule_that_is_always_ahead(run):
    chosen(run, "--first", "2022-01-10", "--last", "2022-01-20", "-a", "random", "--seeds", "3")
    return on_the_page("8.4% to 100.0%", "98.4% to 100.0%")(run)


# -- capacity --
def with_capacity(**lie):
    def edit(found):
        for one in found["agents"]:
            assert one["capacity"]["dies"]
            one["capacity"].update(lie)

    def forge(run):
        chosen(run, "--last", "2022-06-30")
        return assay(edit)(run)

    return forge


@of("rule")
def another_size_on_the_page(run):
    chosen(run, "--last", "2022-06-30")
    assayed(run)
    return on_the_page("680 million", "680 billion")(run)


# -- trade logs --
def traded(edit):
    """Write the fills of the run as somebody's own log, change it, and have it judged."""

    def forge(run):
        chosen(run, "--last", "2022-06-30")
        rows = []
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

    return forge


def _unbought(rows):
    sold = next(row["symbol"] for row in rows if row["side"] == "SELL")
    rows.remove(next(row for row in rows if row["symbol"] == sold and row["side"] == "BUY"))


these(
    "rule",
    a_size_a_thousand_times_larger=with_capacity(dies=6.8e11),
    a_size_that_is_certain=with_capacity(low=6.5e8, high=6.9e8),
    bought_below_the_days_low=("range", traded(lambda rows: rows[0].update(price=rows[0]["price"] * 0.7))),
    more_than_the_market_traded=(
        "11 of 11 fills are of more than 'synthetic/us:7' says was traded that day",
        traded(lambda rows: [row.update(quantity=row["quantity"] * 1e6) for row in rows]),
    ),
    a_purchase_left_out_of_the_log=("short", traded(_unbought)),
    one_fill_at_two_prices=(
        "1 fills have the id of another and other cells",
        traded(lambda rows: rows.append({**rows[0], "price": rows[0]["price"] * 1.01})),
    ),
)


# -- memory --
def asked_again(name, *words):
    """Ask for other questions, keep the record, and judge the run with it."""

    def forge(run):
        page = (run.path.parent / name).with_suffix(".html")
        run_words = ("recall", "--run", run.path) if name == "recall.json" else ("counterfactual", run.path)
        status, said = command("memory", *run_words, "-o", page, *words)
        assert status == 0, said
        return judged(name, lambda found: None)(run)

    return forge


def through_text(pattern, instead):
    """Write something else wherever an expression is found in a record."""

    def edit(found):
        text = json.dumps(found)
        assert re.search(pattern, text)
        found.clear()
        found.update(json.loads(re.sub(pattern, instead, text)))

    return edit


def _first_wordings(found):
    kept = [one for one in found["answers"] if not one.get("wording")]
    assert 0 < len(kept) < len(found["answers"])
    found["answers"] = kept


these(
    "recalled",
    the_questions_of_a_lucky_seed=("seed 77", asked_again("recall.json", "--questions", "60", "--seed", "77")),
    five_questions=("questions 5|5 questions", asked_again("recall.json", "--questions", "5")),
    a_tenth_of_the_decisions_asked_again=("share 0.1", asked_again("changed.json", "--share", "0.1")),
    recall_of_another_market=recall(through_text("synthetic/(us|ashare):7", "synthetic/us:11")),
    wordings_that_hurt_left_out=recall(_first_wordings),
    recall_of_every_session_that_was_not_asked=recall(through_text(r'"every": (\d+|null)', '"every": 1')),
)

# -- masks that were hardened --
these(
    "hardened",
    a_mask_that_fell_in_one_round=(
        r"hardened in 1 round against grid, [^;]*, as stated by the runner",
        manifest(lambda found: found["spec"]["hardened"].update(rounds=1)),
    ),
    shown_prices_that_follow_nothing=(
        r"by 0\.001 with true ones, returns by 0\.002\), as stated by the runner",
        manifest(lambda found: found["spec"]["hardened"].update(levels=0.001, returns=0.002)),
    ),
)


# -- recordings of a model that is trained --
def recorded(run):
    file = run.root / "trained.tar.xz"
    status, said = command("recordings", "record", run.path, "-o", file)
    assert status == 0, said
    return file


@of("trained")
def a_solved_task_in_a_training_recording(run):
    with run.outcome("gen-adx-trend") as outcome:
        text = json.dumps(outcome)
        assert '"solved": false' in text
        outcome.update(json.loads(text.replace('"solved": false', '"solved": true')))
    return command("recordings", "check", recorded(run))


@of("trained")
def training_answers_of_one_token(run):
    for cassette in (run.path / "models").iterdir():
        with run.lines(cassette) as lines:
            for line in lines[1:]:
                line["reply"]["usage"]["output_tokens"] = 1
    return command("recordings", "check", recorded(run))


@of("trained", "tasks gen-awesome-zero-101-0 instead of the benchmark's own")
def a_failed_task_left_out_of_a_training_recording(run):
    replace(run, trained(run.root / "x", "gen-awesome-zero-101-0"))
    return command("recordings", "check", recorded(run))


# -- plans for programs, and seals on a site --
PROGRAMS = """
benchmark = "quantcode-v1"
models = ["scripted/coder-sma"]
tasks = ["d-ibs-long"]
secret = "5e5e5e5e5e5e5e5e"
"""


def program_plan(run, text):
    (run.root / "x").mkdir(exist_ok=True)
    (run.root / "x" / "programs.toml").write_text(text)
    status, said = command("seal", "--plan", run.root / "x" / "programs.toml", "--runs", run.root / "x" / "runs")
    assert status == 0, said
    return run.root / "x" / "runs" / "programs.plan.seal"


@of("quantcode")
def programs_with_more_turns_than_planned(run):
    text = PROGRAMS.replace("coder-sma", "coder-mends").replace("d-ibs-long", "d-sma-cross-long")
    plan = program_plan(run, text + 'settings = ["agentic"]\nturns = 2\n')
    return command("verify", run.path, "--plan", plan, "--workers", "1", "--no-programs")


@of("quantcode", "published before the run began")
def programs_planned_after_they_were_written(run):
    words = ("code", "run", "quantcode-v1", "-m", "scripted/coder-sma", "-t", "d-ibs-long", "--slug", "programs")
    replace(run, play(run.root / "x", *words, "--secret", "5e5e5e5e5e5e5e5e"))
    plan = program_plan(run, PROGRAMS)
    return command("verify", run.path, "--plan", plan, "--workers", "1", "--no-programs")


@of("rule")
def a_signature_of_another_seal(run):
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


# -- what came with a package that is not installed here --
def _left_out(run):
    shutil.rmtree(run.episode("momentum"))
    with run.manifest() as found:
        found["episodes"] = [one for one in found["episodes"] if one["agent"]["name"] != "momentum-12-1"]


def _broke_off(lines):
    del lines[3:]


def _called_failed(found):
    found.update(status="failed", error="the exchange was closed")


def _cheaper(lines):
    fill = next(event for event in lines[0]["events"] if event["type"] == "filled")
    gained = fill["quantity"] * fill["price"] * 0.05
    fill.update(price=fill["price"] * 0.95, reference=fill["reference"] * 0.95, cash=fill["cash"] + gained)
    shift(lines, 0, gained)


def _never_charged(lines):
    fill = next(event for event in lines[0]["events"] if event["type"] == "filled")
    fill["cash"] += fill["fee"]
    shift(lines, 0, fill["fee"])


def _better(found):
    found["agents"][1]["measures"]["cumulative_return"]["median"]["value"] = 9.99


these(
    "theirs",
    an_agent_left_out=_left_out,
    a_better_score=lambda run: run.scores(_better),
    their_fills_cheaper=journal("their-rule", _cheaper),
    done_with_an_error=outcome("their-rule", lambda found: found.update(error="audited")),
    a_bad_result_called_failed=("that it failed after 8 sessions", outcome("their-rule", _called_failed)),
    broken_off=journal("their-rule", _broke_off),
)
these(
    "venue",
    a_better_score=lambda run: run.scores(_better),
    fills_outside_their_bar=journal("momentum", _cheaper),
    a_fee_that_was_not_charged=journal("momentum", _never_charged),
    broken_off=journal("momentum", _broke_off),
    another_data_kind=manifest(lambda found: found["datasets"]["synthetic/us:7"]["facts"].update(kind="real")),
)
