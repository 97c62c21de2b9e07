"""A tiny conversation and models that hold it, for testing the runner.

Importing this registers them.
"""

import json
import time
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
import numpy as np
import runs_world as world

from tradeassay_bench.benchmarks import ProtocolConfig, benchmarks, protocols
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, Dialogue, Message, ModelReply
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.runs import AgentSpec, RunSpec

PROMPT = Path(__file__).parent / "runs_talk_prompt.txt"


class TinyConfig(ProtocolConfig, frozen=True, kw_only=True):
    mask: Literal["bright", "blinded"] = "bright"
    attempts: int = 2
    max_tokens: int = 100


@protocols.register("tiny-talk")
class TinyTalk:
    """Look, then decide: two questions a day; an answer that is no JSON is asked again."""

    Config: ClassVar[type[ProtocolConfig]] = TinyConfig
    prompts: ClassVar[tuple[str, ...]] = (PROMPT.name,)

    def __init__(self, config: TinyConfig) -> None:
        self.config = config
        self.past: list[str] = []

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self.alias = int(rng.integers(1_000_000))
        self.past = []

    def dialogue(self, observation: Observation) -> Dialogue:
        shown = {
            "kind": "tiny.day",
            "day": observation.step,
            "symbols": list(observation.universe),
            "past": self.past[-3:],
            "mask": self.config.mask,
            "alias": self.alias,
            "cash": round(observation.account.cash, 2),
        }
        opening = (
            Message(role="system", text=PROMPT.read_text()),
            Message(role="user", text=f"```json\n{json.dumps(shown)}\n```"),
        )
        look = yield AskModel(purpose="look", messages=opening)
        talk = (
            *opening,
            Message(role="assistant", text=look.text or "-"),
            Message(role="user", text="Decide."),
        )
        failures: list[Failure] = []
        for attempt in range(1, self.config.attempts + 1):
            reply = yield AskModel(purpose="decide", messages=talk, attempt=attempt)
            try:
                wish = json.loads(reply.text)
                order = Order(symbol=wish["symbol"], amount=float(wish["shares"]), side="BUY")
                return Decision(orders=(order,), reason=wish["why"], failures=tuple(failures))
            except (ValueError, KeyError):
                failures.append(
                    Failure(kind=reply.error_kind or "parse", detail=reply.error or "no JSON")
                )
                talk = (*talk, Message(role="user", text=f"That was no answer ({attempt})."))
        return Decision(status="failed", reason="no answer", failures=tuple(failures))

    def remember(self, observation: Observation, decision: Decision) -> None:
        self.past.append(f"{observation.step}:{decision.reason}")


class _Base:
    summary: ClassVar[str] = "for tests"

    def answer(self, request: AskModel) -> ModelReply:
        payload = json.loads(
            request.messages[1].text.removeprefix("```json\n").removesuffix("\n```")
        )
        if request.purpose == "look":
            return ModelReply(
                text=f"I see {len(payload['symbols'])} names and remember {payload['past']}."
            )
        return self.decide(request, payload)

    def decide(self, request: AskModel, payload: dict[str, object]) -> ModelReply:
        symbols = payload["symbols"]
        day = payload["day"]
        assert isinstance(symbols, list) and isinstance(day, int)
        symbol = symbols[(day + int(str(payload["alias"]))) % len(symbols)]
        return ModelReply(
            text=json.dumps({"symbol": symbol, "shares": 3 + day % 4, "why": f"day {day}"})
        )


@scripted_models.register("tiny-good")
class Good(_Base):
    pass


@scripted_models.register("tiny-slow")
class Slow(_Base):
    """Takes a moment, so that there is one in which to kill it, and counts how often it is
    asked.
    """

    def answer(self, request: AskModel) -> ModelReply:
        time.sleep(0.004)
        if LOG.path is not None:
            with LOG.path.open("a") as file:
                file.write(f"{request.purpose}\n")
        return super().answer(request)


@scripted_models.register("tiny-waits")
class Waits(_Base):
    """Lets others talk while it thinks."""

    def seconds(self, request: AskModel) -> float:
        return 0.0005


@scripted_models.register("tiny-mute")
class Mute(_Base):
    def decide(self, request: AskModel, payload: dict[str, object]) -> ModelReply:
        return ModelReply(text="no")


@scripted_models.register("tiny-cut-off")
class CutOff(_Base):
    """Cannot be reached from the fifth day on, while a file says so."""

    def decide(self, request: AskModel, payload: dict[str, object]) -> ModelReply:
        if payload["day"] == 5 and LOG.path is not None and LOG.path.exists():
            return ModelReply(stop="error", error="no route", error_kind="unreachable")
        return super().decide(request, payload)


class LOG:
    """Where models of this process write, if anywhere."""

    path: Path | None = None


def register() -> None:
    world.register()
    if "tiny-talk-v1" not in benchmarks:
        plain = benchmarks.get("tiny-us-v1")
        benchmarks.add(
            "tiny-talk-v1", msgspec.structs.replace(plain, id="tiny-talk-v1", protocol="tiny-talk")
        )


def model(name: str, **params: float | int | str) -> AgentSpec:
    return AgentSpec(name="model", params={"model": f"scripted/{name}", **params}, label=name)


def talk_spec(*names: str, **changes: object) -> RunSpec:
    """Models (and a rule) in the tiny conversation."""
    register()
    agents = (
        AgentSpec(name="reversal", params={"lookback": 3}),
        *(model(name) for name in names or ("tiny-good",)),
    )
    fields: dict[str, object] = {
        "name": "talk",
        "benchmarks": ("tiny-talk-v1",),
        "agents": agents,
        "seeds": (0, 1),
        "bootstrap": world.BOOTSTRAP,
    }
    return RunSpec(**(fields | changes))  # type: ignore[arg-type]
