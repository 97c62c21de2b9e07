"""Foreign agents play every benchmark that trades: over HTTP, on a pipe, as a Python class."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import foreign_mind
import jsonschema
import msgspec
import pytest
from click.testing import CliRunner

from tradeassay.cli import root
from tradeassay.core.errors import UserError
from tradeassay_bench.agents import check_agent
from tradeassay_bench.agents.foreign.conversation import encode_request, read_reply
from tradeassay_bench.agents.foreign.transport import Unusable
from tradeassay_bench.api import make_spec
from tradeassay_bench.core.dialogue import AskModel, Given, Message
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.data import load_dataset
from tradeassay_bench.llm import QuestionPlace
from tradeassay_bench.runs import AgentSpec, Asking, AskStarted, ProgressEvent, Run, resume, run
from tradeassay_bench.runs.verify.report import verify

pytestmark = pytest.mark.journey

HERE = Path(__file__).parent
WINDOWS = {
    "stockbench-v1": ("2022-07-01", "2022-07-08"),
    "ktdfin-v1": ("2022-03-01", "2022-03-08"),
    "daily-us-v1": ("2022-03-01", "2022-03-10"),
}
SECRET = "5e" * 16
Handler = Callable[[dict[str, Any]], Any]


class Server:
    """A small web server on the loopback address:

    ``said`` answers, ``heard`` keeps what it was asked.
    """

    DROP = b'{"half": "an ans'

    def __init__(self, said: Handler = foreign_mind.reply, port: int = 0) -> None:
        self.heard: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.said = said
        outer = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.heard.append(asked)
                outer.headers.append(dict(self.headers))
                said = outer.said(asked)
                status, body = said if isinstance(said, tuple) else (200, said)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                length = 999 if raw == Server.DROP else len(raw)
                try:
                    self.wfile.write(
                        b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n\r\n" % (status, length) + raw
                    )
                    if raw == Server.DROP:
                        self.connection.shutdown(socket.SHUT_RDWR)
                except OSError:  # who asked is gone
                    pass

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Answers)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}/agent"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def of_step(self, step: int) -> list[Any]:
        """Return the feedback that came with the questions of a session."""
        return [asked["feedback"] for asked in self.heard if asked["step"] == step]

    def spec(self, **params: Any) -> AgentSpec:
        return AgentSpec(name="http", params={"url": self.url, **params}, label="mine")


@pytest.fixture
def server():
    made = Server()
    yield made
    made.stop()


def play(
    agent: AgentSpec,
    folder: Path,
    benchmark: str = "stockbench-v1",
    last: str | None = None,
    **more: Any,
) -> Run:
    first, end = WINDOWS[benchmark]
    window = {"first": first, "last": last or end}
    spec = make_spec(
        benchmarks=(benchmark,), agents=(agent,), **window, name="foreign", secret=SECRET
    )
    return run(spec, folder, executor="inline", **{"progress": "none", **more})


def mine(done: Run) -> str:
    """Return the key of the agent's own episode."""
    return next(episode.key for episode in done.episodes if episode.label == "mine")


def decisions(done: Run) -> list[Decision]:
    return [record.decision for record in done.records(mine(done))]


def bytes_of(folder: Path) -> dict[str, bytes]:
    names = ("events.jsonl", "scores.json", "dialogue.jsonl")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.name in names
    }


def failures(done: Run) -> list[str]:
    """Return the kinds of failure of every session, in order."""
    return [failure.kind for decision in decisions(done) for failure in decision.failures]


def pipe(command: str = "") -> AgentSpec:
    """The mind on a pipe, or another command."""
    command = command or f"{sys.executable} {HERE / 'foreign_mind.py'}"
    return AgentSpec(name="pipe", params={"command": command}, label="mine")


def python(cls: str) -> AgentSpec:
    return AgentSpec(name="python", params={"class": f"foreign_mind:{cls}"}, label="mine")


