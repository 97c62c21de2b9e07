"""Habits of the house that a tool can check over the whole tree."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked(*patterns: str) -> list[Path]:
    try:
        done = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\n") if name and (ROOT / name).is_file()]


def test_nothing_is_left_unfinished() -> None:
    marker = re.compile(r"NotImplementedError|TO" + r"DO|FIX" + r"ME|XX" + r"X\b")
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in tracked("src/*.py")
        for line in path.read_text().splitlines()
        if marker.search(line)
    ]
    assert not found


def test_every_package_says_what_it_is_for() -> None:
    for path in tracked("src/**/__init__.py"):
        assert path.read_text().lstrip().startswith('"""'), f"{path} has no docstring"


def test_a_type_ignore_states_its_reason() -> None:
    bare = re.compile(r"#\s*type:\s*ignore(\[[\w, -]+\])?\s*$")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in tracked("src/*.py")
        for line in path.read_text().splitlines()
        if bare.search(line)
    ]
    assert not found


def test_what_cannot_be_decoded_has_one_name() -> None:
    """A reader that catches one of the ways alone lets the others through as a traceback."""
    alone = re.compile(r"except\b.*\bmsgspec\.(DecodeError|MsgspecError)")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in tracked("src/*.py")
        for line in path.read_text().splitlines()
        if alone.search(line)
    ]
    assert not found, "catch tradeassay.core.errors.UNDECODABLE"
