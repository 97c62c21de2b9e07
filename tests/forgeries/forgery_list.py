"""The list of forgeries: each edits a copy of an honest run as a forger would, hashes included.

Those that only write other values are lines of ``edits.toml``. One without an answer of its own leaves a run for
``verify``; others return exit status and words of the door through which their lie would be told (``site``,
``verify --plan``, ``recordings check`` ...)."""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
import pytest
from forged_archives import add, exchange, forged_worlds, relabel
from forging import Forged, canonical_json, command, put
from honest_runs import AGENT, AMENDED, PIPE, SEASON, SHORT, amended_season, play, season, trained

import tradeassay
from tradeassay.arena.season import Amendment
from tradeassay.benchmarks import benchmarks
from tradeassay.report.verifying import PaperRecord, compose_paper, record_paper

Told = tuple[int, str] | None
Forge = Callable[[Forged], Told]
MOMENTUM, RANDOM, SCRIPTED, QWEN = "momentum", "__random", "scripted-sensible", "qwen"
K3 = 'agents = [{name = "momentum-12-1", params = {k = 3}}]'


class Forgery(NamedTuple):
    name: str
    base: str
    forge: Forge
    words: str


FORGERIES = []


def of(base, words=""):
    """Put a function on the list. ``words`` is what names the forgery where it is not contradicted."""

    def add(forge):
        FORGERIES.append(Forgery(forge.__name__.replace("_", " "), base, forge, words))
        return forge

    return add


def these(base, **forgeries):
    """Put several on the list, each under its name; those that are only named have their words before them."""
    for name, one in forgeries.items():
        words, forge = one if isinstance(one, tuple) else ("", one)
        FORGERIES.append(Forgery(name.replace("_", " "), base, forge, words))


def untouched(run):
    """Leave the honest run: what it is has to be named."""


# -- ways to forge --
def within(opened, edit):
    def forge(run):
        with opened(run) as content:
            edit(content)

    return forge


def journal(words, edit):
    return within(lambda run: run.journal(words), edit)


def outcome(words, edit):
    return within(lambda run: run.outcome(words), edit)


def cassette(words, edit):
    return within(lambda run: run.lines(run.cassette(words)), edit)


def dialogue(words, edit):
    return within(lambda run: run.lines(run.episode(words) / "dialogue.jsonl"), edit)


def manifest(edit):
    return within(lambda run: run.manifest(), edit)


def scores(edit):
    return lambda run: run.scores(edit)


def puts(edits):
    """Write values at their paths."""
    return lambda found: [put(found, *one) for one in edits.items()]


def swap(path, old, new):
    text = path.read_text()
    assert old in text, text[:500]
    path.write_text(text.replace(old, new))


def rewritten(folder, edit):
    """Write something else into the first file of a pattern in which an expression is found."""
    pattern, wanted, instead = edit
    texts = {path: path.read_text() for path in sorted(folder.glob(pattern))}
    path, text = next((path, text) for path, text in texts.items() if re.search(wanted, text, re.S))
    path.write_text(re.sub(wanted, instead, text, flags=re.S))


def edited(path, edit):
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_bytes(canonical_json(content))


def done(*words):
    """Give a command that must succeed."""
    status, said = command(*words)
    assert status == 0, said


def verify(*words):
    return command("verify", *words, "--workers", "1")


# -- a run of rules: the journal --
def shift(lines, start, cash):
    """Carry money that was never there through all later marks."""
    for line in lines[start:]:
        for event in line["events"]:
            if event["type"] == "marked":
                event["cash"] += cash
                event["nav"] = event["cash"] + event["positions"]


def cheaper(price, *also):
    """Change the price of the first fill, and carry what was gained."""

    def edit(lines):
        fill = next(event for event in lines[0]["events"] if event["type"] == "filled")
        gained = fill["quantity"] * (fill["price"] - price(fill["price"]))
        changed = {"price": price(fill["price"]), "cash": fill["cash"] + gained}
        fill.update(changed, **{name: price(fill[name]) for name in also})
        shift(lines, 0, gained)

    return edit


def _marked_higher(lines):
    mark = lines[-1]["events"][-1]
    mark["marks"] = {name: price * 1.1 for name, price in mark["marks"].items()}
    mark["positions"] *= 1.1
    mark["nav"] = mark["cash"] + mark["positions"]


def _without_fees(lines):
    for event in lines[0]["events"]:
        if event["type"] == "filled":
            event["cash"] += event["fee"]
            shift(lines, 0, event["fee"])
            event["fee"] = 0.0


def _rebate(lines):
    fill = lines[0]["events"][0]
    fill.update(tax=-500.0, cash=fill["cash"] + 500)
    shift(lines, 0, 500)


def _never_charged(lines):
    fill = next(event for event in lines[0]["events"] if event["type"] == "filled")
    fill["cash"] += fill["fee"]
    shift(lines, 0, fill["fee"])


def without(lines, place):
    del lines[place]
    for step, line in enumerate(lines):
        line["step"] = step


def _deposit(lines):
    lines[4]["opening"].append({"type": "deposited", "cash": 5000.0, "terms": {}})
    shift(lines, 4, 5000)


def _dividend(lines):
    name = next(iter(lines[2]["events"][-1]["marks"]))
    paid = {"type": "dividend", "symbol": name, "per_share": 1.0, "quantity": 1000.0, "cash": 1000.0}
    lines[2]["opening"].append(paid)
    shift(lines, 2, 1000)


def _other_order(lines):
    lines[3]["session"], lines[4]["session"] = lines[4]["session"], lines[3]["session"]


def _exchanged(run, end, *words):
    """Show what another agent did as the random one's."""
    other = play(run.root / "x", "run", "daily-us-v1", *words, *SHORT, "--slug", "x")
    target = run.episode(RANDOM)
    shutil.rmtree(target)
    shutil.copytree(next(one for one in (other / "episodes").iterdir() if end in one.name), target)
    run.rescore()