@pytest.mark.parametrize("benchmark", WINDOWS)
def test_every_door_leads_to_every_benchmark(benchmark, server, tmp_path):
    """The same mind behind a server, on a pipe and as a class gives the same journal, and it
    trades.
    """
    journals = set()
    for name, agent in (("http", server.spec()), ("pipe", pipe()), ("python", python("Waits"))):
        done = play(agent, tmp_path / name, benchmark)
        assert not done.failed
        assert verify(tmp_path / name, workers=1).exit_code == 3, "nobody can ask it again"
        found = decisions(done)
        assert any(one.orders for one in found) and all(one.status == "ok" for one in found)
        journals.add((tmp_path / name / "episodes" / mine(done) / "events.jsonl").read_bytes())
    assert len(journals) == 1
    request = server.heard[0]
    names = (
        "protocol id benchmark episode session step stage attempt rules observation messages "
        "tools must_call"
    )
    assert set(request) == {*names.split(), "answer_schema", "feedback"}
    # Under a mask only the family is named: an id may name the market and its years.
    shown = "ktdfin" if benchmark.startswith("ktdfin") else benchmark
    assert request["protocol"] == "tradeassay-conversation-1" and request["benchmark"] == shown
    assert (
        request["rules"] and request["observation"] and request["messages"][0]["role"] == "system"
    )
    if benchmark == "stockbench-v1":
        schemas = {asked["stage"]: asked["answer_schema"] for asked in server.heard}
        assert schemas["overview"]["required"] == ["analyse"] and schemas["analysis"] is None
        assert schemas["decision"]["required"] == ["decisions"]
    assert not any(
        name.lower() in ("authorization", "cookie")
        for headers in server.headers
        for name in headers
    )


@pytest.mark.parametrize("benchmark", WINDOWS)
def test_the_schema_and_the_manual_describe_what_is_sent(benchmark, server, tmp_path):
    schema = json.loads(CliRunner().invoke(root, ["benchmarks", benchmark, "--schema"]).stdout)
    for part in schema["$defs"].values():  # without room for fields that it does not name
        assert "properties" not in part or part["description"], "what it means comes from the type"
        part["additionalProperties"] = False
    play(server.spec(), tmp_path / "r", benchmark)
    assert (
        {asked["stage"] for asked in server.heard} >= {"orders"}
        if benchmark == "daily-us-v1"
        else server.heard
    )
    described = jsonschema.validators.validator_for(schema)(schema)
    for asked in server.heard:
        described.validate(asked)
    page = (HERE.parents[2] / "docs/howto/bring-your-own-agent.md").read_text()
    family = benchmark.split("-")[0]
    (example,) = re.findall(rf'```json title="{family}-\*[^"]*"\n(.*?)```', page, re.DOTALL)
    seen = schema["$defs"]["Request"]["properties"]["observation"]
    jsonschema.validate(json.loads(example), {**schema, **seen})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(example), "surprise": 1}, {**schema, **seen})
    for name in schema["$defs"][seen["$ref"].rpartition("/")[2]]["properties"]:
        assert name in page, name


def test_no_true_name_or_date_reaches_a_masked_agent(server, tmp_path):
    """KTD-Fin hides names and days by default; feedback and tool results are masked as the
    prompts are.
    """
    done = play(server.spec(), tmp_path / "r", "ktdfin-v1")
    told = json.dumps(server.heard)
    view = load_dataset("synthetic/ashare:7").at(500, "close")
    assert not [symbol for symbol in view.symbols if re.search(rf"\b{re.escape(symbol)}\b", told)]
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", told)
    assert not any(episode.key in told for episode in done.episodes)
    # The form that was broken on purpose came back as feedback, and the next attempt was good.
    again = [asked for asked in server.heard if asked["feedback"] is not None]
    assert [asked["attempt"] for asked in again] == [2]
    assert again[0]["feedback"]["failures"][0]["kind"] == "schema"
    assert failures(done) == ["schema"]


