"""Files that other programs read: they parse, and name only what exists."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

import tradeassay
from tradeassay.cli.code import code

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "compose.yaml", ROOT / "action.yml", ROOT / "CITATION.cff", *sorted(ROOT.glob(".github/**/*.yml"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_parses(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_citation_names_this_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == tradeassay.__version__


def test_the_action_calls_a_command_that_exists() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    (line,) = [step["run"] for step in steps if "code eval" in step.get("run", "")]
    known = {option for parameter in code.commands["eval"].params for option in parameter.opts}
    assert set(re.findall(r"--\w+", line)) <= known


def test_the_image_copies_what_there_is() -> None:
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY "):
            for name in line.split()[1:-1]:
                assert (ROOT / name).exists(), line


def test_the_image_installs_extras_that_exist_and_what_the_arena_needs() -> None:
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', (ROOT / "Dockerfile").read_text())
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    assert "postgres" in extras.split(","), "compose.yaml plays on PostgreSQL"


def test_the_composed_arena_calls_options_that_exist() -> None:
    from tradeassay.cli.arena import arena

    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    command = services["one"]["command"]
    assert services["two"] == services["one"] and {"db", "proxy"} < services.keys()
    assert "PASSWORD" not in str(command)  # arguments can be read in the list of processes
    known = {option for parameter in arena.commands["serve"].params for option in parameter.opts}
    assert {part.partition("=")[0] for part in command if part.startswith("--")} <= known


def test_every_page_of_the_manual_is_in_its_contents() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        assert isinstance(parts, Iterable)
        return [page for part in parts for page in pages(part)]

    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    there = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(there), "add the page to nav in mkdocs.yml"
