"""The four journeys of README, from `git clone` to an answer on disk, with exactly the commands
that it prints.
"""

import os
import re
import shlex
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tradeassay.cli import main

pytestmark = pytest.mark.journey

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = r"^(?:<!-- needs: ([^\n]*) -->\n)?```(\w*)\n(.*?)^```"
INSTALL, *WAYS = (
    [line.removeprefix("$ ") for line in block.splitlines() if line]
    for needs, tag, block in re.findall(BLOCK, README, re.MULTILINE | re.DOTALL)
    if tag != "python" and needs != "your own data"
)
MOST = {"researcher": 3, "agent builder": 5, "quant": 3, "arena operator": 3}


def page_says(folder: Path, run: str, words: str) -> bool:
    return words in (folder / "runs" / run / "report.html").read_text()


def settled(folder: Path) -> bool:
    """Tell whether standings with intervals are on disk: they take twenty settled sessions."""
    files = folder.glob("arena.pages/seasons/*/standings.json")
    rows = [row for file in files for row in msgspec.json.decode(file.read_bytes())["rows"]]
    return any(row["measures"]["CR"]["low"] is not None for row in rows)


ANSWERS: dict[str, Callable[[Path], bool]] = {
    "researcher": lambda folder: page_says(
        folder, "hello", "cannot be told apart from buy and hold"
    ),
    "agent builder": lambda folder: page_says(folder, "mine", "not distinguishable from luck"),
    "quant": lambda folder: (
        msgspec.json.decode((folder / "checked.json").read_bytes())["outcome"] == "solved"
    ),
    "arena operator": settled,
}


def test_a_journey_is_short():
    assert len(WAYS) == len(MOST) and INSTALL[0].startswith("git clone")
    for way, (who, most) in zip(WAYS, MOST.items(), strict=True):
        assert len(INSTALL) + len(way) <= most, who


@pytest.mark.slow_for("quant")
@pytest.mark.parametrize("who", ["researcher", "quant"])
def test_what_readme_prints_ends_in_an_answer(who, tmp_path, monkeypatch, capsys):
    """In this process and without the installation; the slow tests walk every journey from its
    clone.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tradeassay").symlink_to(ROOT)
    [line] = WAYS[list(MOST).index(who)]
    command, _, file = line.partition(" > ")
    assert main(shlex.split(command)[1:]) == 0
    if file:
        (tmp_path / file).write_text(capsys.readouterr().out)
    assert ANSWERS[who](tmp_path)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the environment of a machine that has only the checkout; its packages are borrowed
    from ours.
    """
    made = tmp_path_factory.mktemp("machine")
    venv.create(made, with_pip=True)
    place = Path(sysconfig.get_path("purelib", vars={"base": str(made), "platbase": str(made)}))
    (place / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = made / "bin" / "pip"
    options = "-q --no-deps --no-build-isolation --no-index"
    pip.write_text(f'#!/bin/sh\nshift\nexec {made}/bin/python -m pip install {options} "$@"\n')
    return {
        **os.environ,
        "PATH": f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TRADEASSAY_HOME": str(made / "home"),
        "NO_COLOR": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("who", MOST)
def test_a_journey_ends_in_an_answer(who, tmp_path, installed):
    way = WAYS[list(MOST).index(who)]
    lines = [line.replace("<this repository>", str(ROOT)) for line in (*INSTALL, *way)]
    script = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=installed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    if who == "arena operator":  # it serves until it is stopped
        while script.poll() is None and not settled(tmp_path):
            time.sleep(1)
        os.killpg(script.pid, signal.SIGINT)
    said, _ = script.communicate()
    assert script.returncode in ((0, 130, -signal.SIGINT) if who == "arena operator" else (0,)), (
        said[-3000:]
    )
    assert ANSWERS[who](tmp_path), said[-3000:]
