"""Forgers who recompute every hash: each lie of the list is contradicted, or named in words of its
own.

An exit status of 1 contradicts; 2 refuses what cannot be a run. Otherwise the output must hold the
words that the list gives, which say what was forged. Honest runs are never contradicted, whatever
people do with them.
"""

import fcntl
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forgery_list import CLAIMS, FORGERIES, untouched
from forging import LITTER, command, copied, nudged
from honest_runs import HONEST

SCREEN = 24
"""Lines, of 80 columns each: an honest run's verification is read at a glance."""
FIRST = {titles[0] for titles in CLAIMS.values()}
"""One forgery of every claim is tried by make test, the others by make test-journeys."""


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


def cases():
    for one in FORGERIES:
        title = f"{one.base}: {one.name}"
        yield pytest.param(one, id=title, marks=[] if title in FIRST else [pytest.mark.journey])


@pytest.mark.parametrize("forgery", list(cases()))
def test_a_forgery_is_contradicted_or_named(forgery, honest, tmp_path):
    run = placed(honest(forgery.base), tmp_path)
    status, said = forgery.forge(run) or verified(run.path)
    said = " ".join(said.split())
    assert status in (0, 1, 2, 3), said
    assert "Traceback" not in said
    named = bool(forgery.words) and re.search(forgery.words, said)
    assert status == 1 or named or (status == 2 and not forgery.words), said


def test_every_forgery_of_the_list_belongs_to_one_claim():
    listed = [title for titles in CLAIMS.values() for title in titles]
    assert sorted(listed) == sorted(f"{one.base}: {one.name}" for one in FORGERIES)
    assert {one.base for one in FORGERIES} == set(HONEST)


def written_again(run):
    """Write everything again with the forger's tools."""
    run.keeps_page = True
    with run.manifest():
        for folder in (run.path / "episodes").iterdir():
            with run.journal(folder.name):
                pass
        for recording in (run.path / "models").glob("*"):
            with run.lines(recording):
                pass


def looked_at_by_a_desktop(run):
    for folder in (run.path, *(place for place in run.path.rglob("*") if place.is_dir())):
        (folder / "__MACOSX").mkdir()
        for name in LITTER:
            (folder / name).write_bytes(b"\0\0\0\1Bud1")


def without_page_and_times(run):
    for name in ("report.html", "timing.json", ".lock"):
        (run.path / name).unlink(missing_ok=True)


def judged(run, *words):
    status, _ = command("assay", run.path, "--portfolios", "100", *words)
    assert status in (0, 1, 2)  # of programs there is none


def judged_and_cleaned_up(run):
    judged(run)
    (run.path / "assay.json").unlink(missing_ok=True)


def judged_and_run_again(run):
    judged(run)
    shutil.copytree(run.path, run.path.parent / "again")


def with_leak_test(run):
    judged(run, "--leak-sessions", "3")


def checked_out_on_windows(run):
    for file in run.path.rglob("*.json*"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))


def scored_by_another_numpy(run):
    for name in ("report.html", "assay.json"):
        (run.path / name).unlink(missing_ok=True)
    run.scores(lambda found: found.update(nudged(found, 1e-11)))


def decided_by_another_processor(run):
    for folder in (run.path / "episodes").iterdir():
        with run.journal(folder.name) as lines:
            lines[:] = [{**line, "decision": nudged(line["decision"], 1e-11)} for line in lines]


def examined_by_another_numpy(run):
    for folder in (run.path / "episodes").iterdir():
        with run.journal(folder.name, rescore=False) as lines:
            lines[:] = nudged(lines, 1e-11)
        with run.outcome(folder.name) as end:
            end.update(nudged(end, 1e-11))


def renamed(run):
    run.path = run.path.rename(run.path.with_name("mine"))


HABITS = [untouched, written_again, looked_at_by_a_desktop, without_page_and_times, renamed]
HABITS += [judged, judged_and_cleaned_up, judged_and_run_again, checked_out_on_windows]
HABITS += [scored_by_another_numpy]
OF_TRADERS = [with_leak_test, decided_by_another_processor]
OF_PROGRAMS = ("quantcode", "systrade", "generated")


def habits():
    for base in HONEST:
        of_its_kind = [*HABITS, *OF_TRADERS]
        if base == "arena":
            of_its_kind = [untouched]
        elif base == "venue":  # other decisions cannot be scored again without the venue
            of_its_kind = [*HABITS, with_leak_test]
        elif base in OF_PROGRAMS:
            of_its_kind = [*HABITS, examined_by_another_numpy]
        for habit in of_its_kind:
            quick = habit is untouched and base in ("rule", "masked", "arena")
            marks = [] if quick else [pytest.mark.journey]
            yield pytest.param(base, habit, id=f"{base}: {habit.__name__}", marks=marks)


@pytest.mark.parametrize(("base", "habit"), list(habits()))
def test_an_honest_run_is_not_accused(base, habit, honest, tmp_path):
    run = placed(honest(base), tmp_path)
    habit(run)
    status, said = verified(run.path)
    if habit is checked_out_on_windows:
        assert (status, "Windows line ends (CRLF)" in said) == (2, True), said
    else:
        assert status in (0, 3), said
    assert not re.search("contradicted", said.replace("nothing is contradicted", ""), re.I), said
    if habit is untouched:
        lines = (line.rstrip() for line in said.splitlines())
        assert sum(max(1, -(-len(line) // 80)) for line in lines) <= SCREEN, said