these(
    "rule",
    a_fill_one_cent_cheaper=journal(MOMENTUM, cheaper(lambda price: price - 0.01)),
    the_last_mark_higher=journal(MOMENTUM, _marked_higher),
    fees_left_out=journal(MOMENTUM, _without_fees),
    a_rebate_as_a_negative_tax=journal(MOMENTUM, _rebate),
    the_worst_session_left_out=journal(MOMENTUM, lambda lines: without(lines, 3)),
    a_journal_that_ends_at_its_peak=journal(MOMENTUM, lambda lines: [lines.pop() for _ in lines[7:]]),
    a_second_deposit=journal(MOMENTUM, _deposit),
    a_dividend_that_nobody_paid=journal(MOMENTUM, _dividend),
    decided_after_the_open=journal(
        MOMENTUM, lambda lines: [line.update(decided_at=line["decided_at"] + 3600 * 10**9) for line in lines]
    ),
    an_order_that_was_never_given=journal(
        MOMENTUM, lambda lines: put(lines, "1|decision|orders", lines[0]["decision"]["orders"])
    ),
    a_weaker_baseline=journal("equal-weight", lambda lines: shift(lines, 0, -30_000)),
    a_smaller_slippage_shown=journal(
        MOMENTUM, lambda lines: put(lines, "0|events|0|reference", lines[0]["events"][0]["price"])
    ),
    sessions_in_another_order=journal(MOMENTUM, _other_order),
    a_lucky_random_agent=lambda run: _exchanged(run, "random__s1", "-a", "random", "--seeds", "2"),
    a_better_rule_under_another_name=lambda run: _exchanged(run, "reversal", "-a", "reversal"),
)


@of("rule")
def a_value_that_is_no_number(run):
    path = run.episode(MOMENTUM) / "events.jsonl"
    text = path.read_text().splitlines()
    nav = json.loads(text[-1])["events"][-1]["nav"]
    text[-1] = text[-1].replace(f'"nav":{nav}', '"nav":1e999')
    path.write_text("\n".join(text) + "\n")
    with run.outcome(MOMENTUM):
        pass


@of("rule")
def two_agents_swap_their_journals(run):
    one, other = run.episode(MOMENTUM), run.episode(RANDOM)
    one.rename(run.path / "x")
    other.rename(one)
    (run.path / "x").rename(other)
    run.rescore()


# -- a run of rules: scores and manifest --
def row(found, name):
    return next(one for one in found["agents"] if name in one["agent"])


def measure(name, part="", **values):
    """Change a measure of the first rule in the scores."""

    def edit(found):
        told = row(found, MOMENTUM)["measures"][name]
        (told[part] if part else told).update(values)

    return scores(edit)


higher = measure("cumulative_return", mean=0.99, highest=0.99, lowest=0.99)


def toml(run, text, benchmark="daily-us-v1"):
    path = run.root / "x" / "grid.toml"
    path.parent.mkdir(exist_ok=True)
    window = '\nwindow = {first = "2022-01-10", last = "2022-01-20"}' if "window" not in text else ""
    path.write_text(f'benchmarks = ["{benchmark}"]\nslug = "x"\n{text}{window}\n')
    return path


def replace(run, other):
    shutil.rmtree(run.path)
    shutil.copytree(other, run.path)


def instead(text):
    """Play another grid and show it under the honest run's name."""
    return lambda run: replace(run, play(run.root / "x", "run", toml(run, text)))


def chosen(run, *words):
    """Play another spec and show it under the honest run's name."""
    replace(run, play(run.root / "x", "run", "daily-us-v1", "-a", "momentum-12-1:k=3", "--slug", "rule", *words))


def beside(run, *names):
    for name in names:
        shutil.copytree(run.path, run.path.parent / name)


def _with_a_ghost(run):
    shutil.copytree(run.episode(MOMENTUM), run.path / "episodes" / "ghost")


def _with_a_certificate(run):
    (run.path / "AUDIT.md").write_text("Audited and found correct.")


def _linked(run):
    (run.path / "episodes").rename(run.root / "elsewhere")
    os.symlink(run.root / "elsewhere", run.path / "episodes")


these(
    "rule",
    a_higher_return_in_the_scores=higher,
    the_loser_left_out_of_the_scores=scores(lambda found: found["agents"].remove(row(found, "random"))),
    an_interval_where_there_is_none=measure(
        "cumulative_return", "median", low=0.05, high=0.12, note=None, reason=None
    ),
    another_reason_for_a_missing_number=measure("annualised_return", "median", reason="the exchange was closed"),
    an_episode_beside_the_manifest=("ghost", _with_a_ghost),
    journals_behind_a_link=("neither a file nor a folder", _linked),
    one_of_several_tries=("one of 3 runs of daily-us-v1", lambda run: beside(run, "second", "third")),
    a_page_of_the_only_run_of_two=(
        "report.html counts 1 runs of its benchmark in the folder, there are 2",
        lambda run: beside(run, "second"),
    ),
    a_certificate_in_the_folder=("AUDIT.md", _with_a_certificate),
    a_run_in_less_than_no_time=(
        "times that cannot be true|timing",
        lambda run: edited(run.path / "timing.json", lambda found: found["starts"][0].update(play=-5e6)),
    ),
)


@of("rule", "at most|too many|seeds")
def a_grid_of_a_million_seeds(run):
    with run.manifest(rescore=False) as found:
        found["spec"]["seeds"] = found["seeds"] = list(range(10**6))


@of("rule", "these are not the rules of 'daily-us-v1': market.cash is 10000000.0, registered is 1000000.0")
def a_benchmark_under_its_id_with_other_rules(run):
    """The run is honest in itself: it was made where the benchmark is registered with ten times the cash."""
    plain = benchmarks.get

    def richer(name):
        market = msgspec.structs.replace(plain(name).market, cash=1e7)
        return msgspec.structs.replace(plain(name), market=market)

    with mock.patch.object(benchmarks, "get", richer):
        chosen(run, *SHORT, "--executor", "inline")
    assert verify(run.path)[0] == 3


@of("rule")
def a_rule_that_is_always_ahead(run):
    chosen(run, *SHORT, "-a", "random", "--seeds", "3")
    swap(run.path / "report.html", "8.4% to 100.0%", "98.4% to 100.0%")


# -- a model under a mask (a scripted one, whose answers can be made again) --
def masked(run, words):
    given = f"ktdfin-v1 -m scripted/sensible --last 2022-02-09 --slug masked {words}".split()
    replace(run, play(run.root / "x", "run", *given))


@of("masked")
def played_bright_and_called_blinded(run):
    masked(run, "--mask bright")
    run.present_as(("mask=bright", "mask=blinded"), ('"bright"', '"blinded"'))


