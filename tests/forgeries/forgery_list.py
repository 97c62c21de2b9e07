"""The list of forgeries: one function each. It edits a copy of an honest run as a forger would, hashes included.

A function without an answer of its own leaves a run for ``verify``; others return the exit status and the words of
the door through which their lie would be told (``site``, ``verify --plan``, ``recordings check`` ...).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from forged_archives import add, exchange, forged_worlds, relabel
from forging import Forged, Json, command, put
from honest_runs import AGENT, SEASON, play, season

import tradeassay
from tradeassay.report.verifying import PaperRecord, compose_paper, record_paper

Told = tuple[int, str] | None


class Forgery(NamedTuple):
    name: str
    base: str
    forge: Callable[[Forged], Told]
    words: str


FORGERIES: list[Forgery] = []


def of(base: str, words: str = "") -> Callable[[Callable[[Forged], Told]], Callable[[Forged], Told]]:
    """Put a function on the list. ``words`` is what names the forgery where it is not contradicted."""

    def add(forge: Callable[[Forged], Told]) -> Callable[[Forged], Told]:
        FORGERIES.append(Forgery(forge.__name__.replace("_", " "), base, forge, words))
        return forge

    return add


def _fields(run: Forged, edit: Json) -> None:
    with run.manifest() as manifest:
        for path, value in edit.items():
            put(manifest, path, value)


_HOW: dict[str, Callable[[Forged, Any], Told]] = {
    "manifest": _fields,
    "everywhere": lambda run, edit: run.present_as(*edit),
    "rows": lambda run, edit: run.execute(*edit),
    "season": lambda run, edit: run.season(lambda spec: [put(spec, *one) for one in edit.items()]),
}


def _rewritten(folder: Path, edit: list[str]) -> None:
    """Write something else into the first file of a pattern in which an expression is found."""
    pattern, wanted, instead = edit
    texts = {path: path.read_text() for path in sorted(folder.glob(pattern))}
    path, text = next((path, text) for path, text in texts.items() if re.search(wanted, text, re.S))
    path.write_text(re.sub(wanted, instead, text, flags=re.S))


def _on_the_site(run: Forged, edit: list[str]) -> Told:
    assert site(run)[0] == 0
    _rewritten(run.root / "site", edit)
    return command("verify", run.root / "site", "--runs", run.path.parent, "--workers", "1")


def _in_a_paper(run: Forged, edit: list[str]) -> Told:
    record = PaperRecord(runs=(run.path.name,))
    record_paper(run.path.parent, record, *compose_paper(run.path.parent, record))
    assert command("verify", run.path.parent, "--workers", "1")[0] == 0
    _rewritten(run.path.parent, edit)
    return command("verify", run.path.parent, "--workers", "1")


_HOW |= {
    "run": lambda run, edit: _rewritten(run.path, edit),
    "site": _on_the_site,
    "paper": _in_a_paper,
}
for kind, edits in tomllib.loads(Path(__file__).with_name("edits.toml").read_text()).items():
    for title, (words, edit) in edits.items():
        base, _, name = title.partition(": ")
        FORGERIES.append(Forgery(name, base, partial(_HOW[kind], edit=edit), words))


def shift(lines: list[Json], start: int, cash: float) -> None:
    """Carry money that was never there through all later marks."""
    for line in lines[start:]:
        for event in line["events"]:
            if event["type"] == "marked":
                event["cash"] += cash
                event["nav"] = event["cash"] + event["positions"]


# -- a run of rules: the journal --
MOMENTUM, RANDOM, BASELINE = "momentum", "__random", "equal-weight"


@of("rule")
def a_fill_one_cent_cheaper(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        fill = lines[0]["events"][0]
        fill["price"] -= 0.01
        gained = fill["quantity"] * 0.01
        fill["cash"] += gained
        shift(lines, 0, gained)


@of("rule")
def the_last_mark_higher(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        mark = lines[-1]["events"][-1]
        mark["marks"] = {name: price * 1.1 for name, price in mark["marks"].items()}
        mark["positions"] *= 1.1
        mark["nav"] = mark["cash"] + mark["positions"]


@of("rule")
def fees_left_out(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        for event in lines[0]["events"]:
            if event["type"] == "filled":
                event["cash"] += event["fee"]
                shift(lines, 0, event["fee"])
                event["fee"] = 0.0


@of("rule")
def a_rebate_as_a_negative_tax(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        fill = lines[0]["events"][0]
        fill["tax"], fill["cash"] = -500.0, fill["cash"] + 500
        shift(lines, 0, 500)


@of("rule")
def the_worst_session_left_out(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        del lines[3]
        for step, line in enumerate(lines):
            line["step"] = step


@of("rule")
def a_journal_that_ends_at_its_peak(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        del lines[7:]


@of("rule")
def a_second_deposit(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        lines[4]["opening"].append({"type": "deposited", "cash": 5000.0, "terms": {}})
        shift(lines, 4, 5000)


@of("rule")
def a_dividend_that_nobody_paid(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        name = next(iter(lines[2]["events"][-1]["marks"]))
        paid = {"type": "dividend", "symbol": name, "per_share": 1.0, "quantity": 1000.0, "cash": 1000.0}
        lines[2]["opening"].append(paid)
        shift(lines, 2, 1000)


@of("rule")
def decided_after_the_open(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        for line in lines:
            line["decided_at"] += 3600 * 10**9


@of("rule")
def other_reasons(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        lines[0]["decision"]["reason"] = "our model predicted the rally"


@of("rule")
def an_order_that_was_never_given(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        lines[1]["decision"]["orders"] = lines[0]["decision"]["orders"]


@of("rule")
def a_weaker_baseline(run: Forged) -> None:
    with run.journal(BASELINE) as lines:
        shift(lines, 0, -30_000)


@of("rule")
def a_smaller_slippage_shown(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        lines[0]["events"][0]["reference"] = lines[0]["events"][0]["price"]


@of("rule")
def a_mark_of_a_name_not_held(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        lines[-1]["events"][-1]["marks"]["NVDA"] = 900.0


@of("rule")
def sessions_in_another_order(run: Forged) -> None:
    with run.journal(MOMENTUM) as lines:
        lines[3]["session"], lines[4]["session"] = lines[4]["session"], lines[3]["session"]


@of("rule")
def a_value_that_is_no_number(run: Forged) -> None:
    path = run.episode(MOMENTUM) / "events.jsonl"
    text = path.read_text().splitlines()
    nav = json.loads(text[-1])["events"][-1]["nav"]
    text[-1] = text[-1].replace(f'"nav":{nav}', '"nav":1e999')
    path.write_text("\n".join(text) + "\n")
    with run.outcome(MOMENTUM):
        pass


@of("rule")
def two_agents_swap_their_journals(run: Forged) -> None:
    one, other = run.episode(MOMENTUM), run.episode(RANDOM)
    one.rename(run.path / "x")
    other.rename(one)
    (run.path / "x").rename(other)
    run.rescore()


@of("rule")
def a_loser_declared_failed(run: Forged) -> None:
    with run.outcome(RANDOM) as outcome:
        outcome["status"], outcome["error"] = "failed", "the process ended"


@of("rule")
def fewer_steps_in_the_outcome(run: Forged) -> None:
    with run.outcome(RANDOM) as outcome:
        outcome["steps"] = 80


@of("rule")
def a_lucky_random_agent(run: Forged) -> None:
    other = play(run.root / "x", "run", "daily-us-v1", "-a", "random", "--seeds", "2", *SHORT, "--slug", "x")
    source = next(one for one in (other / "episodes").iterdir() if one.name.endswith("random__s1"))
    target = run.episode(RANDOM)
    shutil.rmtree(target)
    shutil.copytree(source, target)
    run.rescore()


@of("rule")
def a_better_rule_under_another_name(run: Forged) -> None:
    other = play(run.root / "x", "run", "daily-us-v1", "-a", "reversal", *SHORT, "--slug", "x")
    target = run.episode(RANDOM)
    shutil.rmtree(target)
    shutil.copytree(next(one for one in (other / "episodes").iterdir() if "reversal" in one.name), target)
    run.rescore()


# -- a run of rules: scores and manifest --
SHORT = ("--first", "2022-01-10", "--last", "2022-01-20")


def row(scores: Json, name: str) -> Json:
    return next(one for one in scores["agents"] if name in one["agent"])  # type: ignore[no-any-return]


@of("rule")
def a_higher_return_in_the_scores(run: Forged) -> None:
    def edit(scores: Json) -> None:
        row(scores, MOMENTUM)["measures"]["cumulative_return"].update(mean=0.99, highest=0.99, lowest=0.99)

    run.scores(edit)


@of("rule")
def the_loser_left_out_of_the_scores(run: Forged) -> None:
    run.scores(lambda scores: scores["agents"].remove(row(scores, "random")))


@of("rule")
def an_interval_where_there_is_none(run: Forged) -> None:
    def edit(scores: Json) -> None:
        median = row(scores, MOMENTUM)["measures"]["cumulative_return"]["median"]
        median.update(low=0.05, high=0.12, note=None, reason=None)

    run.scores(edit)


@of("rule")
def another_reason_for_a_missing_number(run: Forged) -> None:
    def edit(scores: Json) -> None:
        median = row(scores, MOMENTUM)["measures"]["annualised_return"]["median"]
        median.update(reason="the exchange was closed")

    run.scores(edit)


@of("rule", "momentum-12-1-k=3: openai-gpt-5")
def a_rule_labelled_like_a_model(run: Forged) -> None:
    other = play(
        run.root / "x",
        "run",
        toml(run, 'agents = [{name = "momentum-12-1", params = {k = 3}, label = "openai-gpt-5"}]'),
    )
    replace(run, other)


@of("rule", "momentum-12-1-k=3: random")
def a_tuned_rule_under_anothers_name(run: Forged) -> None:
    other = play(
        run.root / "x", "run", toml(run, 'agents = [{name = "momentum-12-1", params = {k = 3}, label = "random"}]')
    )
    replace(run, other)


@of("rule")
def two_specs_in_one_manifest(run: Forged) -> None:
    path = run.path / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace("{", '{"convention": "paper", ', 1))


@of("rule")
def another_hash_of_the_work(run: Forged) -> None:
    run.write("manifest.json", {**run.read("manifest.json"), "work_sha256": "00" * 32})


@of("rule", "ghost")
def an_episode_beside_the_manifest(run: Forged) -> None:
    shutil.copytree(run.episode(MOMENTUM), run.path / "episodes" / "ghost")


@of("rule", "times that cannot be true: .* took 1e-06 s, with 8 steps")
def wall_times_of_another_machine(run: Forged) -> None:
    timing = run.read("timing.json")
    timing["episodes"] = dict.fromkeys(timing["episodes"], 1e-6)
    run.write("timing.json", timing)


@of("rule")
def a_page_that_says_verified(run: Forged) -> None:
    page = run.path / "report.html"
    page.write_text(page.read_text().replace("+8.7", "+98.7").replace("<h1", "<p>verified</p><h1", 1))


@of("rule", "neither a file nor a folder")
def journals_behind_a_link(run: Forged) -> None:
    (run.path / "episodes").rename(run.root / "elsewhere")
    os.symlink(run.root / "elsewhere", run.path / "episodes")


# -- what a runner may choose, and must be said --
def toml(run: Forged, text: str, benchmark: str = "daily-us-v1") -> Path:
    path = run.root / "x" / "grid.toml"
    path.parent.mkdir(exist_ok=True)
    window = '\nwindow = {first = "2022-01-10", last = "2022-01-20"}' if "window" not in text else ""
    path.write_text(f'benchmarks = ["{benchmark}"]\nslug = "x"\n{text}{window}\n')
    return path


def replace(run: Forged, other: Path) -> None:
    shutil.rmtree(run.path)
    shutil.copytree(other, run.path)


def chosen(run: Forged, *words: str) -> None:
    """Play another spec and show it under the honest run's name."""
    replace(run, play(run.root / "x", "run", "daily-us-v1", "-a", "momentum-12-1:k=3", "--slug", "rule", *words))


