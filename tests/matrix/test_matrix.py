"""Every benchmark and setting, played afresh, through every command that reads a run, by exit
status.

0: all is as recorded. 3: something cannot be checked. 1: something is contradicted. 2: the command
was wrong. The smallest runs are those of the golden tests; all benchmarks, settings and Pythons of
the machine are slow.
"""

import json
import os
import shutil
import subprocess
import sys
from typing import get_args

import golden
import pytest
from sources import PYTHONPATH

from tradeassay.cli import main
from tradeassay.core.errors import TradeassayError
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import code_benchmarks
from tradeassay_bench.benchmarks.ktdfin.ktdfin_config import MODES
from tradeassay_bench.benchmarks.stockbench.stockbench_config import INPUTS, Prompt
from tradeassay_bench.data import load_dataset
from tradeassay_bench.masking import LEVELS

pytestmark = pytest.mark.journey

needs_walls = pytest.mark.skipif(
    golden.no_sandbox(), reason="this machine cannot hold untrusted code"
)
PLAYED = [
    pytest.param(
        name,
        marks=[
            *([needs_walls] if argv[0] == "code" else []),
            *([] if name in golden.SMALLEST else [pytest.mark.slow]),
        ],
    )
    for name, argv in golden.RUNS.items()
]
SCREEN = 24


def commands(folder, out, *, programs, quick):
    """Return every command that reads a finished run, by name; those of runs that trade alone
    last.
    """
    shared = {
        "verify": ["verify", str(folder), "--workers", "1"],
        "seal": ["seal", str(folder), "-o", str(out / "run.seal")],
        "verify the seal": ["verify", str(out / "run.seal"), "--workers", "1"],
        "site": ["site", str(folder.parent), "-o", str(out / "site")],
        "compare": ["compare", str(folder), str(folder)],
        "report": ["report", str(folder), "-o", str(out / "report.html")],
    }
    if programs:
        del shared["verify the seal"]  # examines the programs a second time
        if (
            quick
        ):  # such programs are examined again by the tests of QuantCode's and SysTrade's runs
            shared["verify"].append("--no-programs")
            del shared["site"]
        return shared
    if quick:
        del shared["verify the seal"]  # a sealed run is verified like any other
    return shared | {
        "assay": ["assay", str(folder), "-o", str(out / "assay.html"), "--portfolios", "0"]
    }


