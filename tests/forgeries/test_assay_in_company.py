"""An assay of a run that is not alone in its folder, or whose leaks were tested.

What the assay takes from outside the run is excused, and nothing else."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import Forged, command
from honest_runs import play

ASSAY = ("--portfolios", "100")
DAYS = ("--first", "2022-01-10", "--last", "2022-04-12")
"""Long enough for tests of an edge, so that the number of tries moves intervals and sentences."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return the folder of two runs; the first was judged while it was alone."""
    root = tmp_path_factory.mktemp("company")
    first = play(root, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *DAYS, "--slug", "first")
    assert command("assay", first, *ASSAY)[0] == 0
    play(root, "run", "daily-us-v1", "-a", "random", *DAYS, "--slug", "second")
    return root


@pytest.fixture
def run(judged, tmp_path):
    """Return a copy of the judged run, with the second run beside it."""
    shutil.copytree(judged / "runs", tmp_path / "runs")
    return Forged(tmp_path / "runs" / "first", tmp_path)


def verified(run):
    status, said = command("verify", run.path, "--workers", "1")
    return status, " ".join(said.split())


def assayed(run):
    """Return the assay to be edited, without the page that a forger would write anew."""
    (run.path / "report.html").unlink(missing_ok=True)
    found = run.read("assay.json")
    (one,) = [one for one in found["assay"]["agents"] if not one["baseline"]]
    return found, one


def test_an_honest_assay_is_re_derived_after_a_second_run(run):
    status, said = verified(run)
    assert (status, "re-derived: " in said, "assay" in said) == (0, True, True), said
    assert "assay.json allows for 0 other tries in its folder, there is 1 now" in said


def test_the_assay_of_two_runs_is_re_derived_where_it_lies_alone(run):
    assert command("assay", run.path, *ASSAY)[0] == 0
    assert assayed(run)[1]["trials"]["found"] == 1
    status, said = verified(run)
    assert (status, "tries in" in said) == (0, False), said
    shutil.rmtree(run.path.parent / "second")
    status, said = verified(run)
    assert (status, "tries in" in said) == (0, False), said


def a_skilled_verdict(one):
    one["verdict"].update(kind="skill", label="skill supported", firm=True)
    one["verdict"]["sentence"] = "Skill is supported: +40 % a year beyond market and style."


def a_doubled_curve(one):
    one["curve"]["account"] = [2.0 * value for value in one["curve"]["account"]]


def a_doubled_edge(one):
    one["edge"]["tested"]["value"] *= 2.0


def no_limits(one):
    one["verdict"]["limits"] = []


FORGED = (a_skilled_verdict, a_doubled_curve, a_doubled_edge, no_limits)


@pytest.mark.parametrize("edit", FORGED, ids=lambda edit: edit.__name__)
def test_a_forged_assay_is_contradicted_beside_a_second_run(run, edit):
    found, one = assayed(run)
    edit(one)
    run.write("assay.json", found)
    status, said = verified(run)
    assert status == 1 and "assay" in said, said


@pytest.mark.parametrize("edit", FORGED, ids=lambda edit: edit.__name__)
def test_a_leak_test_that_was_claimed_excuses_nothing_else(run, edit):
    found, one = assayed(run)
    one["leaks"]["tested"] = True
    edit(one)
    run.write("assay.json", found)
    status, said = verified(run)
    assert status == 1 and "assay" in said, said


def test_tries_that_no_folder_could_have_are_contradicted(run):
    for lie in ({"found": 0, "effective": 40.0}, {"found": -1}, {"found": 3, "effective": 0.5}, {"here": 9}):
        found, one = assayed(run)
        one["trials"].update(lie)
        run.write("assay.json", found)
        status, said = verified(run)
        assert status == 1, (lie, said)


def test_an_honest_leak_test_is_what_cannot_be_checked(run):
    assert command("assay", run.path, *ASSAY, "--leak-sessions", "3")[0] == 0
    assert assayed(run)[1]["leaks"]["tested"] is True
    status, said = verified(run)
    assert status == 3 and "leak test" in said, said
    found, one = assayed(run)
    a_doubled_curve(one)
    run.write("assay.json", found)
    status, said = verified(run)
    assert status == 1 and "curve" in said, said


@pytest.mark.parametrize(
    "lie",
    [
        {"sentence": "No leak was found in 10,000 sessions."},
        {"bound": 0.0001},
        {"findings": ["bars"]},
        {"tested": True},
        {"tested": True, "bound": 0.0001, "sentence": "No leak was found in 10,000 sessions."},
    ],
    ids=lambda lie: "+".join(lie),
)
def test_a_leak_test_that_no_run_of_this_length_can_have_is_contradicted(run, lie):
    found, one = assayed(run)
    one["leaks"].update(lie)
    run.write("assay.json", found)
    status, said = verified(run)
    assert status == 1 and "leak test" in said, said


def test_a_leak_test_is_not_made_longer(run):
    assert command("assay", run.path, *ASSAY, "--leak-sessions", "3")[0] == 0
    for edit in ({"bound": 0.01}, {"sentence": "No leak was found."}, {"findings": ["bars"]}):
        found, one = assayed(run)
        one["leaks"].update(edit)
        run.write("assay.json", found)
        status, said = verified(run)
        assert status == 1 and "leak test" in said, (edit, said)
