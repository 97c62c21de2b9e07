"""One item from the first question to its outcome: models are asked in the event loop, work is done in threads."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tradeassay.core.dialogue import ModelReply
from tradeassay.core.errors import RunError, SandboxError, UserError
from tradeassay.core.files import remove_temporaries
from tradeassay.core.secrets import clean_text
from tradeassay.llm import CassetteMismatch, Model, Place, parse_name
from tradeassay.play.dialogue_log import Spending
from tradeassay.runs.code.layout import CodeFolder
from tradeassay.runs.code.outcome import Answers, ItemOutcome, write_item
from tradeassay.runs.code.protocol import Ask, CodeItem, CodeProtocol, Compute, Ended, Role
from tradeassay.runs.code.work_log import WorkLog
from tradeassay.runs.outcome import one_line

OpenRole = Callable[[Role], Awaitable[Model]]
Work = Callable[[CodeItem, Any], Any]
"""Works something out, in whichever thread it is called."""

STOPS = (RunError, SandboxError, UserError, CassetteMismatch, OSError)
"""What ends a run and not an item: files, packages, sandbox or recording are not what they should be."""


async def play_item(
    protocol: CodeProtocol, item: CodeItem, place: CodeFolder, *, open_role: OpenRole, work: Work, replay: bool
) -> ItemOutcome:
    """Carry an item to its end, write its outcome and return it.

    A conversation that breaks by a mistake of ours is a failed item, with the reason. Raises what stops a run.
    """
    place.item(item.key).mkdir(parents=True, exist_ok=True)
    remove_temporaries(place.item(item.key))
    (place.item(item.key) / "error.txt").unlink(missing_ok=True)
    player = _Player(protocol, item, WorkLog(place.work(item.key), protocol.Result), open_role, work)
    try:
        record = await player.to_its_end()
        ended = protocol.ended(record)
    except STOPS:
        raise
    except Exception as error:
        record, ended = None, Ended(status="failed", reason=one_line(error), words="broke")
        (place.item(item.key) / "error.txt").write_text(
            clean_text("".join(traceback.format_exception(error))), encoding="utf-8"
        )
    outcome = ItemOutcome(
        status=ended.status,
        reason=ended.reason,
        words=ended.words,
        answers=_answers(item.model, replay),
        spent=player.spent,
        record=msgspec.Raw(msgspec.json.encode(record)),
    )
    write_item(place.outcome(item.key), outcome)
    place.work(item.key).unlink(missing_ok=True)
    return outcome


class _Player:
    def __init__(
        self, protocol: CodeProtocol, item: CodeItem, log: WorkLog, open_role: OpenRole, work: Work
    ) -> None:
        self.spent: dict[str, Spending] = {}
        self._item = item
        self._talk = protocol.talk(item)
        self._roles = protocol.roles(item)
        self._log = log
        self._open_role = open_role
        self._work = work
        self._asked = self._worked = 0

    async def to_its_end(self) -> Any:
        try:
            step = next(self._talk)
            while True:
                answer = await (self._ask(step) if isinstance(step, Ask) else self._compute(step))
                step = self._talk.send(answer)
        except StopIteration as done:
            return done.value
        finally:
            self._talk.close()

    async def _ask(self, step: Ask) -> ModelReply:
        model = await self._open_role(self._roles[step.role])
        # The number of results before it is a question's step: it stays the same however often a run is resumed.
        place = Place(episode=self._item.key, step=self._worked, sample=self._item.seed, index=self._asked)
        reply = await model.ask(step.request, place)
        self._asked += 1
        self.spent[step.role] = self.spent.get(step.role, Spending()).plus(reply.usage)
        return reply

    async def _compute(self, step: Compute) -> Any:
        self._worked += 1
        known = self._log.find(step.request)
        if known is not None:
            return known
        return await asyncio.get_running_loop().run_in_executor(None, self._work_out, step.request)

    def _work_out(self, request: Any) -> Any:
        """Work out and write down in one go: between the two a kill would lose what was paid for."""
        return self._log.add(request, self._work(self._item, request))


def _answers(model: str, replay: bool) -> Answers:
    if parse_name(model).route == "scripted":
        return "scripted"
    return "replayed" if replay else "live"