@of("rule", r"window 2022-03-01 \.\. 2022-03-08 instead")
def the_best_week_of_two_years(run: Forged) -> None:
    chosen(run, "--first", "2022-03-01", "--last", "2022-03-08")


@of("rule", "one seed, chosen: 3")
def the_best_of_five_seeds(run: Forged) -> None:
    replace(run, play(run.root / "x", "run", toml(run, 'agents = [{name = "random"}]\nseeds = [3]')))


@of("rule", "universe all:5 instead")
def five_names_to_choose_from(run: Forged) -> None:
    chosen(run, *SHORT, "--universe", "all:5")


@of("rule", "index none instead")
def no_index_to_compare_with(run: Forged) -> None:
    chosen(run, *SHORT, "--index", "none")


@of("rule", "synthetic/us:11")
def another_synthetic_world(run: Forged) -> None:
    chosen(run, *SHORT, "--dataset", "synthetic/us:11")


@of("rule", "bootstrap.level 0.5 instead")
def intervals_of_half_the_level(run: Forged) -> None:
    text = 'agents = [{name = "momentum-12-1"}]\nbootstrap = {level = 0.5}'
    replace(run, play(run.root / "x", "run", toml(run, text)))


@of("rule", "bootstrap.salt 77 instead")
def a_lucky_salt_of_the_bootstrap(run: Forged) -> None:
    text = 'agents = [{name = "momentum-12-1"}]\nbootstrap = {salt = 77, draws = 50}'
    replace(run, play(run.root / "x", "run", toml(run, text)))


