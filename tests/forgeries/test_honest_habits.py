"""What people do with an honest run, of any kind, accuses nobody: it is copied, looked at, cleaned up, judged."""

import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import LITTER, command, copied, nudged
from honest_runs import HONEST

from tradeassay.core.hashing import sha256_file

SEASONS = ("arena", "amended")
"""These lie in a database, not in a folder."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Return the honest run of a kind; it is made once."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = HONEST[kind](tmp_path_factory.mktemp(kind))
        return made[kind]

    return of


def looked_at_by_a_desktop(run):
    for folder in (run.path.parent, run.path, *(place for place in run.path.rglob("*") if place.is_dir())):
        for name in LITTER:
            (folder / name).write_bytes(b"\0\0\0\1Bud1")


def without_a_page(run):
    (run.path / "report.html").unlink()


def without_times(run):
    (run.path / "timing.json").unlink()
    (run.path / ".lock").unlink(missing_ok=True)


def judged(run):
    assert command("assay", run.path, "--portfolios", "100")[0] in (0, 1, 2)  # of programs there is none


def judged_and_cleaned_up(run):
    judged(run)
    (run.path / "assay.json").unlink(missing_ok=True)


def judged_and_run_again(run):
    judged(run)
    shutil.copytree(run.path, run.path.parent / "again")


def with_windows_line_ends(run):
    for file in run.path.rglob("*.json*"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))


def scored_by_another_numpy(run):
    without_a_page(run)
    run.scores(lambda found: found.update(nudged(found, 1e-11)))
    if (run.path / "assay.json").is_file():  # it was made there, of these scores
        run.write("assay.json", {**run.read("assay.json"), "scores_sha256": sha256_file(run.path / "scores.json")})


def renamed(run):
    run.path = run.path.rename(run.path.with_name("mine"))


def written_anew(run):
    assert command("report", run.path)[0] in (0, 2)  # without the venue there is no page


HABITS = (
    *(looked_at_by_a_desktop, without_a_page, without_times, judged, judged_and_cleaned_up, judged_and_run_again),
    *(with_windows_line_ends, scored_by_another_numpy, renamed, written_anew),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in HONEST if kind not in SEASONS])
@pytest.mark.timeout(1200)
def test_habits_accuse_nobody(kind, honest, tmp_path):
    accused = []
    for habit in HABITS:
        place = tmp_path / habit.__name__ / "runs"
        place.mkdir(parents=True)
        run = copied(honest(kind), place)
        for record in honest(kind).parent.glob("*.json"):  # of memory, which a runner keeps beside the run
            shutil.copy(record, place)
        habit(run)
        status, said = command("verify", run.path, "--workers", "1")
        wanted = (2,) if habit is with_windows_line_ends else (0, 3)
        if status not in wanted or re.search("contradicted", said.replace("nothing is contradicted", ""), re.I):
            accused.append((habit.__name__, status, said))
    assert not accused, accused
