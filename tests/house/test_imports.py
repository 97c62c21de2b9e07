"""What importing costs, seen from a fresh interpreter."""

import subprocess
import sys

import pytest

HEAVY = (
    "pandas",
    "inspect_ai",
    "numba",
    "pyarrow",
    "polars",
    "scipy",
    "plotly",
    "exchange_calendars",
    "rich",
    "ray",
)


@pytest.mark.parametrize("module", ["tradeassay", "tradeassay.cli"])
def test_importing_is_cheap(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, tradeassay.cli; tradeassay.cli.main(['--help']); "
        f"print('HEAVY', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "HEAVY"
