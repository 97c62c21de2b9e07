"""The instrument works with its own few dependencies, and names the extra that a file needs."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
MOST_DEPENDENCIES = {"click", "jinja2", "msgspec", "numpy", "pandas", "rich", "scipy"}
ALONE = """
import json, sys
from importlib.machinery import PathFinder

class Alone:
    hidden = frozenset(json.loads(sys.argv[1]))

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.hidden:
            return None
        return PathFinder.find_spec(name, path, target)

    @staticmethod
    def find_distributions(*context):
        found = PathFinder.find_distributions(*context)
        return (one for one in found if not one.name.startswith("tradeassay-"))

sys.meta_path[:] = [Alone if one is PathFinder else one for one in sys.meta_path]
from tradeassay.__main__ import main
sys.argv = ["tradeassay", *sys.argv[2:]]
sys.exit(main())
"""


def declared() -> list[str]:
    """Return the requirements of the instrument without any extra."""
    text = (ROOT / "packages/tradeassay/pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["dependencies"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower()


def needed() -> set[str]:
    """Return the packages that the instrument needs, and what these need."""
    found: set[str] = set()
    waiting = [name_of(requirement) for requirement in declared()]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # on another system
            continue
        waiting += [name_of(one) for one in requirements if "extra ==" not in one]
    return found


def modules_of(name: str) -> set[str]:
    """Return the names of a package's modules and folders at the top."""
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        return set()
    return {file.parts[0].partition(".")[0] for file in files}


@pytest.fixture(scope="module")
def hidden() -> list[str]:
    """Return every module of this environment that the instrument does not bring."""
    kept = {module for name in needed() for module in modules_of(name)}
    site = Path(str(metadata.distribution("numpy").locate_file("")))
    there = {path.name.partition(".")[0] for path in site.iterdir()}
    others = {"tradeassay_bench", "tradeassay_programs", "tradeassay_arena"}
    return sorted((there | others) - kept - {"tradeassay", ""})


def alone(hidden, folder, *words):
    return subprocess.run(
        [sys.executable, "-c", ALONE, json.dumps(hidden), *words],
        cwd=folder,
        env={**os.environ, "TRADEASSAY_HOME": str(folder / "home"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )


def test_the_instrument_requires_few_packages(hidden):
    assert {name_of(requirement) for requirement in declared()} == MOST_DEPENDENCIES
    assert {"pyarrow", "openpyxl", "charset_normalizer", "tradeassay_bench"} <= set(hidden)


def test_a_csv_is_judged_with_its_page(hidden, tmp_path):
    days = np.arange("2022-01-03", "2024-01-01", dtype="datetime64[D]")
    days = days[np.is_busday(days)]
    returns = np.random.default_rng(7).normal(0.0005, 0.01, days.size)
    rows = [f"{day},{value:.6f}" for day, value in zip(days, returns, strict=True)]
    (tmp_path / "returns.csv").write_text("\n".join(["date,return", *rows]))
    done = alone(hidden, tmp_path, "assay", "returns.csv")
    assert done.returncode == 0, done.stderr
    assert "returns returned" in done.stdout
    assert (tmp_path / "returns-assay.html").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("file", "content", "package"),
    [
        ("returns.parquet", b"PAR1", "pyarrow"),
        ("returns.xlsx", b"PK\x03\x04", "openpyxl"),
    ],
)
def test_other_files_name_their_extra(hidden, tmp_path, file, content, package):
    (tmp_path / file).write_bytes(content)
    done = alone(hidden, tmp_path, "assay", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert f"needs the package '{package}', which is not installed" in done.stderr
    assert "pip install 'tradeassay[files]'" in done.stderr