def test_killed_and_resumed_it_ends_with_the_same_bytes(server, tmp_path):
    """The process is killed while the agent thinks, in the middle of a day."""
    whole = play(server.spec(), tmp_path / "whole")
    asked = len(server.heard)
    server.heard.clear()
    folder = tmp_path / "killed" / "foreign"
    first, last = WINDOWS["stockbench-v1"]
    tool = (
        f"-m tradeassay run stockbench-v1 -a http:url={server.url},label=mine --first {first} "
        f"--last {last}"
    )
    command = [
        sys.executable,
        *f"{tool} --name foreign --secret {SECRET} --runs".split(),
        str(folder.parent),
    ]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def kill_at_the_eighth(request: dict[str, Any]) -> dict[str, Any]:
        if len(server.heard) == 8:
            child.send_signal(signal.SIGKILL)
            child.wait()
        return foreign_mind.reply(request)

    server.said = kill_at_the_eighth
    _, error = child.communicate(timeout=250)
    assert child.returncode == -signal.SIGKILL, error.decode()
    done = resume(folder, executor="inline")
    assert bytes_of(folder) == bytes_of(whole.folder)
    assert len(server.heard) == asked + 1  # only what was being answered is asked again
    assert not done.failed
    server.said = lambda asked: (500, {})  # a replay asks nobody
    again = play(
        server.spec(), tmp_path / "again", asking=Asking(replay=True, recordings=whole.folder)
    )
    assert not again.failed and bytes_of(again.folder) == bytes_of(whole.folder)
    assert len(server.heard) == asked + 1


def interrupted(agent: AgentSpec, folder: Path, at: int) -> None:
    """Play until the agent is asked for the ``at``-th time."""
    asked = count(1)

    def interrupt(event: ProgressEvent) -> None:
        if isinstance(event, AskStarted) and next(asked) == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(agent, folder, "daily-us-v1", progress=interrupt)


def test_interrupted_in_the_middle_of_a_day_a_pipe_goes_on(tmp_path):
    whole = play(pipe(), tmp_path / "whole", "daily-us-v1")
    interrupted(pipe(), tmp_path / "r", at=4)
    resume(tmp_path / "r", executor="inline")
    assert bytes_of(tmp_path / "r") == bytes_of(whole.folder)


def test_feedback_is_still_there_after_an_interruption_within_a_day(server, tmp_path):
    good = server.said
    server.said = lambda asked: (500, {}) if len(server.heard) == 1 else good(asked)
    interrupted(server.spec(), tmp_path / "r", at=2)
    server.heard.clear()
    server.said = good
    resume(tmp_path / "r", executor="inline")
    assert server.heard[0]["id"].endswith("/0/1"), "the second question of the first day"
    assert server.heard[0]["feedback"]["failures"][0]["kind"] == "status"


def test_a_server_that_dies_ends_the_episode_and_one_that_is_back_goes_on(tmp_path):
    """A broken cable is no trading result: the episode fails as unreachable, and is finished
    later.
    """
    server = Server()
    whole = play(server.spec(), tmp_path / "whole")
    server.stop()
    server = Server(port=server.port)
    asked = server.said

    def dies(request: dict[str, Any]) -> Any:
        if len(server.heard) == 7:
            server.stop()
            return (200, b"")
        return asked(request)

    server.said = dies
    done = play(server.spec(), tmp_path / "r")
    (key,) = done.failed
    assert "unreachable on 2022-07-06" in (done.outcome(mine(done)).error or "")
    back = Server(port=server.port)
    try:
        after = resume(tmp_path / "r", executor="inline", retry_failed=True)
    finally:
        back.stop()
    assert not after.failed and key == mine(after)
    made = [
        sum(len(record.decision.orders) for record in one.records(mine(one)))
        for one in (after, whole)
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ((200, b"I would rather not"), "parse"),
        ((200, b'{"text": 1}'), "schema"),
        ((200, b'{"text": "x"}'), "schema"),
        ((200, b"{}"), "schema"),
        ((200, b'{"text": "a", "answer": {}}'), "schema"),
        ((500, b"{}"), "status"),
        ((302, b""), "status"),
        ((200, b'{"text": "' + b"x" * 2_000_000 + b'"}'), "too_large"),
    ],
    ids=["parse", "schema", "nameless", "empty", "both", "status", "redirect", "too-large"],
)
def test_a_bad_answer_is_a_failure_of_that_day(said, kind, server, tmp_path):
    """Session 1 is answered badly, three times; the others are played as ever."""
    server.said = lambda asked: said if asked["step"] == 1 else foreign_mind.reply(asked)
    done = play(server.spec(), tmp_path / "r", last="2022-07-06")
    first, second, third = decisions(done)
    assert (first.status, second.status, third.status) == ("ok", "failed", "ok")
    assert {failure.kind for failure in second.failures} - {"give_up"} == {kind}
    unread = kind in ("parse", "schema", "too_large")
    assert ("no answer could be read" if unread else "no answer came") in second.reason
    start, *told = server.of_step(1)
    assert start is None and [each["failures"][0]["kind"] for each in told] == [kind, kind]
    assert not done.failed and verify(tmp_path / "r", workers=1).exit_code == 3


