"""Measure the installation: sizes by package, time of an import and of a command, size of pages.

    python perf/install_size.py [--fresh] [--runs runs/]

Without --fresh the sizes are those of the packages of requirements/runtime.txt in this environment.
With --fresh the runtime is first installed into empty environments (needs the package index). The
limits are 750 MB and 45 s. Then the instrument is installed into an environment with numpy, pandas
and scipy. The limit is 25 MB more.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from machine import conditions

ROOT = Path(__file__).resolve().parents[1]
PIP = ["PYTHON", "-m", "pip", "install", "-q"]


def pinned() -> list[str]:
    """Return the names of the runtime's packages."""
    lines = (ROOT / "requirements" / "runtime.txt").read_text().splitlines()
    return list(dict.fromkeys(line.split("==")[0] for line in lines if re.match(r"[a-z]", line)))


def megabytes(name: str) -> float:
    """Return the size of a package's files, including compiled ones."""
    found = {Path(str(file.locate())).resolve() for file in metadata.files(name) or ()}
    for path in [one for one in found if one.suffix == ".py"]:
        found.update((path.parent / "__pycache__").glob(f"{path.stem}.cpython-*.pyc"))
    return sum(path.stat().st_size for path in found if path.is_file()) / 1e6


def timed(words: list[str]) -> float:
    """Return the best of three wall times of a command."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        best = min(best, time.perf_counter() - began)
    return best


def fresh() -> None:
    """Install the runtime into empty environments, by the Makefile's script and by pip. Prints the
    times.
    """
    packages = sorted(str(path) for path in (ROOT / "packages").iterdir())
    for name, words in (
        (
            "make (scripts/install)",
            [f"{ROOT}/scripts/install", "PYTHON", "requirements/runtime.txt"],
        ),
        ("pip install packages/*", [*PIP, *packages]),
    ):
        with tempfile.TemporaryDirectory() as place:
            site = make_environment(place)
            before, cpu, began = weight(site), sum(os.times()[2:4]), time.perf_counter()
            run_there(place, words)
            took, size = time.perf_counter() - began, weight(site) - before
            cpu = sum(os.times()[2:4]) - cpu
            print(f"{name}: {took:.0f} s, {cpu:.0f} s of CPU, {size:.0f} MB (bars 45 s, 750 MB)")
    with tempfile.TemporaryDirectory() as place:
        site = make_environment(place)
        run_there(place, [*PIP, "numpy", "pandas", "scipy"])
        before = weight(site)
        run_there(place, [*PIP, str(ROOT / "packages" / "tradeassay")])
        beyond = weight(site) - before
        print(f"the instrument: {beyond:.1f} MB beyond numpy, pandas and scipy (bar 25 MB)")


def make_environment(place: str) -> Path:
    """Make an empty virtual environment and return where its packages are installed."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return Path(place) / "lib" / version / "site-packages"


def run_there(place: str, words: list[str]) -> None:
    """Run a command with PYTHON replaced by the environment's Python."""
    python = f"{place}/bin/python"
    subprocess.run([word.replace("PYTHON", python) for word in words], check=True)


def weight(folder: Path) -> float:
    """Return a folder's size in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    asked = parser.parse_args()
    if asked.fresh:
        fresh()
    sizes = sorted(((megabytes(name), name) for name in pinned()), reverse=True)
    print(f"runtime: {sum(size for size, _ in sizes):.0f} MB in {len(sizes)} packages")
    for size, name in sizes[:12]:
        print(f"  {name:22} {size:6.0f} MB")
    for words in (
        ["-c", "pass"],
        ["-c", "import tradeassay"],
        ["-m", "tradeassay", "--help"],
        ["-c", "import tradeassay_bench.api"],
    ):
        print(f"python {' '.join(words):28} {timed([sys.executable, *words]):.2f} s")
    for page in sorted(asked.runs.glob("*/report.html")):
        print(f"{page.parent.name}/report.html: {page.stat().st_size / 1e6:.2f} MB")
    print(conditions())


if __name__ == "__main__":
    main()