def _asked(lines):
    lines[0]["messages"][-1]["text"] += " Remember: no hindsight."


def _failed(lines):
    lines[0]["decision"]["reason"] = "failed: the provider was away"
    lines[0]["decision"].pop("orders", None)


def _real_years(lines):
    for line in lines:
        line["session"] = line["session"].replace("2022", "2024")


these(
    "masked",
    more_tool_calls_than_others=(
        "tool_calls 100 instead",
        lambda run: masked(run, "--mask blinded -p tool_calls=100"),
    ),
    a_question_that_was_not_asked=dialogue(SCRIPTED, _asked),
    an_attempt_left_out_of_the_dialogue=dialogue(SCRIPTED, lambda lines: lines.pop(1)),
    failures_that_were_not_there=journal(SCRIPTED, _failed),
    real_names_shown_in_the_journal=journal(SCRIPTED, _real_years),
)


# -- recorded answers of a real model --
def usage(words, **values):
    """Change what every answer cost: in the cassette, the dialogue and the outcome."""

    def forge(run):
        total = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}
        with run.lines(run.cassette(words)) as lines:
            for line in lines:
                if "reply" in line:
                    line["reply"]["usage"].update(values)
        with run.lines(run.episode(words) / "dialogue.jsonl") as lines:
            for line in lines:
                line["reply"]["usage"].update(values)
                for name in total:
                    total[name] += line["reply"]["usage"].get(name) or 0
        with run.outcome(words) as end:
            end["model"]["spending"].update(total)

    return forge


def _more_answers(lines):
    lines.append(json.loads(json.dumps(lines[-1])))
    lines[-1]["asked"]["step"] = 999


def _warmer(lines):
    for line in lines:
        if "asked" in line:
            line["asked"]["params"]["temperature"] = 1.0


def _both_replies(run):
    cassette(QWEN, puts({"3|reply|text": '{"decisions": {}}'}))(run)
    dialogue(QWEN, puts({"2|reply|text": '{"decisions": {}}'}))(run)


these(
    "recorded",
    an_episode_left_out_of_the_grid=manifest(
        lambda found: found.update(episodes=[one for one in found["episodes"] if one["baseline"]])
    ),
    a_reply_in_cassette_and_dialogue=_both_replies,
    answers_that_nobody_asked_for=("1 recorded answers of .* were not asked for", cassette(QWEN, _more_answers)),
    another_temperature=cassette(QWEN, _warmer),
    a_shorter_conversation=dialogue(QWEN, lambda lines: [lines.pop() for _ in range(3)]),
    failures_left_out=journal(QWEN, lambda lines: lines[9]["decision"].pop("failures")),
)


# -- programs of the runner's own: class, pipe, HTTP --
@of("own", "Python class: openai-gpt-5")
def a_class_labelled_like_a_model(run):
    (run.root / "x").mkdir()
    (run.root / "x" / "mine.py").write_text(AGENT)
    params = f'{{class = "{run.root}/x/mine.py:Mine"}}'
    instead(f'agents = [{{name = "python", params = {params}, label = "openai-gpt-5"}}]')(run)


@of("own")
def the_class_exchanged_after_the_run(run):
    (run.root / "on_a_pipe.py").write_text(PIPE)
    (run.root / "my_agent.py").write_text(AGENT.replace("r20", "r5"))
    return verify(run.path, "--agent-files", run.root)


these("own", a_program_without_its_files=manifest(lambda found: found["files"].pop("on_a_pipe")))
these("http", a_server_labelled_gpt_5=("program over HTTP: openai-gpt-5", untouched))


def under_its_label(text, *signs):
    """Say whether the label stands anywhere without what it is the label of: exit status 0 means that it does."""
    bare = re.sub("(program over HTTP|Python class): openai-gpt-5|own labels?", "", text)
    return (0, text[:3000]) if any(sign in bare for sign in signs) else (1, "its kind stands in the name")


@of("own")
def a_class_on_the_site_under_a_models_name(run):
    a_class_labelled_like_a_model(run)
    return under_its_label(site(run)[2], ">openai-gpt-5<", '"openai-gpt-5"')


@of("http")
def a_server_in_the_tables_under_a_models_name(run):
    said = [command("report", run.path, "--format", form)[1] for form in ("md", "csv", "json", "card")]
    return under_its_label("\n".join(said), '"openai-gpt-5"', ",openai-gpt-5,", "| openai-gpt-5 |")


@of("http")
def a_server_in_the_frames_under_a_models_name(run):
    names = set(tradeassay.load_run(run.path).frames("pandas").scores["agent"])
    return (0, str(names)) if "openai-gpt-5" in names else (1, str(names))


@of("http")
def a_server_in_the_json_of_a_comparison(run):
    shutil.copytree(run.path, run.root / "other")
    return under_its_label(command("compare", run.path, run.root / "other", "--json")[1], '"openai-gpt-5"')


@of("http")
def a_server_in_an_assay_under_a_models_name(run):
    return under_its_label(command("assay", run.path, "--portfolios", "0", "--json")[1], "openai-gpt-5")


# -- programs that models wrote --
def program(edit, *, lines=None):
    """Change the record of a program and, where ``lines`` is given, every line of its journal."""

    def forge(run):
        folder = next((run.path / "episodes").iterdir()).name
        if lines is not None:
            with run.journal(folder, rescore=False) as told:
                for line in told:
                    lines(line)
        with run.outcome(folder) as end:
            edit(end)

    return forge


def turns(end):
    return end["program"]["record"]["turns"]


def _traded(end):
    for turn in turns(end):
        if turn.get("evaluation"):
            turn["evaluation"]["trade"] = {"status": "passed", "measures": {}}


def better(found, **more):
    if found.get("earned"):
        found["earned"]["strategy"]["total_return"] = 9.9
        found["earned"].update(more)


def _cheap(end):
    for spent in (end["model"]["roles"]["writer"], end["model"]["spending"]):
        spent.update(input_tokens=0, output_tokens=0)


these(
    "quantcode",
    solved_at_the_first_turn=program(
        lambda end: end["program"]["record"].update(turns=[{**turns(end)[-1], "number": 1}], solved_at=1)
    ),
    a_crash_that_traded=program(_traded),
    another_program_in_the_record=program(
        lambda end: turns(end)[-1].update(code="# written by the model itself\n" + turns(end)[-1]["code"])
    ),
    more_trades_and_a_higher_return=program(lambda end: better(turns(end)[-1]["evaluation"], trades=170)),
    a_journal_that_agrees_with_the_forged_record=program(
        lambda end: better(turns(end)[-1]["evaluation"]), lines=lambda line: better(line.get("result") or {})
    ),
    one_task_of_many=("tasks d-sma-cross-long instead", untouched),
    no_tokens_for_a_program=program(_cheap),
)


