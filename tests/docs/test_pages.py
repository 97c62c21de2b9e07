"""The pages are true: their links resolve, their commands run, their Python runs.

In a page, a fenced block tagged ``console`` holds commands after ``$ ``; one tagged ``python`` is
executed. Any other block with commands says in a comment before it what it needs that a test lacks:
``<!-- needs: a key -->``. One with a title (``title="mine.py"``) is the file of that name, and
``<!-- beside: server.py -->`` means that such a file is running meanwhile.

Pages of concepts and reference are run each in an empty folder; their Python in this process, and
among the slow tests each block in one of its own. README, tutorial and how-tos are run as a reader
would: in their order, in one folder, with one data home, by the shell, with ``tradeassay`` on the
PATH.
"""

import importlib
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click
import pytest

from tradeassay.cli import main, root
from tradeassay.core.registry import Registry
from tradeassay_bench.benchmarks.exhibits import EXTRA_EXHIBITS as EVERYWHERE, PAPERS, exhibits

ROOT = Path(__file__).resolve().parents[2]
GUIDES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs/tutorial").glob("*.md")),
    *sorted((ROOT / "docs/howto").glob("*.md")),
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [
    *PAGES,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")),
]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"```python title=\"([\w.]+)\"")
BESIDE = re.compile(r"<!-- beside: ([\w.]+) -->\s*$")
NEEDS = re.compile(
    r"<!-- needs: (network|a key|a server|a GPU|Docker|qlib|your own data|your own program|a "
    r"run|time) -->\s*$"
)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
COMMAND = re.compile(
    r"^(\$ )?(tradeassay|pip|make|docker|git|inspect|curl|export|vllm|python [\w./]+\.py)\b"
    r"|^(from tradeassay[\w.]* import|import tradeassay|with \w+\()",
    re.MULTILINE,
)
GENERATED = ROOT / "docs/reference/cli.md"


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Return each block's tag and body, and what it needs."""
    text, found = page.read_text(), []
    for match in BLOCK.finditer(text):
        needs = NEEDS.search(text[: match.start()])
        found.append((match.group(1), match.group(2), needs.group(1) if needs else ""))
    return found


def script(body: str) -> str:
    """Return the commands of a console block: lines after ``$ `` and the lines that continue
    them.
    """
    lines, goes_on = [], False
    for line in body.splitlines():
        if line.startswith("$ ") or goes_on:
            lines.append(line.removeprefix("$ "))
            goes_on = line.rstrip().endswith("\\")
    return "\n".join(lines)


def test_links_lead_somewhere():
    for page in LINKED:
        assert not [
            to for to in LINK.findall(page.read_text()) if not (page.parent / to).exists()
        ], page


def test_every_command_is_run_or_says_what_it_needs():
    told: Counter[str] = Counter()
    for page in PAGES:
        for tag, body, needs in blocks(page) if page != GENERATED else ():
            if tag in ("console", "python"):
                assert not needs, f"{page.name}: a block that is run needs nothing"
                told["run"] += 1
            elif COMMAND.search(body) and tag != "yaml":
                assert needs, f"{page.name}: run it, or say what it needs:\n{body}"
                told[needs] += 1
    assert told["run"] > 1.5 * sum(count for what, count in told.items() if what != "run"), told


def test_what_is_not_run_names_commands_options_and_imports_that_exist():
    wrong = []
    for page in (*PAGES, ROOT / "examples/README.md"):
        for _, body, needs in blocks(page):
            for line in body.replace("\\\n", " ").splitlines() if needs else ():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words[:1] == ["tradeassay"]:
                    wrong += [f"{page.name}: {line}: {fault}" for fault in _misspelled(words[1:])]
                if (
                    found := re.match(r"from (tradeassay[\w.]*) import ([\w, ]+)$", line)
                ) is not None:
                    module = importlib.import_module(found[1])
                    names = [name.strip() for name in found[2].split(",")]
                    wrong += [f"{page.name}: {line}" for name in names if not hasattr(module, name)]
    assert not wrong, "\n".join(wrong)


def _misspelled(words: list[str]) -> list[str]:
    """Return what a command line names that the command does not have."""
    command: click.Command = root
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if command.name == "assay" and words[0] not in command.commands:
            words = ["file" if "." in words[0] else "run", *words]
        name, *words = words
        if (found := command.get_command(click.Context(command), name)) is None:
            return [f"no command {name}"]
        command = found
    known = {
        spelling for option in command.params for spelling in (*option.opts, *option.secondary_opts)
    }
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return [f"no option {name}" for name in sorted(given - known - {"--help"})]


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


RUN = [page for page in PAGES if any(tag in ("console", "python") for tag, *_ in blocks(page))]
every_page_with_blocks = pytest.mark.parametrize(
    "page",
    [page for page in RUN if page not in GUIDES],
    ids=lambda page: str(page.relative_to(ROOT)),
)


