"""An agent behind HTTP: the contract on the wire, and what is refused."""

import asyncio
import ipaddress
import json
from collections.abc import Callable
from typing import Any

import httpx
import jsonschema
import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from tests.bench.frontends.packet_sample import PACKET, served_at

from tradeassay.cli import main
from tradeassay.core import secrets
from tradeassay.core.errors import UserError
from tradeassay_bench.agents.foreign import ama
from tradeassay_bench.agents.foreign.ama import HttpAgent, Unusable, encode_request, read_answer
from tradeassay_bench.agents.foreign.transport import inward, parse_networks, parse_target
from tradeassay_bench.core.arena import AgentChoice
from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.benchmarks.quantcode.dialogue import QuantCodeSettings, play

GOOD = {"recommended_action": "BUY", "reasoning": "it rises"}


def ask(
    handler: Callable[[httpx.Request], object], *addresses: str, **changed: object
) -> AgentChoice:
    agent = HttpAgent(
        "https://agent.example:8443/base/",
        model="m",
        resolve=served_at(*(addresses or ("93.184.216.34",))),
        through=httpx.MockTransport(handler),
        **changed,
    )
    return asyncio.run(agent.decide(PACKET))


def test_the_request_is_the_contract_and_goes_to_the_checked_address():
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=GOOD)

    choice = ask(handler)
    assert (choice.status, choice.action, choice.reasoning) == ("decided", "BUY", "it rises")
    (request,) = seen
    assert str(request.url) == "https://93.184.216.34:8443/base/trading_action/"
    assert request.headers["host"] == "agent.example:8443"
    assert request.extensions["sni_hostname"] == "agent.example"
    body = msgspec.json.decode(request.content)
    contract = {
        "date",
        "symbol",
        "price",
        "news",
        "history_price",
        "10k",
        "10q",
        "momentum",
        "model",
    }
    assert set(body) == contract
    assert body["symbol"] == ["TSLA"] and body["price"] == {"TSLA": 300.0} and body["model"] == "m"
    assert len(body["history_price"]["TSLA"]) == 10


def test_own_position_and_outcomes_go_along_when_asked_for():
    own = json.loads(encode_request(PACKET))["own"]
    assert own["position"] == 1
    assert own["outcomes"] == [
        {"date": "2025-07-29", "action": "BUY", "position": 1, "earned": 0.01}
    ]
    assert "own" not in json.loads(encode_request(PACKET, own=False))