@of("quantcode")
def a_damaged_journal_of_programs(run):
    path = next((run.path / "episodes").iterdir()) / "events.jsonl"
    path.write_bytes(b'{"step":0,"request":' + b"[" * 100_000 + b"\n" + path.read_bytes())
    with run.outcome(path.parent.name, rescore=False):
        pass


@of("quantcode")
def a_record_with_a_number_of_a_million_digits(run):
    path = next((run.path / "episodes").iterdir()) / "outcome.json"
    path.write_text(path.read_text().replace('"steps":4', '"steps":' + "9" * 10**6))


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


# -- governed programs, and their cards --
def gates(found):
    """Let every gate of a record hold, wherever it is written."""
    if isinstance(found, dict) and found.get("name") == "leak" and "status" in found:
        found.update(status="passed", reason="no decision changed in 327 comparisons")
    if isinstance(found, dict | list):
        for value in found.values() if isinstance(found, dict) else found:
            gates(value)


def _impressed(end):
    text = json.dumps(end["program"]).replace('"fidelity": 6', '"fidelity": 10').replace('"risk": 6', '"risk": 10')
    end["program"] = {**json.loads(text), "reason": "a reviewer was impressed"}


def _kinder(lines):
    reply = [line for line in lines if "reply" in line][-1]["reply"]
    reply["text"] = reply["text"].replace("6", "10").replace("7", "10") + " "


def _kinder_reviewer(run):
    cassette("builder-peeps", _kinder)(run)
    dialogue("builder-peeps", _kinder)(run)


def _another_card(run):
    (card,) = (run.path / "cards").iterdir()
    shutil.copy(card, card.with_name("openai-gpt-5__bollinger__s0.html"))


these(
    "systrade",
    a_leak_gate_that_held=program(lambda end: gates(end["program"]), lines=gates),
    better_marks_from_the_reviewer=program(_impressed),
    a_score_of_ten=scores(
        lambda found: [one["scores"]["D3"].update(value=10.0, reason=None) for one in found["scores"]["models"]]
    ),
    a_reviewers_reply_exchanged=_kinder_reviewer,
    a_card_of_another_program=_another_card,
)
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
    with run.outcome("gen-rsi-low-1-7") as end:
        edit(end["program"]["record"]["turns"][0]["evaluation"])


these(
    "generated",
    one_drawn_task_called_the_benchmark=(
        "tasks gen-rsi-low-1-7, gen-rsi-low-1-9 instead of the benchmark's own",
        untouched,
    ),
    a_wrong_program_that_was_only_slow=("1 program out of time, as stated by the runner", out_of_time),
    a_program_that_was_slow_and_passed=lambda run: out_of_time(
        run, judge={"status": "passed"}, judge_behaviour={"status": "passed", "agreement": 1.0}
    ),
)


# -- the store --
def in_a_forged_store(run, make):
    """Play in a private store in which a synthetic world was edited and hashed again, and verify there."""
    with mock.patch.dict(os.environ, {"TRADEASSAY_HOME": str(run.root / "home")}):
        with forged_worlds():
            other = make()
        return command("verify", other, *(("--workers", "1") if other.is_dir() else ()))


@of("rule")
def a_synthetic_world_edited_in_the_store(run):
    words = ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--executor", "inline", "--slug", "rule")
    return in_a_forged_store(run, lambda: play(run.root / "x", *words))


@of("arena", "not the one that its seed gives")
def a_season_on_a_synthetic_world_edited_in_the_store(run):
    return in_a_forged_store(run, lambda: season(run.root))


# -- seals and plans --
def sealed(run):
    path = run.root / "honest.seal"
    done("seal", run.path, "-o", path)
    return path


@of("rule")
def a_sealed_file_exchanged(run):
    path = sealed(run)
    exchange(path, "scores.json", lambda text: text.replace(b"0.08", b"0.98"))
    return verify(path)


@of("rule")
def a_seal_of_an_edited_run(run):
    higher(run)
    return verify(sealed(run))


@of("rule", "outside|not a sealed run|cannot be read")
def a_seal_with_a_file_outside(run):
    path = sealed(run)
    add(path, "../../outside.json", b"{}")
    return verify(path)


@of("rule")
def a_signature_of_another_seal(run):
    key, beside = run.root / "ada", run.path.with_suffix(".seal")
    make_key(key)
    done("seal", run.path, "-o", run.root / "first.seal", "--sign", key)
    chosen(run, "--first", "2022-01-10", "--last", "2022-01-19")
    done("seal", run.path, "-o", beside, "--sign", key)
    with zipfile.ZipFile(run.root / "first.seal") as signed_before:
        (name,) = [one for one in signed_before.namelist() if "sig" in one]
        signature = signed_before.read(name)
    exchange(beside, name, lambda _: signature)
    return shown(run, "rule.seal")


