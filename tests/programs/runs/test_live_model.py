"""A run through Inspect and a real socket: live answers, then the same bytes without the server."""

import json
import os
import shutil
import threading
from datetime import date
from functools import reduce
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
import runs_talk as talk
import runs_world as world
from runs_code_toy import ToySpec

import tradeassay_bench
from tradeassay.core.errors import UserError
from tradeassay_bench.llm import get_local_model
from tradeassay_bench.play.dialogue_log import Spending, read_dialogue
from tradeassay_bench.runs import AgentSpec, Asking, Window, run
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import read_manifest
from tradeassay_bench.runs.store.outcome import ModelPart, read_outcome, write_outcome
from tradeassay_bench.runs.verify.report import verify

MODEL = "openai-api/standin/tiny"


class Answers(BaseHTTPRequestHandler):
    """Speaks OpenAI's chat format; what it says is what the scripted model would say."""

    protocol_version = "HTTP/1.1"
    heard: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Answers.heard.append(body)
        text = "I looked."
        if body["messages"][0]["role"] == "system" and len(body["messages"]) > 2:
            payload = json.loads(
                body["messages"][1]["content"].removeprefix("```json\n").removesuffix("\n```")
            )
            text = talk.Good().decide(None, payload).text
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }
        usage = {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77}
        said = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "tiny",
            "choices": [choice],
        }
        content = json.dumps({**said, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as standin:
        thread = threading.Thread(target=standin.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("STANDIN_BASE_URL", f"http://127.0.0.1:{standin.server_port}/v1")
        monkeypatch.setenv("STANDIN_API_KEY", "none")
        Answers.heard.clear()
        yield standin
        standin.shutdown()
        thread.join()


def spec():
    agent = AgentSpec(name="model", params={"model": MODEL, "temperature": 0.5}, label="standin")
    return talk.talk_spec(agents=(agent,), window=Window(first="2024-01-15", last="2024-01-24"))


def test_live_then_replayed(server, home, tmp_path):
    live = run(spec(), tmp_path / "live", executor="inline", home=home)
    assert not live.failed
    assert len(Answers.heard) == 2 * 8 * 2
    assert {(body["temperature"], body["max_tokens"]) for body in Answers.heard} == {(0.5, 100)}
    key = "tiny-talk-v1__tiny-us__standin__s0"
    assert live.badges(key).model == "live"
    row = live.scores.agents[-1]
    assert row.measures["return_net_of_inference"].median.value is None
    assert "the price of 16 of 16 answers is unknown" in str(
        row.measures["return_net_of_inference"].median.reason
    )
    assert (row.inference.input_tokens, row.inference.usd) == (32 * 70, None)
    server.shutdown()
    asking = Asking(replay=True, recordings=live.folder)
    again = run(spec(), tmp_path / "again", executor="inline", home=home, asking=asking)
    assert world.same_bytes(again.folder) == world.same_bytes(live.folder)
    assert (
        again.badges(key).model == again.setting_badges("tiny-talk-v1__tiny-us").model == "replayed"
    )
    assert len(Answers.heard) == 2 * 8 * 2
    assert verify(again.folder, home=home, workers=1).exit_code == 3


def test_a_missing_key_is_found_before_anything_is_played(server, home, tmp_path, monkeypatch):
    monkeypatch.delenv("STANDIN_API_KEY")
    with pytest.raises(UserError, match="STANDIN_API_KEY"):
        run(spec(), tmp_path / "r", executor="inline", home=home)
    assert not (tmp_path / "r").exists()
    monkeypatch.setenv("STANDIN_API_KEY", "none")
    assert not run(spec(), tmp_path / "r", executor="inline", home=home).failed


PRICED = """[prices."openai-api/standin/tiny"]
input = 2.0
output = 10.0
source = "a page"
as_of = 2026-01-01
"""


@pytest.fixture
def paid(server, home, tmp_path, monkeypatch):
    """A run of a live model with a known price."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/models.toml").write_text(PRICED)
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "mine"))
    return run(spec(), tmp_path / "paid", executor="inline", home=home).folder


def spend(honest, folder, home, **changes):
    """Write every recorded answer of a copy with another usage, and what depends on it again, as
    a forger does.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(honest, folder)
    for episode in read_manifest(folder / "manifest.json").episodes:
        place = RunFolder(folder)
        log, end = place.dialogue(episode.key), place.outcome(episode.key)
        for file in filter(Path.is_file, (place.models / f"{episode.key}.jsonl", log)):
            lines = [json.loads(line) for line in file.read_bytes().splitlines()]
            for line in lines:
                if "reply" in line:
                    line["reply"]["usage"] |= changes
            file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        spent = reduce(Spending.plus, (line.reply.usage for line in read_dialogue(log)), Spending())
        outcome = read_outcome(end)
        if isinstance(outcome.model, ModelPart):
            roles = outcome.model.roles
            roles = roles if roles is msgspec.UNSET else dict.fromkeys(roles, spent)
            model = msgspec.structs.replace(outcome.model, spending=spent, roles=roles)
            write_outcome(end, msgspec.structs.replace(outcome, model=model))
    return verify(folder, home=home, workers=1)


@pytest.mark.parametrize("programs", [False, True], ids=["a run that trades", "a run of programs"])
def test_dollars_follow_from_tokens_and_the_dated_table(programs, paid, home, tmp_path):
    if programs:
        done = run(ToySpec(models=(MODEL,), tasks=1, word="hello " * 60), tmp_path / "code")
        record = read_manifest(done.folder / "manifest.json").models[MODEL]
        assert (record.price_as_of, record.price_source) == (date(2026, 1, 1), "a page")
        ((_, outcome),) = done.outcomes()
        assert outcome.model.roles["writer"].usd == pytest.approx(3 * (70 * 2 + 7 * 10) / 1e6)
        paid = done.folder
    honest = verify(paid, home=home, workers=1)
    assert not honest.contradicted
    assert [one.outcome for one in honest.claims if one.claim == "dollars"] == ["re-derived"]
    for changes, what in (
        ({"usd": 0.0}, "cost $0; its tokens cost $"),
        ({"usd": -1.0}, "cost -1 dollars"),
        ({"usd": 1e300}, "cost $1e+300; its tokens"),
        ({"usd": None}, "cost an unknown sum"),
        ({"output_tokens": -5}, "counts -5 tokens"),
        ({"input_tokens": 10**300}, "counts more tokens than any question"),
        ({"cached_tokens": 10**6}, "in the provider's cache"),
    ):
        found = spend(paid, tmp_path / "copy", home, **changes)
        assert found.exit_code == 1, changes
        assert any(one.check == "spending" and what in one.what for one in found.violations), (
            changes
        )
    (tmp_path / "mine/models.toml").write_text(PRICED.replace("2026-01-01", "2026-02-02"))
    found = verify(paid, home=home, workers=1)
    why = [one.why for one in found.claims if one.claim == "dollars"]
    assert not found.contradicted and why == [
        f"the run's price of {MODEL} is of 2026-01-01, but here it is of 2026-02-02"
    ]


def test_counts_that_cannot_be_are_named(paid, home, tmp_path):
    for tokens, answer, usd, what in (
        (0, 0, 0.0, "counts no tokens for its text"),
        (10**6, 7, 2.00007, "than its question has bytes"),
        (70, 10**5, 1.00014, "than an answer may have"),
    ):
        found = spend(
            paid, tmp_path / "copy", home, input_tokens=tokens, output_tokens=answer, usd=usd
        )
        assert not [one for one in found.violations if one.check == "spending"], found.violations
        assert any(one.claim == "dollars" and what in one.why for one in found.claims), what


# Left to itself the model writes until its limit: a short one keeps an answer within seconds.
WEAK = {"name": "model", "params": {"model": "local/smollm2", "max_tokens": 96}, "label": "smollm2"}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(3_000)
def test_a_small_real_model_plays_a_week(tmp_path):
    if not os.environ.get("TRADEASSAY_NETWORK"):
        pytest.skip("opt in with TRADEASSAY_NETWORK=1")
    pytest.importorskip("xllamacpp", reason="needs the extra [local]")
    pytest.importorskip("inspect_ai", reason="needs the extra [models]")
    home = tmp_path / "home"
    get_local_model("smollm2", home)
    run = tradeassay_bench.run(
        "ktdfin-v1",
        agents=["equal-weight", WEAK],
        protocol={"mode": "memory-only"},
        first="2022-02-07",
        last="2022-02-11",
        name="week",
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