def test_packets_and_tasks_have_a_schema_too(capsys):
    def printed(name: str) -> dict[str, Any]:
        assert main(["benchmarks", name, "--schema"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    schema = printed("ama")
    schema["$defs"]["PacketRequest"]["additionalProperties"] = False
    for own in (True, False):
        jsonschema.validate(json.loads(encode_request(PACKET, own=own)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(encode_request(PACKET)), "price": 3}, schema)
    asking = QuantCodeSettings(setting="single-turn")
    asked: Any = next(play(load_task("d-sma-cross-long"), asking))
    jsonschema.validate(json.loads(asked.given.observation), printed("quantcode-v1"))
    assert "iteration" in printed("systrade-v1")["$defs"]["StrategyShown"]["properties"]


INWARD = """127.0.0.1 192.0.0.192 168.63.129.16 fec0::1 10.1.2.3 192.168.1.1 172.16.0.1 169.254.169.254 0.0.0.0
    100.64.0.1 ::1 :: fe80::1 fc00::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:7f00:1:: 224.0.0.1 255.255.255.255
    fe80::1%eth0""".split()


@pytest.mark.parametrize("address", INWARD)
def test_addresses_that_lead_inwards_are_refused_before_anything_is_sent(address):
    def never(request: httpx.Request) -> httpx.Response:
        raise AssertionError("sent")

    # one bad address among good ones is enough
    choice = ask(never, "93.184.216.34", address)
    assert choice.status == "failed" and choice.failures[0].kind == "forbidden"


def test_a_private_address_is_used_when_it_is_allowed():
    choice = ask(
        lambda request: httpx.Response(200, json=GOOD),
        "127.0.0.1",
        allow=parse_networks(["127.0.0.0/8"]),
    )
    assert choice.action == "BUY"


def test_a_name_is_resolved_once_per_decision_so_it_cannot_change_after_the_check():
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    hosts: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    def handler(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return httpx.Response(200, json=GOOD)

    agent = HttpAgent("http://agent.example", resolve=resolve, through=httpx.MockTransport(handler))
    assert asyncio.run(agent.decide(PACKET)).action == "BUY"
    assert asyncio.run(agent.decide(PACKET)).failures[0].kind == "forbidden"
    assert hosts == ["93.184.216.34"]


class Endless(httpx.AsyncByteStream):
    def __init__(self) -> None:
        self.sent = 0

    async def __aiter__(self):
        while True:
            self.sent += 1
            yield b"x" * 1000


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("redirect", lambda: httpx.Response(302, headers={"location": "http://127.0.0.1/"})),
        ("status", lambda: httpx.Response(500)),
        ("status", lambda: httpx.Response(204)),
        ("parse", lambda: httpx.Response(200, content=b"BUY")),
        ("parse", lambda: httpx.Response(200, content=b"\xff\xfe")),
        (
            "parse",
            lambda: httpx.Response(200, content=b"{}", headers={"content-encoding": "x-odd"}),
        ),
        (
            "schema",
            lambda: httpx.Response(200, json={"recommended_action": "buy", "reasoning": ""}),
        ),
        ("schema", lambda: httpx.Response(200, json={"recommended_action": "BUY"})),
        ("schema", lambda: httpx.Response(200, json=[GOOD])),
        ("schema", lambda: httpx.Response(200, json={**GOOD, "allocation": 1.5})),
        ("too_large", lambda: httpx.Response(200, stream=Endless())),
    ],
)
def test_failures_hold_and_are_counted_by_kind(kind, answer):
    choice = ask(lambda request: answer())
    assert (choice.action, choice.status, choice.failures[0].kind) == ("HOLD", "failed", kind)


def test_an_endless_answer_is_read_no_further_than_the_limit():
    body = Endless()
    ask(lambda request: httpx.Response(200, stream=body), max_answer=4000)
    assert body.sent <= 6


def test_a_slow_or_dead_agent():
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return httpx.Response(200, json=GOOD)

    assert ask(slow, timeout_s=0.05).failures[0].kind == "timeout"

    def dead(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    assert ask(dead).failures[0].kind == "unreachable"

    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    agent = HttpAgent("http://agent.example", resolve=nowhere)
    assert asyncio.run(agent.decide(PACKET)).failures[0].kind == "unreachable"


def test_a_request_over_the_limit_is_not_sent(monkeypatch):
    monkeypatch.setattr(ama, "MAX_REQUEST", 100)
    with pytest.raises(Unusable, match="too_large"):
        encode_request(PACKET)
    choice = ask(lambda request: httpx.Response(200, json=GOOD))
    assert choice.failures[0].kind == "too_large"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/",
        "agent.example",
        "http://",
        "http://u:p@x/",
        "http://x/#a",
        "http://x:99999/",
        "http://x/\ny",
    ],
)
def test_addresses_that_make_no_sense(url):
    with pytest.raises(UserError):
        HttpAgent(url)


def test_addresses_taken_apart():
    target = parse_target("http://[2606:4700::1111]:8080/a?k=1", "/trading_action/")
    assert target.at("2606:4700::1111") == "http://[2606:4700::1111]:8080/a/trading_action/?k=1"
    assert target.authority == "[2606:4700::1111]:8080"
    assert parse_target("https://x").authority == "x"
    with pytest.raises(UserError):
        parse_networks(["10.0.0.0/99"])


@settings(max_examples=60, deadline=None)
@given(st.ip_addresses(v=4))
def test_wrapping_an_address_does_not_change_where_it_leads(address):
    number = int(address)
    for wrapped in (
        0xFFFF << 32 | number,
        int(ipaddress.IPv6Address("64:ff9b::")) | number,
        0x2002 << 112 | number << 80,
    ):
        assert inward(ipaddress.IPv6Address(wrapped)) == inward(address)


@given(st.binary(max_size=200) | st.text(max_size=100))
def test_no_answer_breaks_the_reader(body):
    try:
        choice = read_answer(body)
    except Unusable as error:
        assert error.kind in ("parse", "schema", "too_large")
    else:
        assert choice.status == "decided"


def test_control_characters_do_not_reach_the_record():
    choice = read_answer(
        b'{"recommended_action": "SELL", "reasoning": "a\\u0000b<script>", "message": "\\u0007"}'
    )
    assert choice.reasoning == "ab<script>" and choice.message is None


def test_a_configured_secret_in_an_answer_is_not_kept(monkeypatch):
    key = "gsk_Vb7Nm2Qw9Er4Ty6Ui1Op3As8"
    monkeypatch.setattr(secrets, "KNOWN", secrets.Secrets())
    secrets.KNOWN.add(key)
    choice = ask(
        lambda request: httpx.Response(
            200, json={**GOOD, "reasoning": f"my key is {key}", "message": key}
        )
    )
    assert choice.reasoning == f"my key is {secrets.REMOVED}" and choice.message == secrets.REMOVED
    failed = ask(
        lambda request: httpx.Response(200, json={"recommended_action": key, "reasoning": "x"})
    )
    assert key not in str(failed) and failed.status == "failed"