def make_key(file):
    """Make a pair of keys to sign with: the secret one in ``file``."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed (Debian: openssh-client)")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", file], check=True)


def planned(run, text=K3, author="ada"):
    done("seal", "--plan", toml(run, text), "--author", author, "--runs", run.root / "x" / "runs")
    return run.root / "x" / "runs" / "x.plan.seal"


def plan_others(run):
    for k in (5, 7):
        planned(run, K3.replace("k = 3", f"k = {k}"))


def spec_of(plan):
    return plan.with_suffix("").with_suffix(".plan.spec.json")


def play_plan(run, plan, *words):
    replace(run, play(run.root / "x", "run", spec_of(plan), *words))


def against(run, plan, *words):
    return verify(run.path, "--plan", plan, *words)


def after_a_plan(edit, text=K3):
    """Plan a run, change something, play the plan, and verify the run against it."""

    def forge(run):
        plan = planned(run, text)
        edit(plan)
        play_plan(run, plan)
        return against(run, plan)

    return forge


def played_otherwise(edit):
    return after_a_plan(lambda plan: edited(spec_of(plan), edit))


these(
    "rule",
    another_run_than_planned=lambda run: against(run, planned(run, K3.replace("k = 3", "k = 5"))),
    a_plan_with_another_author=after_a_plan(lambda plan: swap(plan.with_name("plans.jsonl"), "ada", "bob")),
    a_longer_window_than_planned=played_otherwise(lambda found: found["window"].update(last="2022-01-28")),
    a_secret_that_was_not_planned=played_otherwise(lambda found: found.update(secret="00" * 16)),
)


@of("rule")
def a_planned_class_exchanged_for_another(run):
    (run.root / "x").mkdir()
    agent = run.root / "x" / "mine.py"
    agent.write_text(AGENT)
    text = f'agents = [{{name = "python", params = {{class = "{agent}:Mine"}}}}]'
    return after_a_plan(lambda _: agent.write_text(AGENT.replace("r20", "r5")), text)(run)


@of("rule", "1 of 3 plans of ada, 2 unrevealed")
def fifty_plans_and_one_revealed(run):
    plan_others(run)
    return after_a_plan(lambda _: None)(run)


@of("rule")
def a_planned_spec_exchanged_in_its_seal(run):
    plan = planned(run, K3.replace("k = 3", "k = 5"))
    kept = plan.read_bytes()
    play_plan(run, planned(run))
    plan.write_bytes(kept)
    exchange(plan, "plan.json", lambda text: text.replace(b'"k":5', b'"k":3'))
    return against(run, plan)


@of("rule")
def another_value_of_the_beacon(run):
    plan = planned(run, f'{K3}\nbeacon = {{source = "drand", round = "5"}}')
    play_plan(run, plan, "--beacon", "ab" * 32)
    return against(run, plan, "--beacon", "cd" * 32)


@of("rule", "lacks|log")
def a_log_of_plans_cut_short(run):
    fifty_plans_and_one_revealed(run)
    runs, out = run.root / "x" / "runs", run.root / "site"
    done("site", runs, "-o", out, "--workers", "1")
    log = runs / "plans.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[-1])
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


def site_of_plans(run):
    """Plan three runs, play one of them, and write the site; return the folder of runs and the site."""
    plan_others(run)
    runs, out = planned(run).parent, run.root / "site"
    play(run.root / "x", "run", runs / "x.plan.spec.json")
    done("site", runs, "-o", out, "--workers", "1")
    return runs, out


@of("rule")
def a_site_that_tells_of_one_plan(run):
    runs, out = site_of_plans(run)
    for page in [*out.rglob("*.html"), *out.rglob("*.json"), out / "feed.xml"]:
        page.write_text(page.read_text().replace("1 of 3 plans of ada, 2 unrevealed", "1 of 1 plans of ada"))
    return verify(out, "--runs", runs)


@of("rule")
def plans_left_out_of_the_log_on_the_site(run):
    runs, out = site_of_plans(run)
    (log,) = out.rglob("plans.jsonl")
    log.write_text(log.read_text().splitlines(keepends=True)[-1])
    return verify(out, "--runs", runs)


@of("rule")
def a_log_of_plans_numbered_anew(run):
    """Two of three plans vanish, the hashes of the lines are made again, and the site is written anew."""
    runs, out = site_of_plans(run)
    last = json.loads((runs / "plans.jsonl").read_text().splitlines()[-1])
    (runs / "plans.jsonl").write_bytes(canonical_json({**last, "number": 1, "before": ""}) + b"\n")
    return command("site", runs, "-o", out, "--workers", "1")


PROGRAMS = """
benchmark = "quantcode-v1"
models = ["scripted/coder-sma"]
tasks = ["d-ibs-long"]
secret = "5e5e5e5e5e5e5e5e"
"""


def against_programs(run, text):
    """Plan programs, and verify the run against that plan."""
    (run.root / "x").mkdir(exist_ok=True)
    (run.root / "x" / "programs.toml").write_text(text)
    done("seal", "--plan", run.root / "x" / "programs.toml", "--runs", run.root / "x" / "runs")
    return against(run, run.root / "x" / "runs" / "programs.plan.seal", "--no-programs")


@of("quantcode")
def programs_with_more_turns_than_planned(run):
    text = PROGRAMS.replace("coder-sma", "coder-mends").replace("d-ibs-long", "d-sma-cross-long")
    return against_programs(run, text + 'settings = ["agentic"]\nturns = 2\n')


@of("quantcode", "published before the run began")
def programs_planned_after_they_were_written(run):
    words = ("code", "run", "quantcode-v1", "-m", "scripted/coder-sma", "-t", "d-ibs-long", "--slug", "programs")
    replace(run, play(run.root / "x", *words, "--secret", "5e5e5e5e5e5e5e5e"))
    return against_programs(run, PROGRAMS)


# -- the site, papers --
def site(run):
    """Write the site over the run's folder; return status, words, and the text of everything that it wrote."""
    out = run.root / "site"
    status, said = command("site", run.path.parent, "-o", out, "--workers", "1")
    pages = [one for one in sorted(out.rglob("*")) if one.suffix in {".html", ".json", ".svg", ".xml"}]
    return status, said, "\n".join(page.read_text() for page in pages)


def shown(run, lie):
    """Say whether a lie is on the site: exit status 0 means that it is."""
    _, said, text = site(run)
    return (0, said) if lie in text else (1, said + "the lie is not on the site")


def on_the_site(edit):
    """Change a site that was written from the run, and verify it beside the runs."""

    def forge(run):
        assert site(run)[0] == 0
        edit(run, run.root / "site")
        return verify(run.root / "site", "--runs", run.path.parent)

    return forge


def written_again(edit, lie):
    """Change the site and write it once more: the lie must be gone."""

    def forge(run):
        site(run)
        edit(run.root / "site")
        return shown(run, lie)

    return forge


def in_a_paper(edit):
    """Make a paper of the run, and change a file of it."""

    def forge(run):
        folder, record = run.path.parent, PaperRecord(runs=(run.path.name,))
        record_paper(folder, record, *compose_paper(folder, record))
        assert verify(folder)[0] == 0
        rewritten(folder, edit)
        return verify(folder)

    return forge


def _foreign(out):
    page = out / "runs" / "gpt-5" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>+999.0%, verified</p>")


def _first_page_linked(run, out):
    (out / "index.html").rename(run.root / "elsewhere.html")
    (out / "index.html").symlink_to(run.root / "elsewhere.html")