EXTRA = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    names = asked["observation"]["names"]
    order = {"symbol": names[asked["step"]]["symbol"], "unit": "target_weight", "amount": 0.1}
    answer = {"answer": {"orders": [order], "reason": f"of step {asked['step']}"}}
    if "nameless" not in sys.argv:
        answer["id"] = asked["id"]
    print(json.dumps(answer), flush=True)
    if asked["step"] == 1:
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("nameless", ["", "nameless"])
def test_a_surplus_line_is_counted_and_shifts_nothing(nameless, tmp_path):
    """An agent says its second answer twice.

    What it says later must not be taken for what it said before.
    """
    (tmp_path / "extra.py").write_text(EXTRA)
    agent = pipe(f"{sys.executable} {tmp_path / 'extra.py'} {nameless}")
    done = play(agent, tmp_path / "r", "daily-us-v1", last="2022-03-07")
    found = decisions(done)
    if nameless:
        assert done.failed and set(failures(done)) == {"schema"}
        assert 'repeat the request\'s "id"' in found[0].failures[0].detail
    else:
        assert failures(done) == ["stray"]
        assert [one.reason.rsplit(" ", 1)[-1] for one in found] == ["0", "1", "2", "3", "4"]


def test_an_answer_to_another_question_over_http_is_counted(server, tmp_path):
    """A server that answers from a queue of its own is one question behind, once."""
    late: list[dict[str, Any]] = []

    def behind(asked: dict[str, Any]) -> Any:
        late.append(foreign_mind.reply(asked))
        return late[-2] if len(late) == 2 else late[-1]

    server.said = behind
    done = play(server.spec(), tmp_path / "r", "daily-us-v1", last="2022-03-03")
    assert failures(done) == ["stray"] and not done.failed
    assert any("/0/0, but" in failure.detail for one in decisions(done) for failure in one.failures)
    assert server.heard[2]["feedback"]["failures"][0]["kind"] == "stray"


@pytest.mark.parametrize("times", [1, 2])
def test_one_dropped_connection_is_tried_again(times, server, tmp_path):
    dropped: list[str] = []

    def drops(asked: dict[str, Any]) -> Any:
        if asked["step"] == 1 and len(dropped) < times:
            dropped.append(asked["id"])
            return (200, Server.DROP)
        return foreign_mind.reply(asked)

    server.said = drops
    done = play(server.spec(), tmp_path / "r", "daily-us-v1", last="2022-03-03")
    if times == 1:
        assert not done.failed and not failures(done)
        assert [asked["id"] for asked in server.heard[1:3]] == dropped * 2, (
            "the same question, by name"
        )
    else:
        error = done.outcome(mine(done)).error or ""
        assert (
            "unreachable on 2022-03-02" in error
            and 'after it answered 200: {"half": "an ans' in error
        )
        assert "see what it printed" in error


def test_feedback_says_why_at_the_next_stage_of_a_step_too(server, tmp_path):
    """KTD-Fin goes on to the submission after a lost round of research; a server's own words are
    quoted.
    """
    lost = {"step": 1, "stage": "research"}
    fell = (503, b'{"error": "out of memory"}')
    server.said = lambda asked: fell if lost.items() <= asked.items() else foreign_mind.reply(asked)
    play(server.spec(), tmp_path / "r", "ktdfin-v1", last="2022-03-02")
    told = next(
        asked["feedback"]
        for asked in server.heard
        if (asked["step"], asked["stage"]) == (1, "submit")
    )
    detail = 'the agent answered 503: {"error": "out of memory"}'
    assert told == {"failures": [{"kind": "status", "detail": detail}]}


def test_a_late_answer_is_a_failure_of_that_day(server, tmp_path):
    def slow(asked: dict[str, Any]) -> Any:
        if asked["step"] == 0:
            time.sleep(3)
        return foreign_mind.reply(asked)

    server.said = slow
    first, second = decisions(
        play(server.spec(timeout_s=2), tmp_path / "r", "daily-us-v1", last="2022-03-02")
    )
    assert (
        first.status == "failed" and [failure.kind for failure in first.failures] == ["timeout"] * 3
    )
    assert second.status == "ok"
    late = {"failures": [{"kind": "timeout", "detail": "no answer within 2 s"}]}
    assert [asked["feedback"] for asked in server.heard[:4]] == [None, late, late, None]


