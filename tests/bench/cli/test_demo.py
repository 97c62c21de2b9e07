"""The demo: what planted accounts truly are stands beside what is said of them, in a few lines
and on one page.
"""

import json
import subprocess
import sys

import pytest

from tradeassay.verdict import VerdictConfig
from tradeassay_bench.cli import demo
from tradeassay_bench.examine.planted import (
    EXPECTED,
    FIRST_WORLD,
    SHOWN,
    Bench,
    PlantConfig,
    answer_key,
    planted_world,
)
from tradeassay_bench.report import write_html
from tradeassay_bench.runs.store.archive import find_recording, open_recording

pytestmark = pytest.mark.journey

PLAIN = """
import sys
sys.modules["numba"] = None
from tradeassay.cli import main
sys.exit(main(["demo", "--runs", "runs"]))
"""


def test_the_demo_opens_on_an_answer_without_numba_and_fits_a_screen(place):
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True)
    lines = (done.stdout + done.stderr).splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in lines) <= 24, (
        done.stdout
    )  # make says one line more
    assert lines[0].startswith("Is it skill?")
    for _, truth in SHOWN.values():
        assert truth in done.stdout and len(truth) <= 28
    assert (
        "qwen2.5-coder-1.5b returned" in done.stdout
        and "The Nasdaq (1999 to 2018) returned" in done.stdout
    )
    page = (place / "runs" / "demo.html").read_text(encoding="utf-8")
    assert "<h1>Is it skill?</h1>" in page and "<title>Is it skill?" in page
    assert page.count("nobody knows") == 2
    assert "of 400 random portfolios" in page and "numba" not in page


@pytest.mark.slow
def test_a_wrong_verdict_is_shown_as_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXPECTED, "lucky", ("skill",))
    planted = answer_key(VerdictConfig(portfolios=200))
    demo.show_key(planted)
    [lucky] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("lucky")]
    assert lucky.rstrip().endswith("WRONG")
    page = write_html(planted, tmp_path / "demo.html").read_text(encoding="utf-8")
    assert page.count("<td>wrong</td>") == 1


@pytest.mark.slow
def test_the_world_is_the_first_of_the_trial(tell):
    bench = Bench(planted_world(FIRST_WORLD), PlantConfig(), VerdictConfig(portfolios=1_000))
    found = json.loads(tell(["demo", "--runs", "runs", "--json"]).out)["assay"]
    for plant, (name, _) in SHOWN.items():
        [shown] = [one for one in found["agents"] if one["agent"] == name]
        assert shown["verdict"]["kind"] == bench.judge(plant).verdict.kind


def test_what_the_demo_replays_was_recorded_without_a_failed_episode(tmp_path):
    recording = open_recording(find_recording(f"{demo.RECORDED}/ktdfin"), tmp_path)
    played = [
        one.key
        for one in recording.manifest.episodes
        if "mode=fixed-candidate" in one.key
        and ("mask=bright" in one.key or "mask=blinded" in one.key)
    ]
    models = [key for key in played if "qwen" in key]
    assert len(models) == 2
    for key in models:
        outcome = (recording.folder / "episodes" / key / "outcome.json").read_text(encoding="utf-8")
        assert '"status":"done"' in outcome
