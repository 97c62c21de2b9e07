"""The manual builds, is short enough, and its generated pages are what the code says; scripts
can be read.
"""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 65_000


@pytest.mark.parametrize("name", ["cli_page", "statements_page"])
def test_generated_pages_are_current(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.render(), f"run: .venv/bin/python scripts/{name}.py"


def test_the_api_reference_names_modules_that_exist():
    pages = list((ROOT / "docs/reference/api").glob("*.md"))
    assert len(pages) == len(list((ROOT / "packages").iterdir()))
    for page in pages:
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE):
            importlib.import_module(name)


def test_the_manual_can_be_read_in_a_day():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    words = {page.relative_to(ROOT): len(page.read_text().split()) for page in pages}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda one: -one[1])[:5]


def test_concepts_are_few_and_short():
    pages = list((ROOT / "docs/concepts").rglob("*.md"))
    assert len(pages) <= 25
    assert sum(len(page.read_text().split()) for page in pages) <= 30_000


def test_shell_can_read_every_script():
    scripts = [file for file in (ROOT / "scripts").iterdir() if not file.suffix and file.is_file()]
    assert len(scripts) >= 5
    for file in scripts:
        assert (
            subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True).stderr == ""
        ), file.name


@pytest.mark.slow
def test_the_manual_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
