"""What all commands share: one meaning of a short option, JSON wherever a result is printed, ids
completed.
"""

import subprocess

import click

from tradeassay.cli import root
from tradeassay.cli._options import Advanced, FoldedCommand
from tradeassay_bench.runs.play.progress import PacedCount

NO_RESULT = {"arena serve", "mcp"}
"""Commands that serve until they are stopped."""


def leaves(command, path=()):
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from leaves(child, (*path, name))


EVERY = dict(leaves(root))


def test_a_person_can_hold_the_commands_and_the_options_of_each():
    assert len(EVERY) <= 45, sorted(EVERY)
    for name, command in EVERY.items():
        shown = [
            one
            for one in command.params
            if isinstance(one, click.Option) and one.name != "help_advanced"
        ]
        if isinstance(command, FoldedCommand):
            shown = [one for one in shown if not isinstance(one, Advanced)]
        assert len(shown) <= 15, name


def test_what_is_folded_away_is_named_described_on_demand_and_completed(given, pressed):
    short = given("run --help").out
    assert (
        "--secret" in short
        and "see --help-advanced" in short
        and "Secret that aliases" not in short
    )
    assert "Secret from which aliases" in given("run --help-advanced").out
    assert "--secret" in " ".join(pressed("tradeassay run daily-us --sec"))


def test_a_word_that_is_no_command_says_where_its_work_is_done(given):
    elsewhere = {"plan": "run --plan", "probe": "memory probe", "record": "recordings record"}
    for old, new in (elsewhere | {"export": "report --to"}).items():
        assert f"no command '{old}' (did you mean {new}?)" in given(f"{old} x", 2).err


def test_json_and_short_options_are_one_for_all():
    meanings, without = {}, set()
    for name, command in EVERY.items():
        options = {option: parameter for parameter in command.params for option in parameter.opts}
        if "--json" not in options:
            without.add(name)
        for option, parameter in options.items():
            if option.startswith("-") and not option.startswith("--"):
                kind = (
                    "a place to write to"
                    if isinstance(parameter.type, click.Path)
                    else parameter.name or ""
                )
                meanings.setdefault(option, set()).add(kind)
    assert without == NO_RESULT
    assert meanings["-o"] == {"a place to write to"}
    assert meanings["-p"] <= {"settings", "options"}  # KEY=VALUE in both
    assert meanings["-a"] == {"agents"} and meanings["-m"] == {"models"}


COMPLETED = {
    "repr": "reproduce",
    "code ev": "eval",
    "assay self": "self-test",
    "assay mine.csv --benc": "--benchmark",
    "memory probe --mode mem": "memory-only",
}


def test_commands_options_and_choices_are_completed_and_nothing_where_nothing_is_known(pressed):
    for typed, expected in COMPLETED.items():
        assert f"plain,{expected}" in pressed(f"tradeassay {typed}"), typed
    assert pressed("tradeassay code eval x.py --task zz", "zsh") == []


def test_a_shell_can_read_what_is_printed_for_it(given):
    for shell in ("zsh", "fish", "bash"):
        script = given(f"--completion {shell}").out
        assert f"_TRADEASSAY_COMPLETE={shell}_complete" in script
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_counts_are_said_at_their_pace():
    said, now = [], iter([0.0, 1.0, 6.0, 7.0, 12.0])
    count = PacedCount(said.append, interval=5.0, clock=lambda: next(now))
    for done in range(1, 4):
        count("episodes", done, 4)
    count("programs examined", 4)
    assert said == ["2 of 4 episodes", "4 programs examined"]
