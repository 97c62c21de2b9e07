"""The pages are true: their links resolve, their commands run, their Python runs.

In a page, a fenced block tagged ``console`` holds commands after ``$ ``; a block tagged ``python`` is executed.
The blocks of one page run in order, in one empty folder, with a data home of their own.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
MAKE = ("make ", "git ", "cd ")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert not dead


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_a_page_says_works(page: Path, tmp_path: Path, home: Path) -> None:
    env = {**os.environ, "TRADEASSAY_HOME": str(home), "NO_COLOR": "1"}
    for kind, body in blocks(page):
        if kind == "python":
            _run([sys.executable, "-c", body], tmp_path, env, body)
            continue
        for line in body.splitlines():
            command = line.removeprefix("$ ")
            if line.startswith("$ ") and not command.startswith(MAKE):
                words = shlex.split(command, comments=True)
                assert words[0] == "tradeassay", f"{page.name}: cannot test '{command}'"
                _run([sys.executable, "-m", *words], tmp_path, env, command)


def _run(words: list[str], folder: Path, env: dict[str, str], shown: str) -> None:
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{shown}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