def test_a_class_that_raises_and_a_program_that_ends(tmp_path):
    days = {"benchmark": "daily-us-v1", "last": "2022-03-02"}
    first, second = decisions(play(python("Breaks"), tmp_path / "r", **days))
    assert first.status == "ok" and second.status == "failed"
    assert (
        second.failures[0].kind == "agent" and "RuntimeError: no idea" in second.failures[0].detail
    )
    done = play(pipe("true"), tmp_path / "ends", **days)
    assert done.failed and set(failures(done)) == {"agent"}
    with pytest.raises(UserError, match="there is no program '/no/such/program'"):
        play(pipe("/no/such/program"), tmp_path / "missing", **days)


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("http", {}, "is not a web address"),
        ("http", {"url": "ftp://127.0.0.1"}, "is not a web address"),
        ("pipe", {}, "needs a command"),
        ("pipe", {"command": "python 'agent.py"}, "close its quotes"),
        ("python", {"class": "foreign_mind"}, "package.module:Class"),
        ("python", {"class": "foreign_mind:Silent"}, r"has no reply\(request\)"),
        ("python", {"clas": "foreign_mind:Mind"}, "did you mean class"),
    ],
)
def test_an_agent_that_cannot_be_asked_is_refused_before_anything_runs(name, params, said):
    with pytest.raises(UserError, match=said):
        check_agent(name, params)


def test_answers_are_read_in_the_benchmarks_own_form():
    place = QuestionPlace(episode="e", step=3, sample=0, index=1)
    given = Given(session="day_0007", rules="{}", observation='{"a":1}')
    free = AskModel(purpose="decision", messages=(Message(role="user", text="?"),), given=given)
    must = msgspec.structs.replace(free, must_call="submit_action")
    assert read_reply(b'{"answer": {"b": [1]}}', free, place).text == '{"b":[1]}'
    (call,) = read_reply(b'{"answer": {"b": [1]}}', must, place).calls
    assert (call.name, call.arguments) == ("submit_action", '{"b":[1]}')
    assert read_reply(b'{"calls": []}', free, place).calls == ()
    with pytest.raises(Unusable, match="parse"):
        read_reply(b"\xff", free, place)
    sent = json.loads(encode_request(free, place, "x-v1", "salt", Unusable("exit", "gone")))
    assert sent["session"] == "day_0007" and sent["observation"] == {"a": 1}
    assert sent["feedback"] == {"failures": [{"kind": "agent", "detail": "gone"}]}
    assert sent["episode"].startswith("e-") and place.episode not in sent["episode"][2:3]
    other = json.loads(encode_request(free, place, "x-v1", "another secret"))
    assert other["episode"] != sent["episode"], "nobody can list the episodes that there may be"


def test_nobody_is_asked_in_a_conversation_unless_named():
    """Without agents, a run plays every rule; models and foreign agents have to be named."""
    chosen = {agent.name for agent in make_spec(benchmarks=("daily-us-v1",)).agents}
    assert "equal-weight" in chosen and not chosen & {"model", "http", "pipe", "python"}


def test_an_answer_cannot_claim_more_tokens_than_can_be_added_up():
    request = AskModel(purpose="decide", attempt=1, messages=(Message(role="user", text="?"),))
    place = QuestionPlace(episode="e", step=0, sample=0, index=0)
    body = b'{"text": "x", "usage": {"input_tokens": %d}}'
    assert read_reply(body % 10**12, request, place).usage.input_tokens == 10**12
    with pytest.raises(Unusable, match=r"\$\.usage\.input_tokens"):
        read_reply(body % 10**30, request, place)
    odd = b'{"text": "x", "usage": {"input_tokens": 12.0, "output_tokens": "3", "usd": "0.5"}}'
    usage = read_reply(odd, request, place).usage
    assert (usage.input_tokens, usage.output_tokens, usage.usd) == (12, 3, 0.5)
    for nothing in (b"null", b'{"input_tokens": null, "usd": null}'):
        assert (
            read_reply(b'{"text": "x", "usage": %s}' % nothing, request, place).usage.input_tokens
            == 0
        )
