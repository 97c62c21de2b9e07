"""A run that is not finished can be looked at: how far it has come, and what was refused, in the model's words."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tradeassay.runs import Run
from tradeassay.runs.summary.reading import SHOWN, run_status


def _write(file: Path, lines: list[dict[str, Any]], torn: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + torn, encoding="utf-8")


def test_steps_failures_and_the_latest_refused_answers_are_told(tmp_path: Path) -> None:
    wrong = [{"kind": "schema", "detail": "there is no such stock"}]
    events = [
        {
            "step": at,
            "session": f"2022-01-0{at + 1}",
            "decision": {"status": "failed" if at else "ok", "failures": wrong},
        }
        for at in range(5)
    ]
    said = [
        {
            "step": at,
            "session": "",
            "index": 0,
            "purpose": "submit",
            "attempt": 1,
            "kept": 0,
            "messages": [],
            "reply": {"text": f"answer {at}", "usage": {}},
        }
        for at in range(5)
    ]
    _write(tmp_path / "episodes/one/events.jsonl", events, torn='{"step": 5, "ses')
    _write(tmp_path / "episodes/one/dialogue.jsonl", said)
    _write(tmp_path / "episodes/two/outcome.json", [{}])
    run: Any = SimpleNamespace(
        folder=tmp_path, episodes=[SimpleNamespace(key=name) for name in ("one", "two", "three")]
    )
    one, two, three = run_status(run)
    assert (one.steps, one.lost, one.ended, one.failures) == (5, 4, False, {"schema": 5})
    assert [refused.text for refused in one.refused] == [f"answer {at}" for at in range(5 - SHOWN, 5)]
    assert one.refused[-1].reason == "schema: there is no such stock"
    assert two.ended and not three.ended and three.steps == 0


def test_ahead_of_the_baseline_is_said_while_it_plays(finished: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(finished.folder, tmp_path / "half")
    last = len(finished.episodes) - 1
    drawn = np.random.default_rng(3).normal(0.0, 0.01, (last + 1, 130))
    for number, episode in enumerate(finished.episodes):
        pace = drawn[number] + (0.0 if episode.baseline or number % 2 else 0.008)
        _write(
            folder / "episodes" / episode.key / "events.jsonl",
            [
                {"step": at, "session": f"s{at:03}", "events": [{"type": "marked", "nav": nav}]}
                for at, nav in enumerate(
                    (1000.0 * np.exp(np.cumsum(pace))).tolist()[: 50 if number == last else 130]
                )
            ],
        )
    said = run_status(Run.load(folder))
    for number, (episode, one) in enumerate(zip(finished.episodes, said, strict=True)):
        if episode.baseline:
            assert one.ahead.value is None and one.ahead.reason == "this is the baseline"
        elif number == last:
            assert one.ahead.value is not None and one.ahead.low is None and "first look" in str(one.ahead.note)
        else:
            assert one.ahead.low is not None and (one.ahead.low > 0.0) == (number % 2 == 0)
