"""Other versions of numpy, and other processors, give other last digits: that contradicts nobody.

Numbers that are not equal to 1e-9 of their size are still contradicted."""

import json
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import Forged, command, nudged
from honest_runs import play

from tradeassay.core.hashing import sha256_file

DAYS = ("--first", "2022-01-10", "--last", "2022-04-12")
SMALL, LARGE = 1e-11, 1e-6
RUNS = {
    "rule": ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", *DAYS),
    "programs": ("code", "run", "quantcode-v1", "--model", "scripted/coder-sma", "--task", "d-sma-cross-long"),
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Return a way to a copy of an honest run; each is made once."""
    made = {}

    def of(kind, place):
        if kind not in made:
            root = tmp_path_factory.mktemp(kind)
            made[kind] = play(root, *RUNS[kind], "--slug", "honest")
            if kind == "rule":
                assert command("assay", made[kind], "--portfolios", "100")[0] == 0
        shutil.copytree(made[kind], place / "runs" / "honest")
        return Forged(place / "runs" / "honest", place)

    return of


def verified(run):
    status, said = command("verify", run.path, "--workers", "1")
    return status, " ".join(said.split())


def of_another_numpy(run):
    with run.manifest(rescore=False) as content:
        content["versions"]["packages"]["numpy"] = "1.99.0"


def decisions(run, share):
    """Nudge what a rule decided, and everything that follows from its journal."""
    (run.path / "report.html").unlink(missing_ok=True)
    (run.path / "assay.json").unlink(missing_ok=True)
    changed = 0
    for folder in sorted((run.path / "episodes").iterdir()):
        with run.journal(folder.name) as lines:
            for line in lines:
                moved = nudged(line["decision"], share)
                changed += moved != line["decision"]
                line["decision"] = moved
    assert changed


def results(run, share):
    """Nudge what the examinations of programs gave, in journal and outcome."""
    changed = 0
    for folder in sorted((run.path / "episodes").iterdir()):
        journal, end = folder / "events.jsonl", folder / "outcome.json"
        lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
        moved = nudged(lines, share)
        changed += moved != lines
        journal.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in moved))
        outcome = nudged(json.loads(end.read_bytes()), share)
        outcome["events_sha256"] = sha256_file(journal)
        end.write_bytes(json.dumps(outcome, separators=(",", ":"), ensure_ascii=False).encode())
    assert changed
    run.rescore()


def scores(run, share):
    (run.path / "report.html").unlink(missing_ok=True)
    (run.path / "assay.json").unlink(missing_ok=True)
    found = run.read("scores.json")
    assert nudged(found, share) != found
    write_scores(run, nudged(found, share))


def write_scores(run, content):
    """Write scores in the order that they were read in."""
    text = msgspec.json.encode(content)
    (run.path / "scores.json").write_bytes(msgspec.json.format(text, indent=1) + b"\n")


def assay(run, share):
    (run.path / "report.html").unlink()
    found = run.read("assay.json")
    config = found["assay"]["config"]
    found = nudged(found, share)
    found["assay"]["config"] = config
    run.write("assay.json", found)


def page(run, share):
    """Nudge the scores that a page is made of, write it, and put the scores back."""
    before = (run.path / "scores.json").read_bytes()
    (run.path / "assay.json").unlink()
    (run.path / "report.html").unlink()
    write_scores(run, nudged(run.read("scores.json"), share))
    assert command("report", run.path)[0] == 0
    (run.path / "scores.json").write_bytes(before)


@pytest.mark.parametrize("share", [SMALL, LARGE])
@pytest.mark.parametrize(
    ("kind", "nudge"),
    [
        ("rule", scores),
        ("rule", assay),
        ("rule", page),
        ("rule", decisions),
        ("programs", scores),
        ("programs", results),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_last_digits_contradict_nobody_and_other_numbers_do(honest, tmp_path, kind, nudge, share):
    run = honest(kind, tmp_path)
    of_another_numpy(run)
    nudge(run, share)
    status, said = verified(run)
    assert status == (0 if share == SMALL else 1), said