@pytest.mark.journey
@pytest.mark.slow_for(
    "docs/reference/metrics.md",
    "docs/reference/python-api.md",
    "docs/reference/stockbench.md",
    "docs/reference/venues.md",
)
@every_page_with_blocks
def test_what_a_page_says_works(page, tmp_path, home, monkeypatch, registries_as_they_were):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))
    for tag, body, _ in blocks(page):
        if tag == "python":
            exec(compile(body, page.name, "exec"), {"__name__": "__main__"})
        elif tag == "console":
            for line in script(body).replace("\\\n", " ").splitlines():
                command, *words = shlex.split(line, comments=True)
                assert command == "tradeassay", line
                assert main(words) == 0, line


@pytest.fixture
def registries_as_they_were(monkeypatch):
    """Take back what a page's own code registers; what the package registers on import stays."""
    of_pages: list[tuple[Registry[object], str]] = []
    add = Registry.add

    def noted(registry: Registry[object], name: str, item: object) -> None:
        add(registry, name, item)
        caller = sys._getframe(1)
        while caller.f_globals["__name__"] == Registry.__module__ and caller.f_back is not None:
            caller = caller.f_back
        if caller.f_globals["__name__"] == "__main__":
            of_pages.append((registry, name))

    monkeypatch.setattr(Registry, "add", noted)
    yield
    for registry, name in of_pages:
        del registry._items[name]


@pytest.mark.slow
@every_page_with_blocks
def test_what_a_page_says_works_by_itself(page, tmp_path, home):
    _follow([page], tmp_path, home)


@pytest.mark.slow
@pytest.mark.timeout(
    4 * 3600
)  # a quarter of an hour of CPU, on a machine that may have little to give
def test_a_reader_who_follows_the_guides_in_order_gets_to_the_end(tmp_path):
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "tradeassay").symlink_to(ROOT)
    _follow(GUIDES, folder, tmp_path / "home", keep_going=True)


@pytest.mark.journey
def test_the_page_about_own_agents_is_played_with_a_server_of_ours(tmp_path, home, monkeypatch):
    """Classes, programs on pipes and servers play as the page says; its arena is among the slow
    tests.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))
    text = (ROOT / "docs/howto/bring-your-own-agent.md").read_text().partition("## In the arena")[0]
    for found in BLOCK.finditer(text):
        tag, body = found.groups()
        beside = BESIDE.search(text[: found.start()])
        if (title := TITLE.match(found.group())) is not None:
            (tmp_path / title[1]).write_text(body)
        elif tag == "console":
            with (
                nullcontext() if beside is None else _beside(tmp_path, beside[1], dict(os.environ))
            ):
                for line in script(body).splitlines():
                    assert main(shlex.split(line)[1:]) == 0, line


@contextmanager
def _beside(folder: Path, name: str, env: dict[str, str]) -> Iterator[None]:
    """Run a page's server on the port that it names, until the block has been followed."""
    [port] = re.findall(r'"127.0.0.1", (\d+)', (folder / name).read_text())
    server = subprocess.Popen(
        [sys.executable, name], cwd=folder, env=env, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", int(port))) == 0:
                    break
            time.sleep(0.1)
        assert server.poll() is None, "the server ended"
        yield
    finally:
        server.kill()
        server.wait()


def _follow(pages: list[Path], folder: Path, home: Path, *, keep_going: bool = False) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    env = {**os.environ, "TRADEASSAY_HOME": str(home), "NO_COLOR": "1", "PATH": path}
    wrong = []
    for page in pages:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            tag, body = found.groups()
            if (title := TITLE.match(found.group())) is not None:
                (folder / title[1]).write_text(body)
                continue
            if tag not in ("python", "console"):
                continue
            shown = body if tag == "python" else script(body)
            shell = [sys.executable] if tag == "python" else ["bash", "-euo", "pipefail"]
            beside = BESIDE.search(text[: found.start()])
            with nullcontext() if beside is None else _beside(folder, beside[1], env):
                done = subprocess.run(
                    [*shell, "-c", shown], cwd=folder, env=env, capture_output=True, text=True
                )
            if done.returncode != 0:
                wrong.append(
                    f"{page.name}\n{shown[:600]}\n{done.stdout[-800:]}\n{done.stderr[-1500:]}"
                )
                assert keep_going, wrong[0]
    assert not wrong, f"{len(wrong)} blocks fail:\n\n" + "\n\n".join(wrong)


def test_the_page_of_papers_lists_what_reproduce_makes():
    text = (ROOT / "docs/reference/papers.md").read_text()
    parts = [part for part in re.split(r"(?m)^## ", text)[1:] if "| exhibit |" in part]
    listed = [re.findall(r"(?m)^\| ([^|]+?) \| (?:filled|not made)", part) for part in parts]
    made = {paper: exhibits(paper)[: -len(EVERYWHERE)] for paper in PAPERS}
    assert listed == [[one.number for one in made[paper]] for paper in PAPERS]
    for paper, part in zip(PAPERS, parts, strict=True):
        for one in made[paper]:
            assert bool(one.without) == (f"| {one.number} | not made" in part), (paper, one.number)