these(
    "rule",
    a_foreign_page_in_the_site=written_again(_foreign, "+999.0%"),
    a_page_of_the_site_taken_away=on_the_site(lambda _, out: (out / "runs" / "rule" / "index.html").unlink()),
    a_site_without_a_worse_run=(
        r"do not hold the same runs \(second\)",
        on_the_site(
            lambda run, _: play(run.root, "run", "daily-us-v1", "-a", "random", *SHORT, "--slug", "second")
        ),
    ),
    a_row_left_out_of_the_board=on_the_site(lambda _, out: edited(out / "board.json", lambda found: found.pop())),
    freedoms_left_out_of_the_sites_json=on_the_site(
        lambda _, out: edited(out / "runs.json", puts({"0|freedom|departures": []}))
    ),
    a_script_more_on_the_site=on_the_site(
        lambda _, out: (out / "more.js").write_text("document.title = 'audited'")
    ),
    a_page_of_the_site_behind_a_link=("neither a file nor a folder|link", on_the_site(_first_page_linked)),
)


@of("rule")
def another_sealed_run_to_download(run):
    shutil.copy(sealed(run), run.path.parent / "rule.seal")

    def edit(_, out):
        (found,) = out.rglob("*.seal")
        found.write_bytes(found.read_bytes() + b"x")

    return on_the_site(edit)(run)


@of("rule")
def edited_scores_on_the_site(run):
    site(run)  # a verdict is kept for the honest bytes
    higher(run)
    return shown(run, "99.0%")


@of("rule")
def edited_scores_beside_a_valid_seal(run):
    command("seal", run.path, "-o", run.path.parent / "rule.seal")
    higher(run)
    return shown(run, "99.0%")


@of("rule")
def a_foreign_seal_beside_the_run(run):
    other = play(run.root / "x", "run", "daily-us-v1", "-a", "reversal", *SHORT, "--slug", "rule")
    command("seal", other, "-o", run.path.parent / "rule.seal")
    return shown(run, "rule.seal")


@of("rule")
def a_page_of_a_run_that_was_contradicted_later(run):
    site(run)
    higher(run)
    site(run)
    left = (run.root / "site" / "runs" / "rule" / "index.html").exists()
    return (0, "its page is still there") if left else (1, "its page is gone")


@of("rule")
def a_page_in_the_folder_taken_over_by_the_site(run):
    swap(run.path / "report.html", "<body", "<p>+999.0%</p><body")
    return shown(run, "+999.0%")


@of("rule")
def the_same_run_under_two_names(run):
    beside(run, "twice")
    _, said, text = site(run)
    return (1, said) if "same bytes" in text + said else (0, said)


# -- the assay --
def assayed(run, *words):
    done("assay", run.path, "--portfolios", "100", *words)
    return run.read("assay.json")


def assay(edit, lie=""):
    """Change the run's assay, for ``verify`` or, where a lie is named, for the site."""

    def forge(run):
        found = assayed(run)
        edit(found["assay"])
        run.write("assay.json", found)
        return shown(run, lie) if lie else None

    return forge


def in_half_a_year(forge):
    """Forge a run that lasted half a year."""

    def longer(run):
        chosen(run, "--last", "2022-06-30")
        return forge(run)

    return longer


def with_capacity(**lie):
    def edit(found):
        for one in found["agents"]:
            assert one["capacity"]["dies"]
            one["capacity"].update(lie)

    return in_half_a_year(assay(edit))


def _another_size(run):
    assayed(run)
    swap(run.path / "report.html", "680 million", "680 billion")


these(
    "rule",
    a_losing_agent_left_out_of_the_assay=assay(lambda found: found["agents"].pop()),
    a_size_a_thousand_times_larger=with_capacity(dies=6.8e11),
    a_size_that_is_certain=with_capacity(low=6.5e8, high=6.9e8),
    another_size_on_the_page=in_half_a_year(_another_size),
)


@of("rule")
def the_assay_of_another_run(run):
    words = ("daily-us-v1", "-a", "momentum-12-1:k=3", "--last", "2022-03-01", "--slug", "x")
    found = assayed(Forged(play(run.root / "x", "run", *words), run.root))
    run.write("assay.json", {**found, "scores_sha256": assayed(run)["scores_sha256"]})


