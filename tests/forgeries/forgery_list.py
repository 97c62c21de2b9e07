"""The list of forgeries: each edits a copy of an honest run as a forger would, hashes included.

One without an answer of its own leaves a run for ``verify``; others return exit status and words of the door
through which their lie would be told (``site``, ``verify --plan``, ``recordings check`` ...).
"""

import hashlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from forged_archives import add, exchange, forged_worlds, relabel
from forging import Forged, command, put
from honest_runs import AGENT, SEASON, play, season

import tradeassay
from tradeassay.report.verifying import PaperRecord, compose_paper, record_paper

Told = tuple[int, str] | None
Forge = Callable[[Forged], Told]
SHORT = ("--first", "2022-01-10", "--last", "2022-01-20")
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


def spec(edit):
    """Change the spec of a season, and its hash."""
    return lambda run: run.season(edit)


def rows(*statements):
    return lambda run: run.execute(*statements)


def swap(path, old, new):
    text = path.read_text()
    assert old in text, text[:500]
    path.write_text(text.replace(old, new))


def _rewritten(folder, edit):
    """Write something else into the first file of a pattern in which an expression is found."""
    pattern, wanted, instead = edit
    texts = {path: path.read_text() for path in sorted(folder.glob(pattern))}
    path, text = next((path, text) for path, text in texts.items() if re.search(wanted, text, re.S))
    path.write_text(re.sub(wanted, instead, text, flags=re.S))


def on_the_site(edit):
    """Change a site that was written from the run, and verify it beside the runs."""

    def forge(run):
        assert site(run)[0] == 0
        edit(run, run.root / "site")
        return command("verify", run.root / "site", "--runs", run.path.parent, "--workers", "1")

    return forge


def _in_a_paper(run, edit):
    record = PaperRecord(runs=(run.path.name,))
    record_paper(run.path.parent, record, *compose_paper(run.path.parent, record))
    assert command("verify", run.path.parent, "--workers", "1")[0] == 0
    _rewritten(run.path.parent, edit)
    return command("verify", run.path.parent, "--workers", "1")


_HOW = {
    "manifest": lambda run, edit: manifest(lambda found: [put(found, *one) for one in edit.items()])(run),
    "everywhere": lambda run, edit: run.present_as(*edit),
    "rows": lambda run, edit: run.execute(*edit),
    "season": lambda run, edit: run.season(lambda found: [put(found, *one) for one in edit.items()]),
    "run": lambda run, edit: _rewritten(run.path, edit),
    "site": lambda run, edit: on_the_site(lambda _, out: _rewritten(out, edit))(run),
    "paper": _in_a_paper,
}
for kind, edits in tomllib.loads(Path(__file__).with_name("edits.toml").read_text()).items():
    for title, (words, edit) in edits.items():
        base, _, name = title.partition(": ")
        FORGERIES.append(Forgery(name, base, partial(_HOW[kind], edit=edit), words))


# -- a run of rules: the journal --
def shift(lines, start, cash):
    """Carry money that was never there through all later marks."""
    for line in lines[start:]:
        for event in line["events"]:
            if event["type"] == "marked":
                event["cash"] += cash
                event["nav"] = event["cash"] + event["positions"]


