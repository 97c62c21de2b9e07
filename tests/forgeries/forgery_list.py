"""The list of forgeries: each edits a copy of an honest run as a forger would, hashes included.

``edits.toml`` lists them by the claim of ``verify`` that holds them, and has the edits that only
write other values. A forgery without an answer of its own leaves a run for ``verify``; others
return the exit status and the words of the command that would believe them (``verify --plan``,
``recordings check``).
"""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
from forged_archives import exchange, forged_worlds, relabel
from forging import Forged, canonical_json, command, nudged, put
from honest_runs import AGENT, PIPE, SEASON, SHORT, play, season

from tradeassay_bench.benchmarks import benchmarks

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
    """Put a function on the list.

    ``words`` is what names the forgery where it is not contradicted.
    """

    def add(forge):
        FORGERIES.append(Forgery(forge.__name__.replace("_", " "), base, forge, words))
        return forge

    return add


def these(base, **forgeries):
    """Put several on the list, each under its name; those that are only named have their words
    before them.
    """
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


def recording(words, edit):
    return within(lambda run: run.lines(run.recording(words)), edit)


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


def without(lines, place):
    del lines[place]
    for step, line in enumerate(lines):
        line["step"] = step


these(
    "rule",
    a_fill_one_cent_cheaper=journal(MOMENTUM, cheaper(lambda price: price - 0.01)),
    the_last_mark_higher=journal(MOMENTUM, _marked_higher),
    the_worst_session_left_out=journal(MOMENTUM, lambda lines: without(lines, 3)),
    decided_after_the_open=journal(
        MOMENTUM,
        lambda lines: [line.update(decided_at=line["decided_at"] + 3600 * 10**9) for line in lines],
    ),
    an_order_that_was_never_given=journal(
        MOMENTUM, lambda lines: put(lines, "1|decision|orders", lines[0]["decision"]["orders"])
    ),
    a_weaker_baseline=journal("equal-weight", lambda lines: shift(lines, 0, -30_000)),
)


# -- a run of rules: scores and manifest --
def row(found, name):
    return next(one for one in found["agents"] if name in one["agent"])


def _higher(found):
    higher = {"mean": 0.99, "highest": 0.99, "lowest": 0.99}
    row(found, MOMENTUM)["measures"]["cumulative_return"].update(higher)


def toml(run, text):
    path = run.root / "x" / "grid.toml"
    path.parent.mkdir(exist_ok=True)
    if "window" not in text:
        text += '\nwindow = {first = "2022-01-10", last = "2022-01-20"}'
    path.write_text(f'benchmarks = ["daily-us-v1"]\nname = "x"\n{text}\n')
    return path


def replace(run, other):
    shutil.rmtree(run.path)
    shutil.copytree(other, run.path)


def instead(text):
    """Play another grid and show it under the honest run's name."""
    return lambda run: replace(run, play(run.root / "x", "run", toml(run, text)))


def chosen(run, *words):
    """Play another spec and show it under the honest run's name."""
    given = "run daily-us-v1 -a momentum-12-1:k=3 --name rule".split()
    replace(run, play(run.root / "x", *given, *words))


def beside(run, *names):
    for name in names:
        shutil.copytree(run.path, run.path.parent / name)


def _with_a_ghost(run):
    shutil.copytree(run.episode(MOMENTUM), run.path / "episodes" / "ghost")


these(
    "rule",
    a_higher_return_in_the_scores=scores(_higher),
    the_loser_left_out_of_the_scores=scores(
        lambda found: found["agents"].remove(row(found, "random"))
    ),
    an_episode_beside_the_manifest=("ghost", _with_a_ghost),
    one_of_several_tries=(
        "one of 3 runs of daily-us-v1",
        lambda run: beside(run, "second", "third"),
    ),
    a_page_of_the_only_run_of_two=(
        "report.html counts 1 runs of its benchmark in the folder, but there are 2",
        lambda run: beside(run, "second"),
    ),
)


@of(
    "rule",
    "the rules differ from the rules of 'daily-us-v1': market.cash is 10000000.0, registered is "
    "1000000.0",
)
def a_benchmark_under_its_id_with_other_rules(run):
    """The run is honest in itself: it was made where the benchmark is registered with ten times
    the cash.
    """
    plain = benchmarks.get

    def richer(name):
        market = msgspec.structs.replace(plain(name).market, cash=1e7)
        return msgspec.structs.replace(plain(name), market=market)

    with mock.patch.object(benchmarks, "get", richer):
        chosen(run, *SHORT, "--executor", "inline")
    assert verify(run.path)[0] == 3