@of("rule", "one of 3 runs of daily-us-v1")
def one_of_several_tries(run: Forged) -> None:
    for name in ("second", "third"):
        shutil.copytree(run.path, run.path.parent / name)


@of("rule", "at most|too many|seeds")
def a_grid_of_a_million_seeds(run: Forged) -> None:
    with run.manifest(rescore=False) as manifest:
        manifest["spec"]["seeds"] = manifest["seeds"] = list(range(10**6))


@of("recorded")
def an_episode_left_out_of_the_grid(run: Forged) -> None:
    with run.manifest() as manifest:
        manifest["episodes"] = [one for one in manifest["episodes"] if one["baseline"]]


# -- the paper's convention --


# -- a model under a mask (a scripted one, whose answers can be made again) --
SCRIPTED = "scripted-sensible"


@of("masked")
def played_bright_and_called_blinded(run: Forged) -> None:
    words = tuple("ktdfin-v1 -m scripted/sensible --mask bright --last 2022-02-09 --slug masked".split())
    replace(run, play(run.root / "x", "run", *words))
    run.present_as(("mask=bright", "mask=blinded"), ('"bright"', '"blinded"'))


@of("masked", "tool_calls 100 instead")
def more_tool_calls_than_others(run: Forged) -> None:
    words = tuple("ktdfin-v1 -m scripted/sensible --mask blinded --last 2022-02-09 -p tool_calls=100".split())
    replace(run, play(run.root / "x", "run", *words, "--slug", "masked"))


@of("masked")
def a_reply_written_anew(run: Forged) -> None:
    with run.lines(run.cassette(SCRIPTED)) as lines:
        lines[-1]["reply"]["text"] = "I knew it"


@of("masked")
def a_question_that_was_not_asked(run: Forged) -> None:
    with run.lines(run.episode(SCRIPTED) / "dialogue.jsonl") as lines:
        lines[0]["messages"][-1]["text"] += " Remember: no hindsight."


@of("masked")
def an_attempt_left_out_of_the_dialogue(run: Forged) -> None:
    with run.lines(run.episode(SCRIPTED) / "dialogue.jsonl") as lines:
        del lines[1]


@of("masked")
def no_tokens_for_a_scripted_model(run: Forged) -> None:
    with run.outcome(SCRIPTED) as outcome:
        outcome["model"]["spending"].update(input_tokens=0, output_tokens=0)


@of("masked")
def failures_that_were_not_there(run: Forged) -> None:
    with run.journal(SCRIPTED) as lines:
        lines[0]["decision"]["reason"] = "failed: the provider was away"
        lines[0]["decision"].pop("orders", None)


@of("masked")
def real_names_shown_in_the_journal(run: Forged) -> None:
    with run.journal(SCRIPTED) as lines:
        for line in lines:
            line["session"] = line["session"].replace("2022", "2024")


# -- recorded answers of a real model --
QWEN = "qwen"


def usage(run: Forged, edit: Callable[[Json], object], words: str = QWEN) -> None:
    """Change what every answer cost: in the cassette, the dialogue and the outcome."""
    total: Json = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}
    with run.lines(run.cassette(words)) as lines:
        for line in lines:
            if "reply" in line:
                edit(line["reply"]["usage"])
    with run.lines(run.episode(words) / "dialogue.jsonl") as lines:
        for line in lines:
            edit(line["reply"]["usage"])
            for name in total:
                total[name] += line["reply"]["usage"].get(name) or 0
    with run.outcome(words) as outcome:
        outcome["model"]["spending"].update(total)


