"""Without any extra every command works or names, in one line, the extra that it lacks."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from golden import play_season, stored
from shared_session import session_home

pytestmark = pytest.mark.journey

ROOT = Path(__file__).parents[3]
WALK = """
import contextlib, io, json, sys, traceback
from importlib.machinery import PathFinder

class Plain:
    absent = frozenset(json.loads(sys.argv[1]))

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in cls.absent else PathFinder.find_spec(name, path, target)

    find_distributions = staticmethod(PathFinder.find_distributions)  # entry points are there

sys.meta_path[:] = [Plain if one is PathFinder else one for one in sys.meta_path]
from tradeassay.cli import main
told = []
for words in json.loads(sys.argv[2]):
    out, err, raised, status = io.StringIO(), io.StringIO(), "", None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except BaseException:
            raised = traceback.format_exc()
    told.append((status, out.getvalue()[-3000:], err.getvalue()[-3000:], raised))
print(json.dumps(told))
"""
NEEDS = {
    "data get yfinance --name a --symbols AAPL --first 2024-01-02 --last 2024-01-12": "us",
    "data get ccxt --name a --symbols BTC/USDT --first 2024-01-02 --last 2024-01-12": "crypto",
    "data get baostock --name a --symbols 600519.SH --first 2024-01-02 --last 2024-01-12": "ashare",
    "data import prices --name a --layout wide": "polars",
    "run daily-us-v1 -a cash --executor ray": "ray",
    "run daily-us-v1 -m openai/gpt-5": "models",
    "run daily-us-v1 -a http:url=http://127.0.0.1:9/": "arena",
    "run daily-us-v1 -m local/qwen2.5-coder-1.5b": "local",
    "report recorded/daily --to mlflow": "tracking",
    "leak-test cash --sessions 2 --executor ray": "ray",
    "baselines --dataset synthetic/ashare:7 --models linear --small --train 2020-01-02..2020-06-30 "
    "--valid 2020-07-01..2020-09-30": "qlib",
    "code eval mine.py --task d-sma-cross-long": "code",
    "code eval mine.py --task d-sma-cross-long --reward": "code",
    "code validate d-sma-cross-long": "code",
    "code run quantcode-v1 -m scripted/coder-sma --task d-sma-cross-long": "code",
    "reproduce quantcode -m scripted/coder-sma": "code",
    "arena run --replay synthetic": "arena",
    "arena serve --replay synthetic": "arena",
    "arena standings": "arena",
    "verify recorded/arena/arena.db": "arena",
    "recordings record recorded/arena/arena.db -o season.tar.xz": "arena",
    "arena health": "arena",
    "reproduce ama": "arena",
    "mcp": "serve",
    "mcp arena.db": "serve",
    "site recorded/arena/arena.db": "arena",
}
"""Commands that need an extra, and which."""
WORKS = (
    "start --json",
    "benchmarks --json",
    "benchmarks stockbench-v1",
    "agents --json",
    "models --json",
    "baselines --json",
    "data list --json",
    "power --ratio 1 --sessions 252 --json",
    "--completion zsh",
    "code tasks --json",
    "code strategies --json",
    "code strategies --schema card",
    "recordings list --json",
    "report recorded/daily --format md",
    "report recorded/systrade-peeps --format latex",
    "report recorded/daily --to nowhere --json",
    "luck recorded/daily --portfolios 100 --json",
)


def hidden():
    """Return every module of this environment that is not of the runtime."""
    lines = (ROOT / "requirements/runtime.txt").read_text().splitlines()
    names = {line.partition("==")[0] for line in lines if re.match("[a-z]", line)}
    kept = {str(file).partition("/")[0] for name in names for file in _files(name)}
    place = Path(metadata.distribution("numpy").locate_file(""))
    found = {
        one.name.partition(".")[0] for one in place.iterdir() if one.suffix in ("", ".py", ".so")
    }
    return sorted(
        found
        - {one.partition(".")[0] for one in kept}
        - {"tradeassay", "_distutils_hack", "pip", ""}
    )


def _files(name):
    try:
        return metadata.files(name) or []
    except metadata.PackageNotFoundError:  # on another system, or for another Python
        return []


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """What every command said, all in one process from which all extras are hidden."""
    place = tmp_path_factory.mktemp("plain")
    (place / "recorded").mkdir()
    for name in ("daily", "systrade-peeps"):
        (place / "recorded" / name).symlink_to(stored(name))
    (place / "recorded" / "arena").mkdir()
    play_season("arena", place / "recorded" / "arena" / "arena.db")
    (place / "prices").mkdir()
    (place / "prices/AAA.csv").write_text(
        "date,open,high,low,close,volume\n2024-01-02,1,1,1,1,9\n2024-01-03,1,1,1,1,9\n"
    )
    (place / "mine.py").write_text("import backtrader as bt\nclass Mine(bt.Strategy):\n    pass\n")
    commands = [*WORKS, *NEEDS]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WALK,
            json.dumps(hidden()),
            json.dumps([one.split() for one in commands]),
        ],
        cwd=place,
        env={**os.environ, "TRADEASSAY_HOME": str(session_home()), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("command", WORKS)
def test_it_works(walked, command):
    status, out, err, raised = walked[command]
    assert (status, raised) == (0, ""), err
    assert out


@pytest.mark.parametrize("command", NEEDS)
def test_the_extra_is_named_in_one_line(walked, command):
    status, out, err, raised = walked[command]
    assert (status, out, raised) == (2, "", "")
    assert err.startswith("error: ") and err.count("\n") == 1, err
    assert f"pip install 'tradeassay[{NEEDS[command]}]'" in err
