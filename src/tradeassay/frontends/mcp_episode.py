"""An episode of KTD-Fin for a client of MCP: the same conversation that models have, one call at a time.

The benchmark's own day decides everything: what a tool answers, how many calls a day has, what is wrong with a
submission and how often it may be tried. A client sees what a model would see, under the same mask.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tradeassay.benchmarks.ktdfin.action import NAME, SUBMIT
from tradeassay.benchmarks.ktdfin.day import SPECS
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import AskModel, Dialogue, Message, ModelReply, ToolCall, ToolSpec
from tradeassay.core.errors import UserError
from tradeassay.core.events import Deposited, Marked, StepRecord
from tradeassay.core.orders import Decision
from tradeassay.frontends.mcp_server import Said, serve_stdio
from tradeassay.frontends.plots import Plot, plots_for
from tradeassay.play import Market
from tradeassay.runs.conversation import open_protocol
from tradeassay.runs.journal import encode_line
from tradeassay.runs.model_play import conversation_rng
from tradeassay.runs.play import as_recorded
from tradeassay.runs.spec import ParamValue

OBSERVE = ToolSpec(
    name="observe",
    description="Read today's observation, the rules, and everything said today so far. Free of charge.",
    schema='{"type": "object", "properties": {}, "additionalProperties": false}',
)
_ABOUT = (
    "You manage a paper-trading account over a number of sessions. Each session: call observe, research with the "
    "market's tools within today's budget, then submit_action. An accepted submission ends the session and shows "
    "the next one."
)


class EpisodeDesk:
    """One episode, played by whoever calls. ``written`` is told every session's record as soon as it is final."""

    def __init__(
        self, plot: Plot, *, sessions: int | None = None, written: Callable[[StepRecord], None] | None = None
    ) -> None:
        """Raise :class:`UserError` for a benchmark that is not of the KTD-Fin family."""
        if plot.benchmark.protocol != "ktdfin":
            raise UserError(f"'{plot.benchmark.id}' cannot be played over MCP", mend="choose ktdfin-v1 or its kin")
        self.journal: list[StepRecord] = []
        self._written = written
        self._market = Market(plot.snapshot, plot.benchmark.market)
        self._left = len(self._market) if sessions is None else min(sessions, len(self._market))
        self._protocol = open_protocol(plot.benchmark)
        info = EpisodeInfo(episode=plot.episode.key, seed=plot.episode.seed, rules=self._market.rules)
        self._protocol.begin(info, conversation_rng(plot.episode, plot.snapshot.name))
        self._turn = asyncio.Lock()
        self._ids = itertools.count(1)
        self._seen: Observation | None = self._market.reset()
        self._dialogue: Dialogue | None = None
        self._asked: AskModel | None = None
        self._open()

    @property
    def instructions(self) -> str:
        """What a client should know before it starts."""
        return _ABOUT

    @property
    def over(self) -> bool:
        """Whether the last session was decided."""
        return self._asked is None

    @property
    def earned(self) -> float | None:
        """The return so far; None before the first session is over."""
        if not self.journal:
            return None
        start = next(event.cash for event in self.journal[0].opening if isinstance(event, Deposited))
        return [event.nav for event in self.journal[-1].events if isinstance(event, Marked)][-1] / start - 1.0

    def tools(self) -> Sequence[ToolSpec]:
        """Return the market's tools, the submission, and ``observe``."""
        return (OBSERVE, *SPECS, SUBMIT)

    async def call(self, name: str, arguments: dict[str, Any]) -> Said:
        """Answer one call."""
        async with self._turn:
            if self._asked is None:
                return Said(f"The episode is over after {len(self.journal)} sessions.", wrong=name != OBSERVE.name)
            if name == OBSERVE.name:
                return Said(_joined(self._asked.messages))
            text = msgspec.json.encode(arguments).decode()
            return self._pass_on(ToolCall(id=f"mcp-{next(self._ids)}", name=name, arguments=text))

    def _pass_on(self, call: ToolCall) -> Said:
        assert self._asked is not None
        if call.name == NAME and self._asked.purpose == "research":
            self._send(ModelReply())  # done with research: the submission is asked for next
            assert self._asked is not None
        known = len(self._asked.messages)
        decision = self._send(ModelReply(calls=(call,), stop="tool_calls"))
        if decision is not None:
            return self._finish(decision)
        new = [message for message in self._asked.messages[known:] if message.role != "assistant"]
        if call.name == NAME or (self._asked.purpose == "submit" and self._asked.attempt > 1):
            return Said(_joined(new), wrong=True)
        answer = _joined([message for message in new if message.call_id == call.id])
        return Said(answer, wrong=answer.startswith('{"error":'))

    def _send(self, reply: ModelReply) -> Decision | None:
        assert self._dialogue is not None
        try:
            self._asked = self._dialogue.send(reply)
        except StopIteration as done:
            decision: Decision = done.value
            return as_recorded(decision)
        return None

    def _finish(self, decision: Decision) -> Said:
        """Carry a decision out, go on to the next session, and say so."""
        assert self._seen is not None
        step = self._market.step(decision)
        self._protocol.remember(self._seen, decision)
        self.journal.append(step.record)
        if self._written is not None:
            self._written(step.record)
        self._seen, self._left = step.observation, self._left - 1
        self._open()
        taken = decision.status == "ok"
        first = "Accepted." if taken else "Nothing is traded today: the attempts are used up."
        following = "The episode is over." if self._asked is None else _joined(self._asked.messages)
        return Said(f"{first}\n\n{following}", wrong=not taken)

    def _open(self) -> None:
        """Begin the next session's conversation, if there is one."""
        if self._seen is None or self._left == 0:
            self._dialogue = self._asked = None
            return
        self._dialogue = self._protocol.dialogue(self._seen)
        self._asked = next(self._dialogue)


def open_episode(
    benchmark: str = "ktdfin-v1",
    settings: Mapping[str, ParamValue] | None = None,
    *,
    window: str | None = None,
    dataset: str | None = None,
    sessions: int | None = None,
    written: Callable[[StepRecord], None] | None = None,
) -> EpisodeDesk:
    """Return an episode's desk; raises :class:`UserError` for whatever a run would refuse."""
    plot = plots_for(benchmark, dict(settings or {}), window=window, dataset=dataset, seeds=1)[0]
    return EpisodeDesk(plot, sessions=sessions, written=written)


def serve_episode(
    benchmark: str,
    settings: Mapping[str, ParamValue],
    *,
    window: str | None = None,
    dataset: str | None = None,
    sessions: int | None = None,
    journal: Path | None = None,
) -> float | None:
    """Serve an episode over standard input and output until the client leaves; returns what it earned.

    ``journal`` must not exist; each session's record is on disk before the next one is shown. Raises
    :class:`UserError`.
    """
    with ExitStack() as stack:
        written = None if journal is None else _appending(stack.enter_context(_new_file(journal)))
        desk = open_episode(
            benchmark, settings, window=window, dataset=dataset, sessions=sessions, written=written
        )
        asyncio.run(serve_stdio(desk))
        return desk.earned


def _new_file(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", mend="name a new file") from error


def _appending(file: BinaryIO) -> Callable[[StepRecord], None]:
    def write(record: StepRecord) -> None:
        file.write(encode_line(record))
        file.flush()

    return write


def _joined(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.text for message in messages if message.text.strip())