@of("recorded")
def fewer_tokens_in_the_outcome(run: Forged) -> None:
    with run.outcome(QWEN) as outcome:
        outcome["model"]["spending"]["output_tokens"] = 12


@of("recorded")
def fewer_calls(run: Forged) -> None:
    with run.outcome(QWEN) as outcome:
        outcome["model"]["spending"]["calls"] = 42


@of("recorded", "cannot be true|token")
def answers_for_no_tokens(run: Forged) -> None:
    usage(run, lambda used: used.update(input_tokens=0, output_tokens=0))


@of("recorded", "cannot be true|token")
def fewer_than_no_tokens(run: Forged) -> None:
    usage(run, lambda used: used.update(input_tokens=-5))


@of("recorded", "cannot be true|token")
def one_token_for_every_answer(run: Forged) -> None:
    usage(run, lambda used: used.update(input_tokens=1, output_tokens=1))


@of("recorded", "dollar")
def a_provider_that_pays(run: Forged) -> None:
    usage(run, lambda used: used.update(usd=-1.0))


@of("recorded", "dollar")
def dollars_beyond_counting(run: Forged) -> None:
    usage(run, lambda used: used.update(usd=1e300))


@of("recorded")
def a_reply_in_the_cassette_only(run: Forged) -> None:
    with run.lines(run.cassette(QWEN)) as lines:
        lines[3]["reply"]["text"] = '{"decisions": {}}'


@of("recorded")
def a_reply_in_cassette_and_dialogue(run: Forged) -> None:
    with run.lines(run.cassette(QWEN)) as lines:
        lines[3]["reply"]["text"] = '{"decisions": {}}'
    with run.lines(run.episode(QWEN) / "dialogue.jsonl") as lines:
        lines[2]["reply"]["text"] = '{"decisions": {}}'


@of("recorded", "are called live and have no times")
def replayed_answers_called_live(run: Forged) -> None:
    with run.outcome(QWEN) as outcome:
        outcome["model"]["answers"] = "live"


@of("recorded", "1 recorded answers of .* were not asked for")
def answers_that_nobody_asked_for(run: Forged) -> None:
    with run.lines(run.cassette(QWEN)) as lines:
        extra = json.loads(json.dumps(lines[-1]))
        extra["asked"]["step"] = 999
        lines.append(extra)


@of("recorded")
def another_temperature(run: Forged) -> None:
    with run.lines(run.cassette(QWEN)) as lines:
        for line in lines:
            if "asked" in line:
                line["asked"]["params"]["temperature"] = 1.0


@of("recorded")
def a_shorter_conversation(run: Forged) -> None:
    with run.lines(run.episode(QWEN) / "dialogue.jsonl") as lines:
        del lines[-3:]


@of("recorded")
def failures_left_out(run: Forged) -> None:
    with run.journal(QWEN) as lines:
        del lines[9]["decision"]["failures"]


# -- programs of the runner's own: class, pipe, HTTP --
@of("own", "Python class: openai-gpt-5")
def a_class_labelled_like_a_model(run: Forged) -> None:
    (run.root / "x").mkdir()
    (run.root / "x" / "mine.py").write_text(AGENT)
    params = f'{{class = "{run.root}/x/mine.py:Mine"}}'
    text = f'agents = [{{name = "python", params = {params}, label = "openai-gpt-5"}}]'
    replace(run, play(run.root / "x", "run", toml(run, text)))


@of("own", "dollar|usd")
def a_program_that_earns_on_every_answer(run: Forged) -> None:
    usage(run, lambda used: used.update(usd=-1.0), "Mine")


@of("own", "dollar|usd")
def a_program_for_nothing(run: Forged) -> None:
    usage(run, lambda used: used.update(usd=0.0, input_tokens=0, output_tokens=0), "Mine")


@of("own")
def an_order_its_class_did_not_give(run: Forged) -> None:
    with run.journal("Mine") as lines:
        lines[1]["decision"]["orders"][0]["amount"] = 0.5


@of("http", "program over HTTP: openai-gpt-5")
def a_server_labelled_gpt_5(run: Forged) -> None:
    return None


@of("http", "dollar|usd")
def a_server_with_a_billion_dollars(run: Forged) -> None:
    usage(run, lambda used: used.update(usd=1e9), "openai")


# -- programs that models wrote --
def record(
    run: Forged, edit: Callable[[Json], object], *, journal: Callable[[Json], object] | None = None
) -> None:
    folder = next((run.path / "episodes").iterdir()).name
    if journal is not None:
        with run.journal(folder, rescore=False) as lines:
            for line in lines:
                journal(line)
    with run.outcome(folder) as outcome:
        edit(outcome)


@of("quantcode")
def solved_at_the_first_turn(run: Forged) -> None:
    def edit(outcome: Json) -> None:
        turns = outcome["program"]["record"]["turns"]
        outcome["program"]["record"].update(turns=[{**turns[-1], "number": 1}], solved_at=1)

    record(run, edit)


@of("quantcode")
def a_crash_that_traded(run: Forged) -> None:
    def edit(outcome: Json) -> None:
        for turn in outcome["program"]["record"]["turns"]:
            if turn.get("evaluation"):
                turn["evaluation"]["trade"] = {"status": "passed", "measures": {}}

    record(run, edit)


@of("quantcode")
def another_program_in_the_record(run: Forged) -> None:
    def edit(outcome: Json) -> None:
        turn = outcome["program"]["record"]["turns"][-1]
        turn["code"] = "# written by the model itself\n" + turn["code"]

    record(run, edit)


@of("quantcode")
def more_trades_and_a_higher_return(run: Forged) -> None:
    def edit(outcome: Json) -> None:
        earned = outcome["program"]["record"]["turns"][-1]["evaluation"]["earned"]
        earned["strategy"]["total_return"], earned["trades"] = 9.9, 170

    record(run, edit)


