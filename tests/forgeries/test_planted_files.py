"""Files that somebody planted in the data home decide nothing that is shown."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import Forged, command
from honest_runs import play

import tradeassay
from tradeassay.core.files import data_home

DAYS = ("--first", "2022-01-10", "--last", "2022-04-12")
LIE = "skill supported by forgers"


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    root = tmp_path_factory.mktemp("planted")
    run = play(root, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *DAYS, "--slug", "mine")
    assert command("assay", run, "--portfolios", "100")[0] == 0
    return run


@pytest.fixture
def run(judged, tmp_path, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    shutil.copytree(judged, tmp_path / "runs" / "mine")
    return Forged(tmp_path / "runs" / "mine", tmp_path)


def site(run):
    """Return all that a site of the run tells."""
    status, said = command("site", run.path.parent, "-o", run.root / "site", "--workers", "1")
    pages = [
        file.read_text(errors="replace") for file in sorted((run.root / "site").rglob("*.*")) if file.is_file()
    ]
    return status, said + "".join(pages)


def plant(name, content=b""):
    file = data_home() / "verified" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def label(run):
    (one,) = [one for one in run.read("assay.json")["assay"]["agents"] if not one["baseline"]]
    return one["verdict"]["label"]


def test_a_planted_verdict_verifies_nothing(run):
    def lie(found):
        for row in found["agents"]:
            row["measures"]["cumulative_return"]["median"]["value"] = 9.99

    run.scores(lie)
    status, said = command("seal", run.path, "-o", run.root / "forged.seal")
    root = said.strip().splitlines()[-1]
    assert status == 0 and len(root) == 64
    verdict = {"root": root, "word": "verified", "why": [], "version": tradeassay.__version__}
    plant(f"{root}.json", json.dumps(verdict).encode())
    status, told = site(run)
    assert status != 0 and "contradicted" in told and "+999" not in told


def test_a_planted_mark_vouches_for_no_forged_assay(run):
    found = run.read("assay.json")
    for one in found["assay"]["agents"]:
        one["verdict"]["label"] = LIE
    run.write("assay.json", found)
    plant(f"{hashlib.sha256((run.path / 'assay.json').read_bytes()).hexdigest()}.made")
    status, told = site(run)
    assert status == 0 and LIE not in told
    assert command("report", run.path, "-o", run.root / "page.html")[0] == 0
    assert LIE not in (run.root / "page.html").read_text()


def test_an_assay_that_can_be_made_again_is_shown_wherever_it_was_made(run):
    assert not (data_home() / "verified").exists()
    status, told = site(run)
    assert status == 0 and f'"verdict": "{label(run)}"' in told
    assert command("verify", run.root / "site", "--runs", run.path.parent, "--workers", "1")[0] == 0


def test_a_leak_test_is_shown_where_it_was_made_and_nowhere_else(run):
    (run.path / "assay.json").unlink()
    assert command("assay", run.path, "--portfolios", "100", "--leak-sessions", "3")[0] == 0
    status, told = site(run)
    assert status == 0 and f'"verdict": "{label(run)}"' in told
    shutil.rmtree(data_home() / "verified")
    shutil.rmtree(run.root / "site")
    status, told = site(run)
    assert status == 0 and f'"verdict": "{label(run)}"' not in told
