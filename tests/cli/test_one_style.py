"""What all commands share: one meaning of a short option, JSON wherever a result is printed, ids completed."""

import json
import os
import subprocess

import click
import pytest

from tradeassay.cli import root
from tradeassay.cli._options import Advanced, FoldedCommand

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


def options(command):
    return {option: parameter for parameter in command.params for option in parameter.opts}


def test_a_person_can_hold_the_commands_and_the_options_of_each():
    assert len(EVERY) <= 45, sorted(EVERY)
    shown = {
        name: [one for one in command.params if isinstance(one, click.Option) and one.name != "help_advanced"]
        for name, command in EVERY.items()
    }
    for name, command in EVERY.items():
        if isinstance(command, FoldedCommand):
            shown[name] = [one for one in shown[name] if not isinstance(one, Advanced)]
    assert {name: len(options) for name, options in shown.items() if len(options) > 15} == {}


def test_what_is_folded_away_is_named_described_on_demand_and_completed(tell, capsys, monkeypatch):
    short = tell(["run", "--help"]).out
    assert "--secret" in short and "see --help-advanced" in short and "Secret that aliases" not in short
    assert "Secret that aliases" in tell(["run", "--help-advanced"]).out
    monkeypatch.setenv("_TRADEASSAY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "tradeassay run daily-us --sec")
    monkeypatch.setenv("COMP_CWORD", "3")
    with pytest.raises(SystemExit):
        root.main(prog_name="tradeassay")
    assert "--secret" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("plan", "run --plan"),
        ("probe", "memory probe"),
        ("record", "recordings record"),
        ("export", "report --to"),
    ],
)
def test_a_word_that_is_no_command_says_where_its_work_is_done(old, new, tell):
    assert f"no command '{old}' (did you mean {new}?)" in tell([old, "x"], 2).err


def test_json_and_short_options_are_one_for_all():
    without = {name for name, command in EVERY.items() if "--json" not in options(command)}
    assert without == NO_RESULT
    meanings = {}
    for command in EVERY.values():
        for option, parameter in options(command).items():
            if option.startswith("-") and not option.startswith("--"):
                kind = "a place to write to" if isinstance(parameter.type, click.Path) else parameter.name or ""
                meanings.setdefault(option, set()).add(kind)
    assert meanings["-o"] == {"a place to write to"}
    assert meanings["-p"] <= {"settings", "options"}  # KEY=VALUE in both
    assert meanings["-a"] == {"agents"} and meanings["-m"] == {"models"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("tradeassay repr", "reproduce"),
        ("tradeassay run stockbench-dj", "stockbench-djia-v1"),
        ("tradeassay run daily-us-v1 -a momentum-1", "momentum-12-1"),
        ("tradeassay run daily-us-v1 -m scripted/sens", "scripted/sensible"),
        ("tradeassay code run quant", "quantcode-v1"),
        ("tradeassay code eval x.py --task d-sma-cross-l", "d-sma-cross-long"),
        ("tradeassay verify thi", "this-run"),
        ("tradeassay assay thi", "this-run"),
        ("tradeassay assay mine.csv --aga", "--against"),
        ("tradeassay models --get smol", "smollm2"),
    ],
)
def test_ids_are_completed(typed, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.makedirs("runs/this-run")
    open("runs/this-run/manifest.json", "w").close()
    monkeypatch.setenv("_TRADEASSAY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        root.main(prog_name="tradeassay")
    assert f"plain,{expected}" in capsys.readouterr().out.split()


def test_names_are_kept_until_something_changes(tmp_path, monkeypatch, capsys):
    """A second press reads them from a file; one that is broken, or older than a package, is made again."""
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("_TRADEASSAY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "tradeassay run daily-u")
    monkeypatch.setenv("COMP_CWORD", "2")

    def pressed():
        with pytest.raises(SystemExit):
            root.main(prog_name="tradeassay")
        return set(capsys.readouterr().out.split())

    first, kept = pressed(), tmp_path / "home" / "completions" / "benchmarks.json"
    known = json.loads(kept.read_text())
    assert "plain,daily-us-v1" in first and "daily-us-v1" in known[2]
    kept.write_text(json.dumps([*known[:2], ["daily-unheard-of"]]))
    assert pressed() == {"plain,daily-unheard-of"}
    for stale in ("[1", json.dumps([0, 0, ["daily-unheard-of"]])):
        kept.write_text(stale)
        assert pressed() == first


def test_nothing_is_completed_where_nothing_is_known(monkeypatch, capsys):
    monkeypatch.setenv("_TRADEASSAY_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "tradeassay code eval x.py --task zz")
    monkeypatch.setenv("COMP_CWORD", "5")
    with pytest.raises(SystemExit):
        root.main(prog_name="tradeassay")
    assert not capsys.readouterr().out.strip()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_read_what_is_printed_for_it(shell, tell):
    script = tell(["--completion", shell]).out
    assert f"_TRADEASSAY_COMPLETE={shell}_complete" in script
    if shell == "bash":
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr


def test_windows_runs_and_counts_are_said_in_one_line(tell):
    for option, day, named in (("--first", "2031-01-01", "2023-12-22"), ("--last", "1999-01-01", "2022-01-10")):
        assert named in tell(["run", "daily-us-v1", "-a", "cash", option, day], 2).err
    assert "two or more" in tell(["compare", "one"], 2).err
    from tradeassay.runs.play.progress import PacedCount

    said = []
    now = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    count = PacedCount(said.append, interval=5.0, clock=lambda: next(now))
    for done in range(1, 4):
        count("episodes", done, 4)
    count("programs examined", 4)
    assert said == ["2 of 4 episodes", "4 programs examined"]