@of("quantcode")
def a_journal_that_agrees_with_the_forged_record(run: Forged) -> None:
    def better(found: Json) -> None:
        if found.get("earned"):
            found["earned"]["strategy"]["total_return"] = 9.9

    def edit(outcome: Json) -> None:
        better(outcome["program"]["record"]["turns"][-1]["evaluation"])

    record(run, edit, journal=lambda line: better(line.get("result") or {}))


@of("quantcode")
def a_better_rate_in_the_scores(run: Forged) -> None:
    run.scores(lambda found: found["scores"]["cells"][0]["rates"]["compile"].update(value=1.0, low=0.9))


@of("quantcode", "tasks d-sma-cross-long instead")
def one_task_of_many(run: Forged) -> None:
    return None


@of("quantcode")
def no_tokens_for_a_program(run: Forged) -> None:
    def edit(outcome: Json) -> None:
        outcome["model"]["roles"]["writer"].update(input_tokens=0, output_tokens=0)
        outcome["model"]["spending"].update(input_tokens=0, output_tokens=0)

    record(run, edit)


@of("quantcode")
def a_damaged_journal_of_programs(run: Forged) -> None:
    path = next((run.path / "episodes").iterdir()) / "events.jsonl"
    path.write_bytes(b'{"step":0,"request":' + b"[" * 100_000 + b"\n" + path.read_bytes())
    with run.outcome(path.parent.name, rescore=False):
        pass


@of("quantcode")
def a_record_with_a_number_of_a_million_digits(run: Forged) -> None:
    path = next((run.path / "episodes").iterdir()) / "outcome.json"
    path.write_text(path.read_text().replace('"steps":4', '"steps":' + "9" * 10**6))


# -- governed programs --


def gates(found: Any) -> None:
    """Let every gate of a record hold, wherever it is written."""
    if isinstance(found, dict):
        if found.get("name") == "leak" and "status" in found:
            found.update(status="passed", reason="no decision changed in 327 comparisons")
        for value in found.values():
            gates(value)
    elif isinstance(found, list):
        for value in found:
            gates(value)


@of("systrade")
def a_leak_gate_that_held(run: Forged) -> None:
    record(run, lambda outcome: gates(outcome["program"]), journal=gates)


@of("systrade")
def better_marks_from_the_reviewer(run: Forged) -> None:
    def edit(outcome: Json) -> None:
        text = json.dumps(outcome["program"])
        outcome["program"] = json.loads(
            text.replace('"fidelity": 6', '"fidelity": 10').replace('"risk": 6', '"risk": 10')
        )
        outcome["program"]["reason"] = "a reviewer was impressed"

    record(run, edit)


@of("systrade")
def a_score_of_ten(run: Forged) -> None:
    def edit(found: Json) -> None:
        for one in found["scores"]["models"]:
            one["scores"]["D3"].update(value=10.0, reason=None)

    run.scores(edit)


# -- the store --
def in_a_forged_store(run: Forged, make: Callable[[], Path]) -> Told:
    """Play in a private store in which a synthetic world was edited and hashed again, and verify there."""
    with mock.patch.dict(os.environ, {"TRADEASSAY_HOME": str(run.root / "home")}):
        with forged_worlds():
            other = make()
        return command("verify", other, *(("--workers", "1") if other.is_dir() else ()))


@of("rule")
def a_synthetic_world_edited_in_the_store(run: Forged) -> Told:
    words = ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", *SHORT, "--executor", "inline", "--slug", "rule")
    return in_a_forged_store(run, lambda: play(run.root / "x", *words))


@of("arena", "not the one that its seed gives")
def a_season_on_a_synthetic_world_edited_in_the_store(run: Forged) -> Told:
    return in_a_forged_store(run, lambda: season(run.root))


@of("rule", "random portfolios are too few for a distribution, or without end")
def an_assay_without_end(run: Forged) -> Told:
    found = assayed(run)
    found["assay"]["config"]["portfolios"] = 10**12
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


@of("rule", "is a folder, not data of the store")
def data_sent_along_by_a_path(run: Forged) -> None:
    run.present_as(("synthetic/us:7", "./data"), ("synthetic+us=7", "data"))


# -- seals and plans --
def sealed(run: Forged) -> Path:
    path = run.root / "honest.seal"
    status, said = command("seal", run.path, "-o", path)
    assert status == 0, said
    return path


@of("rule")
def a_sealed_file_exchanged(run: Forged) -> Told:
    path = sealed(run)
    exchange(path, "scores.json", lambda text: text.replace(b"0.08", b"0.98"))
    return command("verify", path, "--workers", "1")


@of("rule")
def a_seal_of_an_edited_run(run: Forged) -> Told:
    a_higher_return_in_the_scores(run)
    return command("verify", sealed(run), "--workers", "1")


@of("rule", "outside|not a sealed run|cannot be read")
def a_seal_with_a_file_outside(run: Forged) -> Told:
    path = sealed(run)
    add(path, "../../outside.json", b"{}")
    return command("verify", path, "--workers", "1")


def planned(run: Forged, text: str, author: str = "ada") -> Path:
    grid = toml(run, text)
    status, said = command("seal", "--plan", grid, "--author", author, "--runs", run.root / "x" / "runs")
    assert status == 0, said
    return run.root / "x" / "runs" / "x.plan.seal"


def play_plan(run: Forged, plan: Path) -> None:
    replace(run, play(run.root / "x", "run", plan.with_suffix("").with_suffix(".plan.spec.json")))