def _a_cent_cheaper(lines):
    fill = lines[0]["events"][0]
    gained = fill["quantity"] * 0.01
    fill.update(price=fill["price"] - 0.01, cash=fill["cash"] + gained)
    shift(lines, 0, gained)


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
    a_fill_one_cent_cheaper=journal(MOMENTUM, _a_cent_cheaper),
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
    other_reasons=journal(MOMENTUM, lambda lines: put(lines, "0|decision|reason", "we predicted the rally")),
    an_order_that_was_never_given=journal(
        MOMENTUM, lambda lines: put(lines, "1|decision|orders", lines[0]["decision"]["orders"])
    ),
    a_weaker_baseline=journal("equal-weight", lambda lines: shift(lines, 0, -30_000)),
    a_smaller_slippage_shown=journal(
        MOMENTUM, lambda lines: put(lines, "0|events|0|reference", lines[0]["events"][0]["price"])
    ),
    a_mark_of_a_name_not_held=journal(MOMENTUM, lambda lines: put(lines, "-1|events|-1|marks|NVDA", 900.0)),
    sessions_in_another_order=journal(MOMENTUM, _other_order),
    a_loser_declared_failed=outcome(RANDOM, lambda end: end.update(status="failed", error="the process ended")),
    fewer_steps_in_the_outcome=outcome(RANDOM, lambda end: end.update(steps=80)),
    a_lucky_random_agent=lambda run: _exchanged(run, "random__s1", "-a", "random", "--seeds", "2"),
    a_better_rule_under_another_name=lambda run: _exchanged(run, "reversal", "-a", "reversal"),
    a_field_more_in_the_manifest=manifest(lambda found: found.update(audited_by="the exchange")),
    a_field_more_in_the_scores=scores(lambda found: found.update(audited_by="the exchange")),
    a_field_more_in_the_journal=journal(MOMENTUM, lambda lines: put(lines, "0|note", "audited by the exchange")),
    a_field_more_in_an_outcome=outcome(MOMENTUM, lambda end: end.update(audited_by="the exchange")),
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


def _in_no_time(run):
    timing = run.read("timing.json")
    run.write("timing.json", {**timing, "episodes": dict.fromkeys(timing["episodes"], 1e-6)})


def _with_a_ghost(run):
    shutil.copytree(run.episode(MOMENTUM), run.path / "episodes" / "ghost")


def _with_a_certificate(run):
    (run.path / "AUDIT.md").write_text("Audited and found correct.")


def _linked(run):
    (run.path / "episodes").rename(run.root / "elsewhere")
    os.symlink(run.root / "elsewhere", run.path / "episodes")


def _verified_page(run):
    swap(run.path / "report.html", "+8.7", "+98.7")
    swap(run.path / "report.html", "<h1", "<p>verified</p><h1")


these(
    "rule",
    a_higher_return_in_the_scores=higher,
    the_loser_left_out_of_the_scores=scores(lambda found: found["agents"].remove(row(found, "random"))),
    an_interval_where_there_is_none=measure(
        "cumulative_return", "median", low=0.05, high=0.12, note=None, reason=None
    ),
    another_reason_for_a_missing_number=measure("annualised_return", "median", reason="the exchange was closed"),
    a_rule_labelled_like_a_model=(
        "momentum-12-1-k=3: openai-gpt-5",
        instead('agents = [{name = "momentum-12-1", params = {k = 3}, label = "openai-gpt-5"}]'),
    ),
    a_tuned_rule_under_anothers_name=(
        "momentum-12-1-k=3: random",
        instead('agents = [{name = "momentum-12-1", params = {k = 3}, label = "random"}]'),
    ),
    two_specs_in_one_manifest=lambda run: _rewritten(
        run.path, ["manifest.json", r"\A{", '{"convention": "paper", ']
    ),
    another_hash_of_the_work=lambda run: run.write(
        "manifest.json", {**run.read("manifest.json"), "work_sha256": "00" * 32}
    ),
    an_episode_beside_the_manifest=("ghost", _with_a_ghost),
    wall_times_of_another_machine=("times that cannot be true: .* took 1e-06 s, with 8 steps", _in_no_time),
    a_page_that_says_verified=_verified_page,
    journals_behind_a_link=("neither a file nor a folder", _linked),
    the_best_week_of_two_years=(
        r"window 2022-03-01 \.\. 2022-03-08 instead",
        lambda run: chosen(run, "--first", "2022-03-01", "--last", "2022-03-08"),
    ),
    the_best_of_five_seeds=("one seed, chosen: 3", instead('agents = [{name = "random"}]\nseeds = [3]')),
    five_names_to_choose_from=("universe all:5 instead", lambda run: chosen(run, *SHORT, "--universe", "all:5")),
    no_index_to_compare_with=("index none instead", lambda run: chosen(run, *SHORT, "--index", "none")),
    another_synthetic_world=("synthetic/us:11", lambda run: chosen(run, *SHORT, "--dataset", "synthetic/us:11")),
    intervals_of_half_the_level=(
        "bootstrap.level 0.5 instead",
        instead('agents = [{name = "momentum-12-1"}]\nbootstrap = {level = 0.5}'),
    ),
    a_lucky_salt_of_the_bootstrap=(
        "bootstrap.salt 77 instead",
        instead('agents = [{name = "momentum-12-1"}]\nbootstrap = {salt = 77, draws = 50}'),
    ),
    one_of_several_tries=("one of 3 runs of daily-us-v1", lambda run: beside(run, "second", "third")),
    a_page_of_the_only_run_of_two=(
        "report.html counts 1 runs of its benchmark in the folder, there are 2",
        lambda run: beside(run, "second"),
    ),
    data_sent_along_by_a_path=(
        "is a folder, not data of the store",
        lambda run: run.present_as(("synthetic/us:7", "./data"), ("synthetic+us=7", "data")),
    ),
    a_certificate_in_the_folder=("AUDIT.md", _with_a_certificate),
    made_with_a_numpy_of_long_ago=(
        "numpy 1.0|other versions",
        manifest(lambda found: put(found, "versions|packages|numpy", "1.0")),
    ),
)