def every_command_reads(run, tmp_path, capsys, *, programs, quick=False):
    folder = shutil.copytree(run, tmp_path / "moved, ü" / f"Anna's {run.name}")
    for name, argv in commands(folder, tmp_path, programs=programs, quick=quick).items():
        status = main(argv)
        said = capsys.readouterr()
        assert status == (3 if "--no-programs" in argv else 0), (
            f"{name}: {said.out[-2000:]}{said.err[-2000:]}"
        )
        if name == "verify" and status == 0:
            assert said.out.startswith(f"{folder} is verified: ") and "\n" in said.out
            notes = [line for line in said.err.splitlines() if " again" not in line]
            lines = [line.rstrip() for line in (*said.out.splitlines(), *notes)]
            assert sum(max(1, -(-len(line) // 80)) for line in lines) <= SCREEN, "\n".join(lines)
    if programs:
        assert (
            main(["assay", str(folder)]) == 2
            and "contains a run of programs" in capsys.readouterr().err
        )


@pytest.mark.parametrize("name", PLAYED)
def test_a_fresh_run_of_every_kind_goes_through_every_command(name, tmp_path, capsys):
    programs = golden.RUNS[name][0] == "code"
    every_command_reads(
        golden.stored(name), tmp_path, capsys, programs=programs, quick=name in golden.SMALLEST[1:]
    )


def test_a_run_that_was_edited_is_contradicted_by_its_status_alone(tmp_path, tell):
    folder = shutil.copytree(golden.stored("stockbench-paper"), tmp_path / "r")
    scores = (folder / "scores.json").read_text()
    (folder / "scores.json").write_text(scores.replace('"value": 0', '"value": 9', 1))
    assert " is CONTRADICTED in 1 place " in tell(["verify", str(folder)], 1).out.splitlines()[0]
    assert main(["verify", str(tmp_path / "nowhere")]) == 2


# -- all of them


def _days(name):
    """Return two sessions well inside a benchmark's window."""
    market = benchmarks.get(name).market
    days = [str(day) for day in load_dataset(benchmarks.get(name).dataset).sessions]
    inside = [day for day in days if (market.first or "") <= day <= (market.last or "9999")]
    return inside[5], inside[6]


SETTINGS = {
    "ktdfin": ("--mask", ",".join(LEVELS), "--mode", ",".join(MODES)),
    "stockbench": (
        "--set",
        f"inputs={','.join(INPUTS)}",
        "--set",
        f"prompt={','.join(get_args(Prompt))}",
    ),
}
PROGRAMS = {
    "quantcode-single": (
        "quantcode-v1",
        "-m",
        "scripted/coder-sma",
        "-t",
        "d-ibs-long",
        "--wording",
        "formal",
    ),
    "quantcode-all": (
        *(
            "quantcode-v1 -m scripted/coder-mends -t d-sma-cross-long --judge scripted/code-judge".split()
        ),
        *(
            "--setting",
            "single-turn",
            "--setting",
            "agentic",
            "--framework",
            "backtrader",
            "--framework",
            "frame",
        ),
        *(
            "--wording",
            "formal",
            "--wording",
            "conversational",
            "--turns",
            "3",
            "--decides",
            "both",
            "--strict",
        ),
    ),
    "systrade-reviewed": (
        *(
            "systrade-v1",
            "-m",
            "scripted/builder-gold",
            "--strategy",
            "double-ma",
            "--iterations",
            "2",
        ),
        *("--reviewer", "scripted/builder-mends", "--to-the-end"),
    ),
    "systrade-minutes": (
        *(
            "systrade-v1",
            "-m",
            "scripted/builder-gold",
            "--strategy",
            "vol-target",
            "--iterations",
            "1",
        ),
        *("--minutes", "2000"),
    ),
    "systrade-systb": (
        *(
            "systrade-systb-v1 -m scripted/builder-gold --strategy systb-double-ma --iterations 1".split()
        ),
    ),
}
AGENTS = tuple(
    "-a random:k=4 -a min-variance:every=1 -a momentum-12-1:k=3,every=1 -m scripted/sensible".split()
)


def played(name):
    """Return the command that plays the smallest run of a benchmark with all its settings."""
    if name in PROGRAMS:
        return ["code", "run", *PROGRAMS[name], "--workers", "1"]
    try:
        first, last = _days(name)
    except TradeassayError as error:
        pytest.skip(f"its data is not here: {error.message}")
    settings = SETTINGS.get(benchmarks.get(name).protocol, ())
    return [
        "run",
        name,
        *AGENTS,
        *settings,
        "--first",
        first,
        "--last",
        last,
        "--executor",
        "inline",
    ]


LONG = ("systrade-minutes",)
"""Examined bar by bar, four times over: about five minutes of an idle core, which a busy one has
not in 300 s.
"""
EVERY = [
    *(name for name in benchmarks.names() if not name.startswith("tiny-")),  # not other tests' own
    *(
        pytest.param(
            name, marks=[needs_walls, *([pytest.mark.timeout(3600)] if name in LONG else [])]
        )
        for name in PROGRAMS
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_every_benchmark_with_every_setting_goes_through_every_command(
    name, tmp_path, tell, capsys
):
    tell([*played(name), "--runs", str(tmp_path / "made"), "--name", "r", "--json"])
    every_command_reads(tmp_path / "made" / "r", tmp_path, capsys, programs=name in PROGRAMS)


def test_the_programs_of_the_matrix_are_all_benchmarks_of_programs():
    assert {argv[0] for argv in PROGRAMS.values()} == {
        name for name in code_benchmarks() if not name.startswith("test-")
    }


# -- other Pythons


def pythons():
    """Return the interpreters that have what tradeassay needs, by version; TRADEASSAY_PYTHONS
    names more (a:b).
    """
    found = {}
    named = filter(None, os.environ.get("TRADEASSAY_PYTHONS", "").split(":"))
    for python in (
        sys.executable,
        *named,
        *map(shutil.which, ("python3.11", "python3.12", "python3.13")),
    ):
        if python is None:
            continue
        program = (
            "import sys, tradeassay_bench.runs.verify.report; print('%d.%d' % sys.version_info[:2])"
        )
        done = subprocess.run(
            [python, "-c", program], env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), python)
    return found


def _environment():
    return {**os.environ, "PYTHONPATH": PYTHONPATH}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_run_of_each_python_is_verified_by_the_others(name, tmp_path, record_property):
    found = pythons()
    record_property("pythons", sorted(found))
    if len(found) < 2:
        pytest.skip(
            f"only Python {', '.join(found)} has the packages; name others with TRADEASSAY_PYTHONS"
        )
    argv = played(name)
    for version, python in found.items():
        made = [
            python,
            "-m",
            "tradeassay",
            *argv,
            "--runs",
            str(tmp_path),
            "--name",
            version,
            "--json",
        ]
        done = subprocess.run(made, env=_environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{version}: {done.stderr[-2000:]}"
        for other, checker in found.items():
            check = [
                checker,
                "-m",
                "tradeassay",
                "verify",
                str(tmp_path / version),
                "--workers",
                "1",
                "--json",
            ]
            done = subprocess.run(
                check, env=_environment(), capture_output=True, text=True, check=False
            )
            told = json.loads(done.stdout)["verification"] if done.stdout else done.stderr[-2000:]
            assert done.returncode == 0, f"made on {version}, verified on {other}: {told}"