@of("rule", "trials")
def fewer_tries_than_were_made(run):
    for name in ("second", "third"):
        play(run.path.parent.parent, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--slug", name)
    return assay(lambda found: found["config"].update(trials=1, folder=False))(run)


def traded(edit):
    """Write the fills of the run as somebody's own log, change it, and have it judged."""

    def forge(run):
        rows = []
        for line in (run.episode("momentum") / "events.jsonl").read_text().splitlines():
            told = json.loads(line)
            for fill in told["events"]:
                if fill["type"] == "filled":
                    row = {"id": f"{told['session']}-{fill['order_id']}", "time": f"{told['session']} 10:00:00"}
                    row |= {"symbol": fill["symbol"], "side": "BUY" if fill["quantity"] > 0 else "SELL"}
                    row |= {"quantity": abs(fill["quantity"]), "price": fill["price"], "fees": fill["fee"]}
                    rows.append(row)
        edit(rows)
        log = run.root / "trades.csv"
        log.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
        return command("assay", log, "--dataset", "synthetic/us:7", "--portfolios", "0")

    return in_half_a_year(forge)


def _unbought(rows):
    sold = next(row["symbol"] for row in rows if row["side"] == "SELL")
    rows.remove(next(row for row in rows if row["symbol"] == sold and row["side"] == "BUY"))


these(
    "rule",
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


def asked_again(name, *words):
    """Ask for other questions, keep the record, and judge the run with it."""

    def forge(run):
        page = (run.path.parent / name).with_suffix(".html")
        run_words = ("recall", "--run", run.path) if name == "recall.json" else ("counterfactual", run.path)
        done("memory", *run_words, "-o", page, *words)
        return judged(name, lambda found: None)(run)

    return forge


def through_text(pattern, instead):
    """Write something else wherever an expression is found in a record."""

    def edit(found):
        text = json.dumps(found)
        assert re.search(pattern, text)
        found.clear()
        found.update(json.loads(re.sub(pattern, instead, text)))

    return judged("recall.json", edit)


def _first_wordings(found):
    kept = [one for one in found["answers"] if not one.get("wording")]
    assert 0 < len(kept) < len(found["answers"])
    found["answers"] = kept


def in_the_assay(edit):
    return lambda run: edited(run.path / "assay.json", edit)


def _excluded(found):
    for one in found["assay"]["agents"]:
        one["recall"] = {**(one["recall"] or {}), "excluded": "the window lies after its cutoff"}


def _unlimited(found):
    for one in found["assay"]["agents"]:
        one["verdict"]["limits"] = [word for word in one["verdict"]["limits"] if "recall" not in word]


these(
    "recalled",
    the_answers_of_an_audit_that_hurt_left_out=judged(
        "recall.json", lambda found: found.update(answers=found["answers"][::2])
    ),
    decisions_in_a_changed_market_exchanged=judged(
        "changed.json", lambda found: found.update(decisions=found["decisions"][:3])
    ),
    recall_of_another_market=through_text("synthetic/(us|ashare):7", "synthetic/us:11"),
    wordings_that_hurt_left_out=judged("recall.json", _first_wordings),
    recall_of_every_session_that_was_not_asked=through_text(r'"every": (\d+|null)', '"every": 1'),
    recall_excluded_in_the_assay=in_the_assay(_excluded),
    a_limit_of_recall_left_out_of_the_assay=in_the_assay(_unlimited),
    a_record_of_recall_taken_away=in_the_assay(lambda found: found.pop("memory")),
)

# -- a season of the arena --
CALL = "select rowid, {0} from calls order by slot desc limit 1", "update calls set {0} = ? where rowid = ?"
TITLE = 'title = "Spring"'


def played(old, new, hidden=None):
    """Play another season and, where an edit hides that, let its spec say what the honest one says."""

    def forge(run):
        (run.root / "x").mkdir(exist_ok=True)
        assert old in SEASON
        shutil.copy(season(run.root / "x", SEASON.replace(old, new)), run.path)
        if hidden is not None:
            run.season(hidden)

    return forge


def call(column, *pairs):
    """Change what the last call of a model says."""

    def edit(text):
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return lambda run: run.packed_column(*(part.format(column) for part in CALL), edit)


these(
    "arena",
    hindsight_for_a_rule=played('rule = "trend"', 'rule = "sell"', puts({"entries|2|params|rule": "trend"})),
    another_architecture_under_the_same_name=played(
        '"vanilla"', '"vote"', puts({"entries|1|architecture": "vanilla"})
    ),
    a_season_without_fees=("fee_bp 0.0 instead of", played(TITLE, f"{TITLE}\nfee_bp = 0")),
    fees_of_another_season=played(TITLE, f"{TITLE}\nfee_bp = 0", puts({"fee_bp": None})),
    the_papers_errors_called_sound=(
        "convention|paper",
        played(TITLE, f'{TITLE}\nconvention = "paper"', puts({"convention": "sound"})),
    ),
    a_reply_exchanged=call("reply", ("BUY", "HOLD"), ("SELL", "HOLD")),
    a_question_exchanged=call("request", ("price", "prize")),
    another_memory=lambda run: run.packed_column(
        "select rowid, body from memories",
        "update memories set body = ? where rowid = ?",
        lambda text: text.replace("2022", "2021"),
    ),
)


@of("arena")
def an_entry_that_is_not_in_the_season(run):
    with run.sql() as base:
        columns = [one[1] for one in base.execute("pragma table_info(decisions)") if one[1] not in ("id", "entry")]
        names = ", ".join(columns)
        base.execute(
            f"insert into decisions (entry, {names}) select 'gpt', {names} from decisions where entry = 'careful'"
        )


@of("arena", "Real money")
def another_title_of_the_season(run):
    run.season(lambda found: found.update(title="Real money, audited"))
    run.execute("""update events set body = '{"id":"spring","title":"Real money, audited"}' where seq = 1""")


@of("arena")
def a_season_packed_with_other_answers(run):
    run.execute("update decisions set action = 'SELL' where entry = 'trend' and session = '2022-03-04'")
    return packed_and_checked(run)


@of("arena")
def a_view_that_multiplies_values(run):
    with run.sql() as base:
        (text,) = base.execute("select sql from sqlite_master where name = 'slots'").fetchone()
        base.execute("drop view slots")
        base.execute(text.replace("coalesce(b.nav, a.nav) AS nav", "coalesce(b.nav, a.nav) * 2 AS nav"))


@of("arena")
def a_packet_with_its_hash(run):
    with run.sql() as base:
        (text,) = base.execute("select packet from rounds where session = '2022-03-04'").fetchone()
        comma = "," if '"news":[{' in text else ""
        text = text.replace('"news":[', f'"news":["It will rise"{comma}')
        digest = hashlib.sha256(text.encode()).hexdigest()
        base.execute(
            "update rounds set packet = ?, packet_sha256 = ? where session = '2022-03-04'", (text, digest)
        )


@of("arena")
def news_of_a_round_written_later(run):
    news = '[{"text":"It will rise"}]'
    digest = hashlib.sha256(news.encode()).hexdigest()
    run.execute(f"update stream_rounds set news = '{news}', sha256 = '{digest}' where session = '2022-03-04'")


@of("arena", "second")
def a_second_season_that_was_never_played(run):
    with run.sql() as base:
        (text,) = base.execute("select spec from seasons").fetchone()
        text = canonical_json({**json.loads(text), "id": "second", "title": "Audited"}).decode()
        digest = hashlib.sha256(text.encode()).hexdigest()
        base.execute("insert into seasons values ('second', ?, ?, '2022-02-28T00:00:00Z')", (text, digest))


def on_its_pages(edit):
    """Change the pages that were written from a season, and verify them beside it."""

    def forge(run):
        out = run.root / "pages"
        done("site", run.path, "-o", out)
        edit(run, out)
        return command("verify", run.path, "--pages", out)

    return forge


def _one_more(run, out):
    more = out / "seasons" / "spring" / "entries" / "gpt-5" / "index.html"
    more.parent.mkdir()
    more.write_text("<p>+999.0%</p>")


these(
    "arena",
    a_page_more=on_its_pages(_one_more),
    a_page_less=on_its_pages(lambda _, out: shutil.rmtree(out / "seasons" / "spring" / "entries" / "bare")),
    pages_of_another_database=on_its_pages(lambda run, _: played("2022-03-10", "2022-03-09")(run)),
)


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


def amended(edit):
    return lambda run: amendments(run, edit)


def changed(kind, **fields):
    """Change the first amendment of a kind."""

    def edit(made):
        place = next(place for place, one in enumerate(made) if one.change == kind)
        made[place] = msgspec.structs.replace(made[place], **fields)

    return amended(edit)


def _from_the_start(run):
    bear = {"id": "bear", "architecture": "rule", "model": "", "label": "", "params": {"rule": "sell"}}
    run.season(lambda spec: spec["entries"].append(bear))
    amendments(run, lambda made: made.pop(0))


def _extended(run):
    run.season(lambda spec: spec.update(last="2022-03-21"))
    amendments(run, lambda made: made.remove(next(one for one in made if one.change == "extend")))


def _another_rule(made):
    made[0] = msgspec.structs.replace(made[0], value=made[0].value.replace("sell", "hold"))


def _told_otherwise(run, out):
    pages = [page for page in out.rglob("*.html") if "fee_bp" in page.read_text()]
    assert pages
    for page in pages:
        swap(page, "fee_bp", "delay_s")


these(
    "amended",
    a_newcomer_written_into_the_spec=_from_the_start,
    a_newcomer_with_another_rule=amended(_another_rule),
    a_withdrawal_taken_back=amended(lambda made: made.pop()),
    an_amendment_of_sessions_that_were_played=amended(
        lambda made: made.append(msgspec.structs.replace(made[2], what="window_s", value="7", day="2022-03-03"))
    ),
    an_amendment_left_out_of_the_page_of_rules=on_its_pages(_told_otherwise),
    an_extension_written_into_the_spec=_extended,
)


def signed(run):
    key = run.root / "operator"
    make_key(key)
    spec = AMENDED.replace(TITLE, f'{TITLE}\noperator = "{key.with_suffix(".pub").read_text().strip()}"')
    (run.root / "s").mkdir()
    return amended_season(run.root / "s", spec, "--sign", key)


@of("amended")
def an_amendment_signed_by_a_stranger(run):
    run.path = signed(run)
    run.execute("update amendments set signature = (select signature from amendments where number = 2)")


@of("amended", "5 of an operator whose key the spec does not name")
def a_season_without_its_operators_key(run):
    run.path = signed(run)
    run.season(lambda spec: spec.pop("operator"))
    amendments(run, lambda made: made.extend(msgspec.structs.replace(made.pop(0), signature="") for _ in made[:]))


# -- recordings --
def packed_and_checked(run, edit=None, *words):
    """Pack the run as a recording, and check it as it would be checked on arrival."""
    file = run.root / "recording.tar.xz"
    done("recordings", "record", run.path, *words, "-o", file)
    if edit is not None:
        relabel(file, edit)
    return command("recordings", "check", file)


def labelled(**values):
    words = ("--engine", "x", "--precision", "y")
    return lambda run: packed_and_checked(run, lambda label: label.update(values), *words)


@of("trained")
def a_solved_task_in_a_training_recording(run):
    with run.outcome("gen-adx-trend") as end:
        text = json.dumps(end)
        assert '"solved": false' in text
        end.update(json.loads(text.replace('"solved": false', '"solved": true')))
    return packed_and_checked(run)


@of("trained")
def training_answers_of_one_token(run):
    for tape in (run.path / "models").iterdir():
        with run.lines(tape) as lines:
            for line in lines[1:]:
                line["reply"]["usage"]["output_tokens"] = 1
    return packed_and_checked(run)


@of("trained", "tasks gen-awesome-zero-101-0 instead of the benchmark's own")
def a_failed_task_left_out_of_a_training_recording(run):
    replace(run, trained(run.root / "x", "gen-awesome-zero-101-0"))
    return packed_and_checked(run)


# -- what came with a package that is not installed here --
def _left_out(run):
    shutil.rmtree(run.episode("momentum"))
    with run.manifest() as found:
        found["episodes"] = [one for one in found["episodes"] if one["agent"]["name"] != "momentum-12-1"]


def _broke_off(lines):
    del lines[3:]


_cheaper = cheaper(lambda price: price * 0.95, "reference")
these(
    "theirs",
    an_agent_left_out=_left_out,
    their_fills_cheaper=journal("their-rule", _cheaper),
    broken_off=journal("their-rule", _broke_off),
)
these(
    "venue",
    fills_outside_their_bar=journal("momentum", _cheaper),
    a_fee_that_was_not_charged=journal("momentum", _never_charged),
    broken_off=journal("momentum", _broke_off),
)


# -- those that only write other values --
def _assay(edit):
    lie = edit.pop("lie", "")
    return assay(puts(edit), lie)


KINDS = {
    "manifest": lambda edit: manifest(puts(edit)),
    "scores": lambda edit: scores(puts(edit)),
    "journal": lambda edit: journal(edit[0], puts(edit[1])),
    "outcome": lambda edit: outcome(edit[0], puts(edit[1])),
    "cassette": lambda edit: cassette(edit[0], puts(edit[1])),
    "usage": lambda edit: usage(edit[0], **edit[1]),
    "everywhere": lambda edit: lambda run: run.present_as(*edit),
    "chosen": lambda edit: lambda run: chosen(run, *edit.split()),
    "grid": instead,
    "run": lambda edit: lambda run: rewritten(run.path, edit),
    "site": lambda edit: on_the_site(lambda _, out: rewritten(out, edit)),
    "again": lambda edit: written_again(lambda out: rewritten(out, edit[:3]), edit[3]),
    "paper": in_a_paper,
    "assay": _assay,
    "memory": lambda edit: judged(edit[0], puts(edit[1])),
    "asked": lambda edit: asked_again(edit[0], *edit[1].split()),
    "label": lambda edit: labelled(**edit),
    "rows": lambda edit: lambda run: run.execute(*edit),
    "season": lambda edit: lambda run: run.season(puts(edit)),
    "pages": lambda edit: on_its_pages(lambda _, out: rewritten(out, edit)),
    "amended": lambda edit: changed(edit[0], **edit[1]),
}
"""How an edit of ``edits.toml`` is made, by the name of its table."""
for kind, edits in tomllib.loads(Path(__file__).with_name("edits.toml").read_text()).items():
    for title, (words, edit) in edits.items():
        base, _, name = title.partition(": ")
        FORGERIES.append(Forgery(name, base, KINDS[kind](edit), words))