@of("rule", "at most|too many|seeds")
def a_grid_of_a_million_seeds(run):
    with run.manifest(rescore=False) as found:
        found["spec"]["seeds"] = found["seeds"] = list(range(10**6))


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
    a_reply_written_anew=cassette(SCRIPTED, lambda lines: put(lines, "-1|reply|text", "I knew it")),
    a_question_that_was_not_asked=dialogue(SCRIPTED, _asked),
    an_attempt_left_out_of_the_dialogue=dialogue(SCRIPTED, lambda lines: lines.pop(1)),
    no_tokens_for_a_scripted_model=outcome(
        SCRIPTED, lambda end: end["model"]["spending"].update(input_tokens=0, output_tokens=0)
    ),
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
    cassette(QWEN, lambda lines: put(lines, "3|reply|text", '{"decisions": {}}'))(run)
    dialogue(QWEN, lambda lines: put(lines, "2|reply|text", '{"decisions": {}}'))(run)


these(
    "recorded",
    an_episode_left_out_of_the_grid=manifest(
        lambda found: found.update(episodes=[one for one in found["episodes"] if one["baseline"]])
    ),
    fewer_tokens_in_the_outcome=outcome(QWEN, lambda end: put(end, "model|spending|output_tokens", 12)),
    fewer_calls=outcome(QWEN, lambda end: put(end, "model|spending|calls", 42)),
    answers_for_no_tokens=("cannot be true|token", usage(QWEN, input_tokens=0, output_tokens=0)),
    fewer_than_no_tokens=("cannot be true|token", usage(QWEN, input_tokens=-5)),
    one_token_for_every_answer=("cannot be true|token", usage(QWEN, input_tokens=1, output_tokens=1)),
    a_provider_that_pays=("dollar", usage(QWEN, usd=-1.0)),
    dollars_beyond_counting=("dollar", usage(QWEN, usd=1e300)),
    a_reply_in_the_cassette_only=cassette(QWEN, lambda lines: put(lines, "3|reply|text", '{"decisions": {}}')),
    a_reply_in_cassette_and_dialogue=_both_replies,
    replayed_answers_called_live=(
        "are called live and have no times",
        outcome(QWEN, lambda end: put(end, "model|answers", "live")),
    ),
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


these(
    "own",
    a_program_that_earns_on_every_answer=("dollar|usd", usage("Mine", usd=-1.0)),
    a_program_for_nothing=("dollar|usd", usage("Mine", usd=0.0, input_tokens=0, output_tokens=0)),
    an_order_its_class_did_not_give=journal("Mine", lambda lines: put(lines, "1|decision|orders|0|amount", 0.5)),
    a_program_without_its_files=manifest(lambda found: found["files"].pop("on_a_pipe")),
)
these(
    "http",
    a_server_labelled_gpt_5=("program over HTTP: openai-gpt-5", lambda run: None),
    a_server_with_a_billion_dollars=("dollar|usd", usage("openai", usd=1e9)),
)


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
    found = end["program"]["record"]["turns"]
    return found


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
    a_better_rate_in_the_scores=scores(
        lambda found: found["scores"]["cells"][0]["rates"]["compile"].update(value=1.0, low=0.9)
    ),
    one_task_of_many=("tasks d-sma-cross-long instead", lambda run: None),
    no_tokens_for_a_program=program(_cheap),
    a_prompt_with_a_hint=manifest(lambda found: put(found, "facts|prompt task.v1", "ab" * 32)),
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


# -- governed programs --
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


these(
    "systrade",
    a_leak_gate_that_held=program(lambda end: gates(end["program"]), lines=gates),
    better_marks_from_the_reviewer=program(_impressed),
    a_score_of_ten=scores(
        lambda found: [one["scores"]["D3"].update(value=10.0, reason=None) for one in found["scores"]["models"]]
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
    status, said = command("seal", run.path, "-o", path)
    assert status == 0, said
    return path


@of("rule")
def a_sealed_file_exchanged(run):
    path = sealed(run)
    exchange(path, "scores.json", lambda text: text.replace(b"0.08", b"0.98"))
    return command("verify", path, "--workers", "1")


@of("rule")
def a_seal_of_an_edited_run(run):
    higher(run)
    return command("verify", sealed(run), "--workers", "1")


@of("rule", "outside|not a sealed run|cannot be read")
def a_seal_with_a_file_outside(run):
    path = sealed(run)
    add(path, "../../outside.json", b"{}")
    return command("verify", path, "--workers", "1")


def planned(run, text=K3, author="ada"):
    grid = toml(run, text)
    status, said = command("seal", "--plan", grid, "--author", author, "--runs", run.root / "x" / "runs")
    assert status == 0, said
    return run.root / "x" / "runs" / "x.plan.seal"


def plan_others(run):
    for k in (5, 7):
        planned(run, K3.replace("k = 3", f"k = {k}"))


def play_plan(run, plan, *words):
    replace(run, play(run.root / "x", "run", plan.with_suffix("").with_suffix(".plan.spec.json"), *words))


def against(run, plan, *words):
    return command("verify", run.path, "--plan", plan, "--workers", "1", *words)


@of("rule")
def another_run_than_planned(run):
    return against(run, planned(run, K3.replace("k = 3", "k = 5")))


@of("rule")
def a_planned_class_exchanged_for_another(run):
    (run.root / "x").mkdir()
    agent = run.root / "x" / "mine.py"
    agent.write_text(AGENT)
    plan = planned(run, f'agents = [{{name = "python", params = {{class = "{agent}:Mine"}}}}]')
    agent.write_text(AGENT.replace("r20", "r5"))
    play_plan(run, plan)
    return against(run, plan)


@of("rule", "1 of 3 plans of ada, 2 unrevealed")
def fifty_plans_and_one_revealed(run):
    plan_others(run)
    plan = planned(run)
    play_plan(run, plan)
    return against(run, plan)


@of("rule", "lacks|log")
def a_log_of_plans_cut_short(run):
    fifty_plans_and_one_revealed(run)
    runs, out = run.root / "x" / "runs", run.root / "site"
    assert command("site", runs, "-o", out, "--workers", "1")[0] == 0
    log = runs / "plans.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[-1])
    return command("site", runs, "-o", out, "--workers", "1")


@of("rule")
def a_plan_with_another_author(run):
    plan = planned(run)
    play_plan(run, plan)
    swap(plan.with_name("plans.jsonl"), "ada", "bob")
    return against(run, plan)


@of("rule")
def another_value_of_the_beacon(run):
    plan = planned(run, f'{K3}\nbeacon = {{source = "drand", round = "5"}}')
    play_plan(run, plan, "--beacon", "ab" * 32)
    return against(run, plan, "--beacon", "cd" * 32)


# -- the site and the assay --
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


def written_again(edit, lie):
    """Change the site and write it once more: the lie must be gone."""

    def forge(run):
        site(run)
        edit(run.root / "site")
        return shown(run, lie)

    return forge


def _foreign(out):
    page = out / "runs" / "gpt-5" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>+999.0%, verified</p>")


def _cards(out):
    for card in (out / "cards").rglob("*.svg"):
        card.write_text(card.read_text().replace("momentum", "alphago"))


def assayed(run):
    status, said = command("assay", run.path, "--portfolios", "100")
    assert status == 0, said
    return run.read("assay.json")


def assay(edit, lie=""):
    """Change the run's assay, for ``verify`` or, where a lie is named, for the site."""

    def forge(run):
        found = assayed(run)
        edit(found["assay"])
        run.write("assay.json", found)
        return shown(run, lie) if lie else None

    return forge


def verdicts(found, **values):
    for one in found["agents"]:
        one["verdict"].update(values)


SKILL = {"kind": "skill", "label": "skill", "sentence": "all of it is skill, says the forger"}
these(
    "rule",
    an_edited_page_of_the_site=written_again(
        lambda out: swap(out / "index.html", "<body", "<p>+999.0%</p><body"), "+999.0%"
    ),
    an_edited_board_of_the_site=written_again(
        lambda out: swap(out / "board.json", "momentum", "alphago"), "alphago"
    ),
    an_edited_card_of_the_site=written_again(_cards, "alphago"),
    a_foreign_page_in_the_site=written_again(_foreign, "+999.0%"),
    a_page_of_the_site_taken_away=on_the_site(lambda _, out: (out / "runs" / "rule" / "index.html").unlink()),
    a_site_without_a_worse_run=(
        r"do not hold the same runs \(second\)",
        on_the_site(
            lambda run, _: play(run.root, "run", "daily-us-v1", "-a", "random", *SHORT, "--slug", "second")
        ),
    ),
    a_verdict_of_skill=assay(lambda found: verdicts(found, **SKILL), "all of it is skill"),
    a_verdict_of_skill_for_verify=assay(lambda found: verdicts(found, **SKILL)),
    a_leak_test_that_was_never_made=assay(
        lambda found: verdicts(found, limits=[], speaks_for=["a leak test found nothing, says the forger"]),
        "a leak test found nothing",
    ),
    a_luck_that_was_not_drawn=assay(
        lambda found: put(found, "agents|0|verdict|limits", ["it beat 99.9 % of the random portfolios"])
    ),
    an_assay_without_end=(
        "random portfolios are too few for a distribution, or without end",
        assay(lambda found: put(found, "config|portfolios", 10**12)),
    ),
    the_luckiest_draw_of_portfolios=assay(lambda found: put(found, "config|seed", 77)),
    a_lower_threshold_of_skill=("skilled", assay(lambda found: put(found, "config|skilled", 0.0001))),
    an_assay_of_half_the_level=("level", assay(lambda found: put(found, "config|level", 0.5))),
    an_assay_of_real_data=assay(
        lambda found: [one.update(badges=["real data"]) for one in (found, *found["agents"])]
    ),
    a_losing_agent_left_out_of_the_assay=assay(lambda found: found["agents"].pop()),
)


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
def the_assay_of_another_run(run):
    words = ("daily-us-v1", "-a", "momentum-12-1:k=3", "--last", "2022-03-01", "--slug", "x")
    found = assayed(Forged(play(run.root / "x", "run", *words), run.root))
    run.write("assay.json", {**found, "scores_sha256": assayed(run)["scores_sha256"]})


@of("rule", "trials")
def fewer_tries_than_were_made(run):
    for name in ("second", "third"):
        play(run.path.parent.parent, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--slug", name)
    return assay(lambda found: found["config"].update(trials=1, folder=False))(run)


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


# -- a program under a model's name --
def under_its_label(text, *signs):
    """Say whether the label stands anywhere without what it is the label of: exit status 0 means that it does."""
    bare = re.sub("(program over HTTP|Python class): openai-gpt-5|own label", "", text)
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


# -- a season of the arena --
LAST = "(select max(id) from rounds)"
TAKEN_BACK = "entry = 'bare' and session = '2022-03-04'"
CALL = "select rowid, {0} from calls order by slot desc limit 1", "update calls set {0} = ? where rowid = ?"


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


TITLE = 'title = "Spring"'
these(
    "arena",
    hindsight_for_a_rule=played(
        'rule = "trend"', 'rule = "sell"', lambda found: put(found, "entries|2|params|rule", "trend")
    ),
    another_architecture_under_the_same_name=played(
        '"vanilla"', '"vote"', lambda found: put(found, "entries|1|architecture", "vanilla")
    ),
    a_reply_exchanged=call("reply", ("BUY", "HOLD"), ("SELL", "HOLD")),
    a_question_exchanged=call("request", ("price", "prize")),
    a_decision_taken_back=rows(
        f"delete from bookings where slot in (select id from decisions where {TAKEN_BACK})",
        f"delete from calls where slot in (select id from decisions where {TAKEN_BACK})",
        f"delete from decisions where {TAKEN_BACK}",
    ),
    a_round_taken_back=rows(
        f"delete from bookings where slot in (select id from decisions where round = {LAST})",
        f"delete from calls where slot in (select id from decisions where round = {LAST})",
        f"delete from decisions where round = {LAST}",
        f"delete from rounds where id = {LAST}",
    ),
    a_lost_round_called_warm_up=rows(
        "update rounds set stage = 'warm-up' where session = '2022-03-04'",
        "update decisions set stage = 'warm-up' where session = '2022-03-04'",
    ),
    another_memory=lambda run: run.packed_column(
        "select rowid, body from memories",
        "update memories set body = ? where rowid = ?",
        lambda text: text.replace("2022", "2021"),
    ),
    a_season_without_fees=("fee_bp 0.0 instead of", played(TITLE, f"{TITLE}\nfee_bp = 0")),
    fees_of_another_season=played(TITLE, f"{TITLE}\nfee_bp = 0", lambda found: found.update(fee_bp=None)),
    the_papers_errors_called_sound=(
        "convention|paper",
        played(TITLE, f'{TITLE}\nconvention = "paper"', lambda found: found.update(convention="sound")),
    ),
    votes_more_than_were_cast=rows(
        "insert into calls select slot, number + 1, purpose, request_sha256, request, reply from calls limit 1"
    ),
    a_rule_with_other_parameters_than_it_played=spec(lambda found: put(found, "entries|2|params|rule", "buy")),
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
    file = run.root / "season.tar.xz"
    status, said = command("recordings", "record", run.path, "-o", file)
    return command("recordings", "check", file) if status == 0 else (1, said)


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


def on_its_pages(edit):
    """Change the pages that were written from a season, and verify them beside it."""

    def forge(run):
        out = run.root / "pages"
        status, said = command("site", run.path, "-o", out)
        assert status == 0, said
        edit(run, out)
        return command("verify", run.path, "--pages", out)

    return forge


def page(name, old, new):
    return on_its_pages(lambda _, out: swap(out / name, old, new))


def _one_more(run, out):
    more = out / "seasons" / "spring" / "entries" / "gpt-5" / "index.html"
    more.parent.mkdir()
    more.write_text("<p>+999.0%</p>")


these(
    "arena",
    an_edited_page_of_a_season=page("seasons/spring/index.html", "<body", "<p>+999.0%</p><body"),
    edited_standings=page("seasons/spring/standings.json", "trend", "gpt-5"),
    a_page_more=on_its_pages(_one_more),
    a_page_less=on_its_pages(lambda _, out: shutil.rmtree(out / "seasons" / "spring" / "entries" / "bare")),
    pages_of_another_database=on_its_pages(lambda run, _: played("2022-03-10", "2022-03-09")(run)),
    another_value_in_the_equity_of_a_season=page("seasons/spring/equity.json", "1", "2"),
    a_season_in_chinese_with_other_numbers=page("zh/seasons/spring/index.html", "%", " %"),
    rules_of_a_season_told_otherwise=page("seasons/spring/rules/index.html", "fee", "gift"),
    a_script_of_the_arena_exchanged=on_its_pages(
        lambda _, out: next((out / "static").glob("charts-*.js")).write_text("document.title = 'audited'")
    ),
)


# -- recordings --
def labelled(**values):
    """Pack the run as a recording, change its label, and check it as it would be checked on arrival."""

    def forge(run):
        file = run.root / "recording.tar.xz"
        words = ("--engine", "x", "--precision", "y", "-o", file)
        status, said = command("recordings", "record", run.path, *words)
        if status:
            return 1, said
        relabel(file, lambda label: label.update(values))
        return command("recordings", "check", file)

    return forge


these(
    "masked",
    a_recordings_label_of_another_model=labelled(models=["openai/gpt-5"]),
    a_recordings_label_with_more_answers=labelled(answers=99_999),
)
