"""Forgers who recompute every hash: each lie of the list is contradicted, or named in words of its own.

An exit status of 1 contradicts; 2 refuses what cannot be a run. Otherwise the output must hold the words that the
list gives, which say what was forged. Honest runs, and honest runs that were only written again with the forger's
tools, are never contradicted."""

import fcntl
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forgery_list import FORGERIES
from forging import command, copied
from honest_runs import HONEST

SLOW_BASES = ("quantcode", "generated", "systrade", "trained", "recalled")
"""Every verification examines their programs again, or what a model remembers."""
SCREEN = 24
"""Lines, of 80 columns each: an honest run's verification is read at a glance."""
MANY = ("arena", "recorded", "rule")
"""Of these every fourth forgery is tried by default, of the others every second; make test-all tries all."""


def _case(number, forgery):
    slow = forgery.base in SLOW_BASES or number % (4 if forgery.base in MANY else 2)
    return pytest.param(forgery, id=f"{forgery.base}: {forgery.name}", marks=[pytest.mark.slow] if slow else [])


@pytest.fixture(scope="session")
def honest(tmp_path_factory):
    """Return the honest run of a kind; it is made once, by whichever worker needs it first."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def of(base):
        root = shared / f"honest-{base}"
        with (shared / f"honest-{base}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / "path").exists():
                root.mkdir()
                (root / "path").write_text(str(HONEST[base](root)))
        return Path((root / "path").read_text())

    return of


def verified(path):
    """Verify as a user would; lines of progress, which depend on the clock, are left out."""
    status, said = command("verify", path, *(("--workers", "1") if path.is_dir() else ()))
    return status, re.sub(r"^\d+ of \d+ episodes .*\n", "", said, flags=re.M)


def placed(source, tmp_path):
    """Copy a run to where a forger works on it, alone in its folder of runs."""
    parent = tmp_path / "runs" if source.is_dir() else tmp_path
    parent.mkdir(exist_ok=True)
    run = copied(source, parent)
    for record in source.parent.glob("*.json"):  # of memory, which a runner keeps beside the run
        shutil.copy(record, parent)
    run.root = tmp_path
    return run


@pytest.mark.parametrize("forgery", [_case(*one) for one in enumerate(FORGERIES)])
def test_a_forgery_is_contradicted_or_named(forgery, honest, tmp_path):
    run = placed(honest(forgery.base), tmp_path)
    status, said = forgery.forge(run) or verified(run.path)
    said = " ".join(said.split())
    assert status in (0, 1, 2, 3), said
    assert "Traceback" not in said
    named = bool(forgery.words) and re.search(forgery.words, said)
    assert status == 1 or named or (status == 2 and not forgery.words), said


@pytest.mark.parametrize(
    "base", [pytest.param(b, marks=[pytest.mark.slow] if b in SLOW_BASES else []) for b in HONEST]
)
def test_the_honest_run_is_not_accused(base, honest, tmp_path):
    run = placed(honest(base), tmp_path)
    status, said = verified(run.path)
    assert status in (0, 3), said
    lines = [line.rstrip() for line in said.splitlines()]
    assert lines[0].startswith(str(run.path))
    assert sum(max(1, -(-len(line) // 80)) for line in lines) <= SCREEN, said
    run.keeps_page = True  # what is written again is as it was
    if run.path.is_dir():
        with run.manifest():
            pass
        for folder in (run.path / "episodes").iterdir():
            with run.journal(folder.name):
                pass
        for cassette in (run.path / "models").glob("*"):
            with run.lines(cassette):
                pass
    assert verified(run.path) == (status, said)


def test_an_honest_assay_is_made_again(honest, tmp_path):
    run = placed(honest("rule"), tmp_path)
    assert command("assay", run.path, "--portfolios", "100")[0] == 0
    status, said = verified(run.path)
    assert (status, bool(re.search("re-derived: .*assay", said))) == (0, True), said
    shutil.copytree(run.path, run.path.parent / "later")  # a run beside it counts as a try
    assert verified(run.path)[0] == 0


def test_the_list_is_long_enough():
    assert len({(one.base, one.name) for one in FORGERIES}) == len(FORGERIES) >= 200
    assert {one.base for one in FORGERIES} == set(HONEST)
