"""What importing costs, seen from a fresh interpreter."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import tradeassay

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


def test_every_name_that_a_package_offers_is_there() -> None:
    """Names that are loaded on use must not point at a file that has moved."""
    missing = []
    for found in pkgutil.walk_packages(tradeassay.__path__, "tradeassay."):
        if found.ispkg:
            package = importlib.import_module(found.name)
            missing += [
                f"{found.name}.{name}" for name in getattr(package, "__all__", ()) if not hasattr(package, name)
            ]
    assert not missing
