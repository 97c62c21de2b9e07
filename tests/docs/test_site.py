"""The manual builds, is short enough, and its generated pages are what the code says; scripts can be read."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 65_000


@pytest.mark.parametrize("script", ["cli_page", "api_index"])
def test_a_generated_page_is_current(script):
    spec = importlib.util.spec_from_file_location(script, ROOT / "scripts" / f"{script}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.render(), f"run: .venv/bin/python scripts/{script}.py"


def test_the_manual_can_be_read_in_a_day():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    words = {page.relative_to(ROOT): len(page.read_text().split()) for page in pages}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda one: -one[1])[:5]


def test_shell_can_read_every_script():
    scripts = [file for file in (ROOT / "scripts").iterdir() if not file.suffix and file.is_file()]
    assert len(scripts) >= 5
    for file in scripts:
        assert subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True).stderr == "", file.name


@pytest.mark.slow
def test_the_manual_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