# -- a model under a mask (a scripted one, whose answers can be made again) --
def masked(run, words):
    given = f"ktdfin-v1 -m scripted/sensible --last 2022-02-09 --name masked {words}".split()
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


these(
    "masked",
    more_tool_calls_than_others=(
        "tool_calls 100 instead",
        lambda run: masked(run, "--mask blinded -p tool_calls=100"),
    ),
    a_question_that_was_not_asked=dialogue(SCRIPTED, _asked),
    an_attempt_left_out_of_the_dialogue=dialogue(SCRIPTED, lambda lines: lines.pop(1)),
    failures_that_were_not_there=journal(SCRIPTED, _failed),
)


# -- recorded answers of a real model --
def usage(words, **values):
    """Change what every answer cost: in the recording, the dialogue and the outcome."""

    def forge(run):
        total = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}
        with run.lines(run.recording(words)) as lines:
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


def _both_replies(run):
    recording(QWEN, puts({"3|reply|text": '{"decisions": {}}'}))(run)
    dialogue(QWEN, puts({"2|reply|text": '{"decisions": {}}'}))(run)


these(
    "recorded",
    an_episode_left_out_of_the_grid=manifest(
        lambda found: found.update(episodes=[one for one in found["episodes"] if one["baseline"]])
    ),
    a_reply_in_recording_and_dialogue=_both_replies,
    answers_that_nobody_asked_for=(
        "1 recorded answers of .* have no question",
        recording(QWEN, _more_answers),
    ),
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


# -- programs that models wrote --
def program(edit):
    """Change the record of a program."""

    def forge(run):
        with run.outcome(next((run.path / "episodes").iterdir()).name) as end:
            edit(end)

    return forge


def turns(end):
    return end["program"]["record"]["turns"]


these(
    "quantcode",
    solved_at_the_first_turn=program(
        lambda end: end["program"]["record"].update(
            turns=[{**turns(end)[-1], "number": 1}], solved_at=1
        )
    ),
    another_program_in_the_record=program(
        lambda end: turns(end)[-1].update(
            code="# written by the model itself\n" + turns(end)[-1]["code"]
        )
    ),
    one_task_of_many=("tasks d-sma-cross-long instead", untouched),
)


# -- governed programs, and their cards --


these(
    "systrade",
    a_score_of_ten=scores(
        lambda found: [
            one["scores"]["D3"].update(value=10.0, reason=None) for one in found["scores"]["models"]
        ]
    ),
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
    a_wrong_program_that_was_only_slow=(
        "1 program out of time, as stated by the runner",
        out_of_time,
    ),
)


# -- the store --
@of("rule")
def a_synthetic_world_edited_in_the_store(run):
    """Play in a private store in which a synthetic world was edited and hashed again, and verify
    there.
    """
    words = "run daily-us-v1 -a momentum-12-1:k=3 --executor inline --name rule".split()
    with mock.patch.dict(os.environ, {"TRADEASSAY_HOME": str(run.root / "home")}):
        with forged_worlds():
            other = play(run.root / "x", *words, *SHORT)
        return verify(other)


# -- seals and plans --
@of("rule")
def a_sealed_file_exchanged(run):
    path = run.root / "honest.seal"
    done("seal", run.path, "-o", path)
    exchange(path, "scores.json", lambda text: text.replace(b"0.08", b"0.98"))
    return verify(path)


def planned(edit):
    """Plan the run, play another spec than was planned, and verify it against the plan."""

    def forge(run):
        runs = run.root / "x" / "runs"
        done("seal", "--plan", toml(run, K3), "--runs", runs)
        edited(runs / "x.plan.spec.json", puts(edit))
        replace(run, play(run.root / "x", "run", runs / "x.plan.spec.json"))
        return verify(run.path, "--plan", runs / "x.plan.seal")

    return forge


# -- the assay --
def assayed(run, *words):
    done("assay", run.path, "--portfolios", "100", *words)
    return run.read("assay.json")


def assay(edit):
    """Change the run's assay."""

    def forge(run):
        found = assayed(run)
        edit(found["assay"])
        run.write("assay.json", found)

    return forge


these("rule", a_losing_agent_left_out_of_the_assay=assay(lambda found: found["agents"].pop()))


@of("rule", "trials")
def fewer_tries_than_were_made(run):
    for name in ("second", "third"):
        words = f"run daily-us-v1 -a momentum-12-1:k=3 --name {name}".split()
        play(run.path.parent.parent, *words, *SHORT)
    return assay(lambda found: found["config"].update(tries=1, folder=False))(run)


# -- what a model remembers --
def judged(name, edit):
    """Change a record of memory, judge the run with it as its runner would, and leave the run
    for ``verify``.
    """

    def forge(run):
        edited(run.path.parent / name, edit)
        records = [run.path.parent / record for record in ("recall.json", "changed.json")]
        words = [word for path in records for word in ("--recall", path)]
        status, said = command("assay", run.path, "--portfolios", "100", *words)
        return None if status == 0 else (1, said)

    return forge


these(
    "recalled",
    the_answers_of_an_audit_that_hurt_left_out=judged(
        "recall.json", lambda found: found.update(answers=found["answers"][::2])
    ),
    decisions_in_a_changed_market_exchanged=judged(
        "changed.json", lambda found: found.update(decisions=found["decisions"][:3])
    ),
)

# -- a season of the arena --
TITLE = 'title = "Spring"'


def played(old, new, hidden=None):
    """Play another season and, where an edit hides that, let its spec say what the honest one
    says.
    """

    def forge(run):
        (run.root / "x").mkdir(exist_ok=True)
        assert old in SEASON
        shutil.copy(season(run.root / "x", SEASON.replace(old, new)), run.path)
        if hidden is not None:
            run.season(hidden)

    return forge


these(
    "arena",
    hindsight_for_a_rule=played(
        'rule = "trend"', 'rule = "sell"', puts({"entries|2|params|rule": "trend"})
    ),
    a_season_without_fees=("fee_bp 0.0 instead of", played(TITLE, f"{TITLE}\nfee_bp = 0")),
    the_papers_errors_called_corrected=(
        "convention|paper",
        played(TITLE, f'{TITLE}\nconvention = "paper"', puts({"convention": "corrected"})),
    ),
)


def on_its_pages(edit):
    """Change the pages that were written from a season, and verify them beside it."""

    def forge(run):
        out = run.root / "pages"
        done("site", run.path, "-o", out)
        edit(run, out)
        return command("verify", run.path, "--pages", out)

    return forge


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


# -- what came with a package that is not installed here --


def _broke_off(lines):
    del lines[3:]


_cheaper = cheaper(lambda price: price * 0.95, "reference")
these(
    "theirs",
    their_fills_cheaper=journal("their-rule", _cheaper),
    broken_off=journal("their-rule", _broke_off),
)
these(
    "venue",
    fills_outside_their_bar=journal("momentum", _cheaper),
    broken_off=journal("momentum", _broke_off),
)


KINDS = {
    "manifest": lambda edit: manifest(puts(edit)),
    "scores": lambda edit: scores(puts(edit)),
    "journal": lambda edit: journal(edit[0], puts(edit[1])),
    "outcome": lambda edit: outcome(edit[0], puts(edit[1])),
    "recording": lambda edit: recording(edit[0], puts(edit[1])),
    "usage": lambda edit: usage(edit[0], **edit[1]),
    "everywhere": lambda edit: lambda run: run.present_as(*edit),
    "chosen": lambda edit: lambda run: chosen(run, *edit.split()),
    "grid": instead,
    "run": lambda edit: lambda run: rewritten(run.path, edit),
    "assay": lambda edit: assay(puts(edit)),
    "memory": lambda edit: judged(edit[0], puts(edit[1])),
    "label": lambda edit: labelled(**edit),
    "planned": planned,
    "rows": lambda edit: lambda run: run.execute(*edit),
    "season": lambda edit: lambda run: run.season(puts(edit)),
    "nudged": lambda edit: scores(lambda found: found.update(nudged(found, edit))),
    "pages": lambda edit: on_its_pages(lambda _, out: rewritten(out, edit)),
}
"""How an edit of ``edits.toml`` is made, by the name of its table."""
LISTED = tomllib.loads(Path(__file__).with_name("edits.toml").read_text())
CLAIMS = LISTED.pop("claims")
"""What ``verify`` claims, and the forgeries that hold each claim."""
for kind, edits in LISTED.items():
    for title, (words, edit) in edits.items():
        base, _, name = title.partition(": ")
        FORGERIES.append(Forgery(name, base, KINDS[kind](edit), words))