@of("rule")
def another_run_than_planned(run: Forged) -> Told:
    plan = planned(run, 'agents = [{name = "momentum-12-1", params = {k = 5}}]')
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule")
def a_planned_class_exchanged_for_another(run: Forged) -> Told:
    (run.root / "x").mkdir()
    agent = run.root / "x" / "mine.py"
    agent.write_text(AGENT)
    plan = planned(run, f'agents = [{{name = "python", params = {{class = "{agent}:Mine"}}}}]')
    agent.write_text(AGENT.replace("r20", "r5"))
    play_plan(run, plan)
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule", "1 of 3 plans of ada, 2 unrevealed")
def fifty_plans_and_one_revealed(run: Forged) -> Told:
    for k in (5, 7):
        planned(run, f'agents = [{{name = "momentum-12-1", params = {{k = {k}}}}}]').unlink()
    plan = planned(run, 'agents = [{name = "momentum-12-1", params = {k = 3}}]')
    play_plan(run, plan)
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule", "lacks|log")
def a_log_of_plans_cut_short(run: Forged) -> Told:
    fifty_plans_and_one_revealed(run)
    runs, out = run.root / "x" / "runs", run.root / "site"
    assert command("site", runs, "-o", out, "--workers", "1")[0] == 0
    log = runs / "plans.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[-1])
    return command("site", runs, "-o", out, "--workers", "1")


@of("rule")
def a_plan_with_another_author(run: Forged) -> Told:
    plan = planned(run, 'agents = [{name = "momentum-12-1", params = {k = 3}}]')
    play_plan(run, plan)
    log = plan.with_name("plans.jsonl")
    log.write_text(log.read_text().replace("ada", "bob"))
    return command("verify", run.path, "--plan", plan, "--workers", "1")


@of("rule")
def another_value_of_the_beacon(run: Forged) -> Told:
    text = 'agents = [{name = "momentum-12-1", params = {k = 3}}]\nbeacon = {source = "drand", round = "5"}'
    plan = planned(run, text)
    spec = plan.with_suffix("").with_suffix(".plan.spec.json")
    replace(run, play(run.root / "x", "run", spec, "--beacon", "ab" * 32))
    return command("verify", run.path, "--plan", plan, "--beacon", "cd" * 32, "--workers", "1")


# -- the site and the assay --
def site(run: Forged) -> tuple[int, str, str]:
    """Write the site over the run's folder; return status, words, and the text of everything that it wrote."""
    out = run.root / "site"
    status, said = command("site", run.path.parent, "-o", out, "--workers", "1")
    pages = [one for one in sorted(out.rglob("*")) if one.suffix in {".html", ".json", ".svg", ".xml"}]
    return status, said, "\n".join(page.read_text() for page in pages)


def shown(run: Forged, lie: str) -> Told:
    """Say whether a lie is on the site: exit status 0 means that it is."""
    _, said, text = site(run)
    return (0, said) if lie in text else (1, said + "the lie is not on the site")


@of("rule")
def edited_scores_on_the_site(run: Forged) -> Told:
    site(run)  # a verdict is kept for the honest bytes
    a_higher_return_in_the_scores(run)
    return shown(run, "99.0%")


@of("rule")
def edited_scores_beside_a_valid_seal(run: Forged) -> Told:
    command("seal", run.path, "-o", run.path.parent / "rule.seal")
    a_higher_return_in_the_scores(run)
    return shown(run, "99.0%")


@of("rule")
def a_foreign_seal_beside_the_run(run: Forged) -> Told:
    other = play(run.root / "x", "run", "daily-us-v1", "-a", "reversal", *SHORT, "--slug", "rule")
    command("seal", other, "-o", run.path.parent / "rule.seal")
    return shown(run, "rule.seal")


def assayed(run: Forged) -> Json:
    status, said = command("assay", run.path, "--portfolios", "100")
    assert status == 0, said
    return run.read("assay.json")


@of("rule")
def a_verdict_of_skill(run: Forged) -> Told:
    found = assayed(run)
    for one in found["assay"]["agents"]:
        one["verdict"].update(kind="skill", label="skill", sentence="all of it is skill, says the forger")
    run.write("assay.json", found)
    return shown(run, "all of it is skill")


@of("rule")
def a_verdict_of_skill_for_verify(run: Forged) -> Told:
    a_verdict_of_skill(run)
    return command("verify", run.path, "--workers", "1")


@of("rule")
def the_assay_of_another_run(run: Forged) -> Told:
    other = Forged(
        play(
            run.root / "x", "run", "daily-us-v1", "-a", "momentum-12-1:k=3", "--last", "2022-03-01", "--slug", "x"
        ),
        run.root,
    )
    found = assayed(other)
    found["scores_sha256"] = assayed(run)["scores_sha256"]
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


@of("rule")
def a_leak_test_that_was_never_made(run: Forged) -> Told:
    found = assayed(run)
    for one in found["assay"]["agents"]:
        one["verdict"]["limits"] = []
        one["verdict"]["speaks_for"] = ["a leak test found nothing, says the forger"]
    run.write("assay.json", found)
    return shown(run, "a leak test found nothing")


@of("rule")
def an_edited_page_of_the_site(run: Forged) -> Told:
    site(run)
    page = run.root / "site" / "index.html"
    page.write_text(page.read_text().replace("<body", "<p>+999.0%</p><body", 1))
    return shown(run, "+999.0%")


@of("rule")
def an_edited_board_of_the_site(run: Forged) -> Told:
    site(run)
    board = run.root / "site" / "board.json"
    board.write_text(board.read_text().replace("momentum", "alphago"))
    return shown(run, "alphago")


@of("rule")
def an_edited_card_of_the_site(run: Forged) -> Told:
    site(run)
    for card in (run.root / "site" / "cards").rglob("*.svg"):
        card.write_text(card.read_text().replace("momentum", "alphago"))
    return shown(run, "alphago")


