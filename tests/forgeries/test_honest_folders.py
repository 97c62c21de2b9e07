"""An honest run that was copied, packed, synchronised or checked out is accused of nothing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import LITTER, command
from honest_runs import play

DAYS = ("--first", "2022-01-10", "--last", "2022-04-12")


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return the folder of a judged run of a model and of a rule."""
    root = tmp_path_factory.mktemp("honest")
    words = ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", "-m", "scripted/sensible", *DAYS)
    run = play(root, *words, "--slug", "honest")
    assert command("assay", run, "--portfolios", "100")[0] == 0
    return run


@pytest.fixture
def run(judged, tmp_path):
    return Path(shutil.copytree(judged, tmp_path / "runs" / "honest"))


def verified(run):
    status, said = command("verify", run, "--workers", "1")
    return status, " ".join(said.split())


def folders(run):
    return [run, run / "episodes", run / "models", *(run / "episodes").iterdir()]


@pytest.mark.parametrize("name", LITTER)
def test_what_a_desktop_leaves_behind_accuses_nobody(run, name):
    for folder in (run.parent, *folders(run)):
        (folder / name).write_bytes(b"\0\0\0\1Bud1")
    status, said = verified(run)
    assert status == 0 and name not in said, said


def test_folders_of_drives_archives_and_editors_accuse_nobody(run):
    for folder in (run.parent, *folders(run)):
        for name in ("__MACOSX", "@eaDir", ".ipynb_checkpoints", ".svn", "$RECYCLE.BIN", "empty"):
            (folder / name).mkdir()
            if name != "empty":
                (folder / name / "entries").write_text("12")
    status, said = verified(run)
    assert status == 0 and "episodes/@eaDir belongs to no episode" in said, said


def test_a_stranger_among_the_episodes_is_named_and_a_strange_episode_is_wrong(run):
    (run / "episodes" / "notes.txt").write_text("my notes")
    status, said = verified(run)
    assert status == 0 and "episodes/notes.txt" in said, said
    shutil.copytree(next((run / "episodes").glob("*momentum*")), run / "episodes" / "hidden")
    status, said = verified(run)
    assert status == 1 and "hidden belongs to no episode of this run" in said, said


def test_a_site_that_a_desktop_looked_at_is_still_that_of_its_runs(run, tmp_path):
    site = tmp_path / "site"
    assert command("site", run.parent, "-o", site, "--workers", "1")[0] == 0
    for folder in [site, *(place for place in site.rglob("*") if place.is_dir())]:
        (folder / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    status, said = command("verify", site, "--runs", run.parent, "--workers", "1")
    assert status == 0, said


def test_an_assay_that_was_deleted_accuses_nobody(run):
    (run / "assay.json").unlink()
    status, said = verified(run)
    assert status == 3 and "CONTRADICTED" not in said, said
    assert "report.html shows an assay, and assay.json is not here" in said
    assert f"tradeassay assay {run}" in said


@pytest.mark.parametrize("lie", ["return", "who"])
def test_a_page_is_not_excused_by_an_assay_that_was_deleted(run, lie):
    (run / "assay.json").unlink()
    page = run / "report.html"
    text = page.read_text()
    scores = json.loads((run / "scores.json").read_bytes())
    (row,) = [row for row in scores["agents"] if "sensible" in row["agent"]]
    value = row["measures"]["cumulative_return"]["median"]["value"]
    told = f"{abs(value):.1%}" if lie == "return" else "scripted/sensible"
    assert told in text
    page.write_text(text.replace(told, "999.0%" if lie == "return" else "openai/gpt-9"))
    status, said = verified(run)
    assert status == 1 and "page" in said, said


def git(place, *words):
    subprocess.run(["git", "-C", place, *words], check=True, capture_output=True)


@pytest.mark.parametrize(("attributes", "status"), [("", 2), ("* -text\n", 0)])
def test_line_ends_that_git_changed_are_named_in_one_line(run, tmp_path, attributes, status):
    origin = run.parent
    git(origin, "init", "-q")
    (origin / ".gitattributes").write_text(attributes)
    git(origin, "-c", "core.autocrlf=false", "add", ".")
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
    git(origin, *who, "commit", "-qm", "A run")
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(origin), "clone")
    came, said = command("verify", tmp_path / "clone" / "honest", "--workers", "1")
    assert came == status, said
    if status == 2:
        (line,) = said.strip().splitlines()
        assert "manifest.json" in line and "Windows line ends (CRLF)" in line
        assert "contradict" not in line.lower() and ".gitattributes" in line
