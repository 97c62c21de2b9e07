"""Five days with a real language model on this machine. Opt in: it downloads 98 MB and takes minutes."""

import os
from pathlib import Path

import pytest

import tradeassay
from tradeassay.llm import get_local_model
from tradeassay.runs.verify.report import verify

# Left to itself the model writes until its limit: a short one keeps an answer within seconds.
WEAK = {"name": "model", "params": {"model": "local/smollm2", "max_tokens": 96}, "label": "smollm2"}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(3_000)
def test_a_small_real_model_plays_a_week(tmp_path: Path) -> None:
    if not os.environ.get("TRADEASSAY_NETWORK"):
        pytest.skip("opt in with TRADEASSAY_NETWORK=1")
    pytest.importorskip("xllamacpp", reason="needs the extra [local]")
    pytest.importorskip("inspect_ai", reason="needs the extra [models]")
    home = tmp_path / "home"
    get_local_model("smollm2", home)
    run = tradeassay.run(
        "ktdfin-v1",
        agents=["equal-weight", WEAK],
        protocol={"mode": "memory-only"},
        first="2022-02-07",
        last="2022-02-11",
        slug="week",
        folder=tmp_path / "week",
        home=home,
        progress="none",
    )
    key = next(episode.key for episode in run.episodes if "smollm2" in episode.key)
    records = list(run.records(key))
    assert len(records) == 5
    # The model is weak: what matters is that every day was asked, answered, and counted as what it was.
    asked = list(run.dialogue(key))
    assert len(asked) >= 5
    for record in records:
        assert record.decision.status == "ok" or record.decision.failures
    outcome = run.outcome(key)
    assert outcome is not None
    if all(record.decision.status == "failed" for record in records):
        assert outcome.status == "failed", "a model that never answered has no return"
    assert verify(run.folder, home=home).exit_code == 3