@of("rule")
def a_page_of_a_run_that_was_contradicted_later(run: Forged) -> Told:
    site(run)
    a_higher_return_in_the_scores(run)
    site(run)
    left = (run.root / "site" / "runs" / "rule" / "index.html").exists()
    return (0, "its page is still there") if left else (1, "its page is gone")


@of("rule")
def a_foreign_page_in_the_site(run: Forged) -> Told:
    site(run)
    page = run.root / "site" / "runs" / "gpt-5" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>+999.0%, verified</p>")
    return shown(run, "+999.0%")


@of("rule")
def a_page_in_the_folder_taken_over_by_the_site(run: Forged) -> Told:
    page = run.path / "report.html"
    page.write_text(page.read_text().replace("<body", "<p>+999.0%</p><body", 1))
    return shown(run, "+999.0%")


@of("rule")
def the_same_run_under_two_names(run: Forged) -> Told:
    shutil.copytree(run.path, run.path.parent / "twice")
    _, said, text = site(run)
    return (1, said) if "same bytes" in text + said else (0, said)


@of("own")
def a_class_on_the_site_under_a_models_name(run: Forged) -> Told:
    a_class_labelled_like_a_model(run)
    _, said, text = site(run)
    bare = text.replace("Python class: openai-gpt-5", "").replace("own label", "")
    return (
        (0, said) if ">openai-gpt-5<" in bare or '"openai-gpt-5"' in bare else (1, "its kind stands in the name")
    )


def surfaces(run: Forged) -> str:
    """Return what the tables, the page and the JSON of a run say."""
    said = [command("report", run.path, "--format", form)[1] for form in ("md", "csv", "json", "card")]
    return "\n".join(said)


@of("http")
def a_server_in_the_tables_under_a_models_name(run: Forged) -> Told:
    text = surfaces(run).replace("program over HTTP: openai-gpt-5", "")
    return (
        (0, text[:3000])
        if '"openai-gpt-5"' in text or ",openai-gpt-5," in text or "| openai-gpt-5 |" in text
        else (1, "")
    )


@of("http")
def a_server_in_the_frames_under_a_models_name(run: Forged) -> Told:
    names = set(tradeassay.load_run(run.path).frames("pandas").scores["agent"])
    return (0, str(names)) if "openai-gpt-5" in names else (1, str(names))


@of("http")
def a_server_in_the_json_of_a_comparison(run: Forged) -> Told:
    shutil.copytree(run.path, run.root / "other")
    text = command("compare", run.path, run.root / "other", "--json")[1].replace(
        "program over HTTP: openai-gpt-5", ""
    )
    return (0, text[:2000]) if '"openai-gpt-5"' in text else (1, "")


@of("http")
def a_server_in_an_assay_under_a_models_name(run: Forged) -> Told:
    text = command("assay", run.path, "--portfolios", "0", "--json")[1].replace(
        "program over HTTP: openai-gpt-5", ""
    )
    return (0, text[:2000]) if "openai-gpt-5" in text else (1, "")


@of("rule", "report.html counts 1 runs of its benchmark in the folder, there are 2")
def a_page_of_the_only_run_of_two(run: Forged) -> None:
    shutil.copytree(run.path, run.path.parent / "second")


@of("rule")
def a_page_of_the_site_taken_away(run: Forged) -> Told:
    site(run)
    (run.root / "site" / "runs" / "rule" / "index.html").unlink()
    return command("verify", run.root / "site", "--runs", run.path.parent, "--workers", "1")


@of("rule", r"do not hold the same runs \(second\)")
def a_site_without_a_worse_run(run: Forged) -> Told:
    site(run)
    play(run.path.parent.parent, "run", "daily-us-v1", "-a", "random", *SHORT, "--slug", "second")
    return command("verify", run.root / "site", "--runs", run.path.parent, "--workers", "1")


@of("rule")
def a_luck_that_was_not_drawn(run: Forged) -> Told:
    found = assayed(run)
    found["assay"]["agents"][0]["verdict"]["limits"] = ["it beat 99.9 % of the random portfolios"]
    run.write("assay.json", found)
    return command("verify", run.path, "--workers", "1")


# -- a season of the arena --
LAST = "(select max(id) from rounds)"


@of("arena")
def hindsight_for_a_rule(run: Forged) -> None:
    replace_season(run, SEASON.replace('rule = "trend"', 'rule = "sell"'))
    run.season(lambda spec: spec["entries"][2]["params"].update(rule="trend"))


def replace_season(run: Forged, text: str) -> None:
    (run.root / "x").mkdir(exist_ok=True)
    shutil.copy(season(run.root / "x", text), run.path)


@of("arena")
def another_architecture_under_the_same_name(run: Forged) -> None:
    replace_season(run, SEASON.replace('"vanilla"', '"vote"'))
    run.season(lambda spec: spec["entries"][1].update(architecture="vanilla"))


@of("arena")
def a_reply_exchanged(run: Forged) -> None:
    run.packed_column(
        "select rowid, reply from calls order by slot desc limit 1",
        "update calls set reply = ? where rowid = ?",
        lambda text: text.replace("BUY", "HOLD").replace("SELL", "HOLD"),
    )


@of("arena")
def a_question_exchanged(run: Forged) -> None:
    run.packed_column(
        "select rowid, request from calls order by slot desc limit 1",
        "update calls set request = ? where rowid = ?",
        lambda text: text.replace("price", "prize"),
    )


@of("arena")
def a_decision_taken_back(run: Forged) -> None:
    where = "slot in (select id from decisions where entry = 'bare' and session = '2022-03-04')"
    run.execute(
        f"delete from bookings where {where}",
        f"delete from calls where {where}",
        "delete from decisions where entry = 'bare' and session = '2022-03-04'",
    )


@of("arena")
def a_round_taken_back(run: Forged) -> None:
    run.execute(
        *(
            f"delete from {t} where slot in (select id from decisions where round = {LAST})"
            for t in ("bookings", "calls")
        ),
        f"delete from decisions where round = {LAST}",
        f"delete from rounds where id = {LAST}",
    )


@of("arena")
def an_entry_that_is_not_in_the_season(run: Forged) -> None:
    with run.sql() as base:
        columns = [
            name for _, name, *_ in base.execute("pragma table_info(decisions)") if name not in ("id", "entry")
        ]
        names = ", ".join(columns)
        base.execute(
            f"insert into decisions (entry, {names}) select 'gpt', {names} from decisions where entry = 'careful'"
        )


@of("arena")
def a_lost_round_called_warm_up(run: Forged) -> None:
    run.execute(
        *(f"update {t} set stage = 'warm-up' where session = '2022-03-04'" for t in ("rounds", "decisions"))
    )


@of("arena")
def another_memory(run: Forged) -> None:
    run.packed_column(
        "select rowid, body from memories",
        "update memories set body = ? where rowid = ?",
        lambda text: text.replace("2022", "2021"),
    )


@of("arena", "Real money")
def another_title_of_the_season(run: Forged) -> None:
    run.season(lambda spec: spec.update(title="Real money, audited"))
    run.execute("""update events set body = '{"id":"spring","title":"Real money, audited"}' where seq = 1""")


@of("arena", "fee_bp 0.0 instead of")
def a_season_without_fees(run: Forged) -> None:
    replace_season(run, SEASON.replace('title = "Spring"', 'title = "Spring"\nfee_bp = 0'))


@of("arena")
def fees_of_another_season(run: Forged) -> None:
    replace_season(run, SEASON.replace('title = "Spring"', 'title = "Spring"\nfee_bp = 0'))
    run.season(lambda spec: spec.update(fee_bp=None))


@of("arena", "convention|paper")
def the_papers_errors_called_sound(run: Forged) -> None:
    replace_season(run, SEASON.replace('title = "Spring"', 'title = "Spring"\nconvention = "paper"'))
    run.season(lambda spec: spec.update(convention="sound"))


@of("arena")
def a_view_that_multiplies_values(run: Forged) -> None:
    with run.sql() as base:
        (text,) = base.execute("select sql from sqlite_master where name = 'slots'").fetchone()
        base.execute("drop view slots")
        base.execute(text.replace("coalesce(b.nav, a.nav) AS nav", "coalesce(b.nav, a.nav) * 2 AS nav"))


@of("arena")
def votes_more_than_were_cast(run: Forged) -> None:
    with run.sql() as base:
        base.execute(
            "insert into calls select slot, number + 1, purpose, request_sha256, request, reply from calls limit 1"
        )


@of("arena")
def a_packet_with_its_hash(run: Forged) -> None:
    with run.sql() as base:
        (text,) = base.execute("select packet from rounds where session = '2022-03-04'").fetchone()
        text = text.replace(
            '"news":[', '"news":["It will rise",' if '"news":[{' in text else '"news":["It will rise"'
        )
        digest = hashlib.sha256(text.encode()).hexdigest()
        base.execute(
            "update rounds set packet = ?, packet_sha256 = ? where session = '2022-03-04'", (text, digest)
        )


def pages(run: Forged) -> Path:
    out = run.root / "pages"
    status, said = command("site", run.path, "-o", out)
    assert status == 0, said
    return out


@of("arena")
def an_edited_page_of_a_season(run: Forged) -> Told:
    out = pages(run)
    page = out / "seasons" / "spring" / "index.html"
    page.write_text(page.read_text().replace("<body", "<p>+999.0%</p><body", 1))
    return command("verify", run.path, "--pages", out)


@of("arena")
def edited_standings(run: Forged) -> Told:
    out = pages(run)
    file = out / "seasons" / "spring" / "standings.json"
    file.write_text(file.read_text().replace("trend", "gpt-5"))
    return command("verify", run.path, "--pages", out)


@of("arena")
def a_page_more(run: Forged) -> Told:
    out = pages(run)
    page = out / "seasons" / "spring" / "entries" / "gpt-5" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>+999.0%</p>")
    return command("verify", run.path, "--pages", out)


@of("arena")
def a_page_less(run: Forged) -> Told:
    out = pages(run)
    shutil.rmtree(out / "seasons" / "spring" / "entries" / "bare")
    return command("verify", run.path, "--pages", out)


@of("arena")
def pages_of_another_database(run: Forged) -> Told:
    out = pages(run)
    replace_season(run, SEASON.replace("2022-03-10", "2022-03-09"))
    return command("verify", run.path, "--pages", out)


@of("arena")
def a_season_packed_with_other_answers(run: Forged) -> Told:
    run.execute("update decisions set action = 'SELL' where entry = 'trend' and session = '2022-03-04'")
    file = run.root / "season.tar.xz"
    status, said = command("recordings", "record", run.path, "-o", file)
    return command("recordings", "check", file) if status == 0 else (1, said)


# -- recordings --
def packed_recording(run: Forged, edit: Callable[[Json], object], *words: str) -> Told:
    """Pack the run as a recording, change its label, and check it as it would be checked on arrival."""
    file = run.root / "recording.tar.xz"
    status, said = command(
        "recordings", "record", run.path, "--engine", "x", "--precision", "y", "-o", file, *words
    )
    if status:
        return 1, said
    relabel(file, edit)
    return command("recordings", "check", file)


@of("masked")
def a_recordings_label_of_another_model(run: Forged) -> Told:
    return packed_recording(run, lambda label: label.update(models=["openai/gpt-5"]))


@of("masked")
def a_recordings_label_with_more_answers(run: Forged) -> Told:
    return packed_recording(run, lambda label: label.update(answers=99_999))
