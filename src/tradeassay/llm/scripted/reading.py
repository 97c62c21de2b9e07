"""How a scripted model reads a request and answers it: the convention every day protocol keeps.

A language model reads the prose of a prompt; a scripted model reads the same as data, beside the text, in
``AskModel.given``: ``observation`` is the payload, ``feedback`` what was wrong with the answer before. Prompts of
the first versions carried both in the text; these are still read where they are found, for old runs.

**Payload.** Beside the text, or in old prompts: a *user* message holds one fenced block ```` ```json ```` whose
object has the key ``kind`` (:data:`STOCKBENCH_OVERVIEW`, :data:`KTDFIN_OBSERVATION` ...). The last such block of
the conversation counts. The closing fence is at the start of a line, and the JSON has no raw line break inside a
string, which any JSON encoder guarantees. Blocks without ``kind`` are prose. Fields not named below are ignored:
a payload may hold more. Where no message holds a payload, the typed question beside the messages is it
(``AskModel.given.observation``).

**Feedback.** After a rejected answer the protocol appends a user message; if it holds a block
``{"kind": "feedback", "failures": [{"kind": "schema", "detail": "...", "stock_id" | "symbol": optional}, ...]}``
scripted models see it, and leave alone what it objects to.
``AskModel.attempt`` counts from 1.

**Tools.** Results come as ``tool`` messages whose text is one JSON object; the ``call_id`` leads back to the
assistant message that made the call. A failed call answers ``{"error": "..."}``. In a research stage a reply
*without* calls means "I am done". With ``must_call`` set, only that call counts as an answer.

**Answers.** Where no tool is forced, a stage's answer is one JSON object, bare or in a ``json`` fence.

StockBench (``purpose`` = ``overview``, ``analysis``, ``decision``)
    A *row* is ``{"symbol": str, "open": number, "closes": [oldest ... newest], "position": null | {"shares":
    number, "value": number, "holding_days": int}, "buyable": optional bool}``; ``value`` is at today's open.

    - ``stockbench.overview``: ``{"kind", "cash", "nav", "max_names": int, "symbols": [row ...]}``.
      Answer ``{"analyse": ["SYM", ...], "reason": "..."}``: the names, at most ``max_names``, to be analysed.
    - ``stockbench.analysis``: the same with ``"fundamentals": {...} | null`` and ``"news": [...]`` in the rows of
      the picked names. Answer ``{"notes": {"SYM": "..."}}``.
    - ``stockbench.decision``: ``{"kind", "cash", "nav", "symbols": [row ...]}`` with a row for every name that may
      be decided on. Answer ``{"decisions": {"SYM": {"action": "increase|hold|decrease|close",
      "target_cash_amount": number, "reasons": ["..."], "confidence": 0..1}}}``. ``target_cash_amount`` is the
      value that the position should have; it is the present ``value`` for ``hold`` and 0 for ``close``.

KTD-Fin (``purpose`` = ``research``, ``submit``)
    An *account* is ``{"cash": number, "nav": number, "positions": [{"stock_id": str, "shares": number,
    "sellable": number, "price": number, "value": number, "weight": number}, ...]}``; ``sellable`` leaves out what
    T+1 locks.

    - ``ktdfin.observation``: ``{"kind", "mode": "memory-only" | "fixed-candidate" | "open-research", "account",
      "constraints": {"max_weight", "max_positions", "max_candidates", "lot", "min_reason_length", "tool_calls"},
      "universe": [stock_id ...] (memory-only), "candidates": [{"stock_id": str, "factors": {NAME: number | null}},
      ...] (fixed-candidate)}``.
    - ``screen_candidates {"factors": [NAME ...], "top_k": int}`` gives ``{"candidates": [{"stock_id", "factors":
      {NAME: number | null}}, ...]}``, best first.
    - ``get_stock_snapshot {"stock_id", "lookback"}`` (``alias`` in the first version) gives ``{"stock_id",
      "bars": [...], "factors": {...},
      "prev_close"}``.
    - ``compare_candidates {"stock_ids": [...], "dims": [NAME ...]}`` (``aliases`` in the first version) gives
      ``{"grid": {stock_id: {NAME: number}}}``.
    - ``portfolio_state {}`` gives an account. ``get_market_context {}`` is not read.
    - ``risk_check {"target_weights": {stock_id: number}}`` gives ``{"violations": [...], ...}``.
    - ``submit_action``: ``{"orders": [{"stock_id", "side": "BUY" | "SELL", "confidence", "reason",
      "target_weight" | "shares"}], "overall_reason"}``.

The arena (``purpose`` = the role's name)
    ``ama.opinion``, ``ama.argument``, ``ama.risk``, ``ama.verdict`` and ``ama.lesson`` hold ``role``, ``date``,
    ``symbol``, ``position`` and whatever the role may see: ``price``, ``history``, ``momentum``, ``news``,
    ``headlines``, reports, ``opinions``, ``debate``, ``proposal``, ``risk``, ``outcomes``, ``memory``.
    The answers' shapes are in :mod:`tradeassay.agents.ama.desk`. ``stream.summary`` holds ``symbol``,
    ``language``, ``title`` and ``text`` of a news item; the answer is ``{"title": "...", "summary": "..."}``.

Code (``purpose`` = ``write``)
    ``quantcode.task``: ``{"kind", "task": an opaque name, "framework": "backtrader" | "frame", "timeframe",
    ...}``. The answer is a program in one fenced ``python`` block; ``attempt`` counts the turns.

``stock_id`` is whatever the mask shows (``asset_0007`` or a ticker); a scripted model never interprets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from tradeassay.core.dialogue import AskModel, Given, Message, ModelReply, ToolCall
from tradeassay.llm.json_text import fenced_blocks, parse_object

STOCKBENCH_OVERVIEW = "stockbench.overview"
STOCKBENCH_ANALYSIS = "stockbench.analysis"
STOCKBENCH_DECISION = "stockbench.decision"
KTDFIN_OBSERVATION = "ktdfin.observation"
FEEDBACK = "feedback"

REMEMBERED = 64
"""How many texts' decoded JSON is kept: a day's later requests repeat the earlier ones' messages."""

Json = Mapping[str, object]
"""A decoded JSON object. Only this package reads it; it leaves only as text."""


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was made in this conversation and what came back (``body`` is None unless it is an object)."""

    name: str
    arguments: str
    body: dict[str, object] | None


class ReadComplaint(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was wrong with an earlier answer; ``name`` is the name it was about, if any."""

    kind: str
    detail: str
    name: str | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a scripted model sees of a request. ``kind`` is "" when there is no payload.

    ``one_word``: tools call a stock ``stock_id`` (``alias`` in the first version of KTD-Fin).
    """

    kind: str
    payload: dict[str, object]
    feedback: tuple[ReadComplaint, ...]
    results: tuple[ToolResult, ...]
    purpose: str
    tools: tuple[str, ...]
    must_call: str | None
    attempt: int
    one_word: bool = True

    def last(self, tool: str) -> dict[str, object] | None:
        """Return the newest usable result of a tool, or None."""
        for result in reversed(self.results):
            if result.name == tool and result.body is not None and "error" not in result.body:
                return result.body
        return None

    @property
    def tries(self) -> int:
        """Which attempt at a decision this is. A research stage counts its turns, which are not attempts."""
        return self.attempt if self.must_call is not None or not self.tools else 1

    def called(self, tool: str) -> bool:
        """Tell whether a tool was called, whatever came of it."""
        return any(result.name == tool for result in self.results)


def read_request(request: AskModel) -> Reading:
    """Read a request as the convention says. Never raises for a prompt that does not follow it."""
    payload: dict[str, object] = {}
    payload_at = -1
    feedback: list[ReadComplaint] = []
    for at, message in enumerate(request.messages):
        if message.role != "user":
            continue
        for body in payload_blocks(message.text):
            if body["kind"] == FEEDBACK:
                feedback.extend(_failures(body))
            else:
                payload, payload_at = body, at
                feedback.clear()
    if not payload and isinstance(request.given, Given):
        payload = _typed(request.given)
        told = request.given.feedback
        feedback = [] if told is None else list(_failures(_result_body(told) or {}))
    return Reading(
        kind=str(payload.get("kind", "")),
        payload=payload,
        feedback=tuple(feedback),
        results=tuple(_results(request.messages[payload_at + 1 :])),
        purpose=request.purpose,
        tools=tuple(tool.name for tool in request.tools),
        must_call=request.must_call,
        attempt=request.attempt,
        one_word=not any('"aliases"' in tool.schema for tool in request.tools),
    )


def _typed(given: Given) -> dict[str, object]:
    """Return the question that stands beside the text, where it names its kind."""
    body = parse_object(given.observation)
    return body if body is not None and isinstance(body.get("kind"), str) else {}


@lru_cache(maxsize=REMEMBERED)
def payload_blocks(text: str) -> tuple[dict[str, object], ...]:
    """Return the objects of a text's ``json`` fences that have a text under ``kind``. They must not be changed."""
    bodies = [parse_object(block.text) for block in fenced_blocks(text) if block.label == "json"]
    return tuple(body for body in bodies if body is not None and isinstance(body.get("kind"), str))


@lru_cache(maxsize=REMEMBERED)
def _result_body(text: str) -> dict[str, object] | None:
    return parse_object(text)


def objects(value: object) -> list[Json]:
    """Return the objects of a JSON array; anything else in it, or no array at all, is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(value: object) -> Json:
    """Return a JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """Return the texts of a JSON array."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def number(value: object, default: float = 0.0) -> float:
    """Return a JSON number (true and false do not count), or the default."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _failures(body: Json) -> Iterator[ReadComplaint]:
    for failure in objects(body.get("failures")):
        name = failure.get("stock_id", failure.get("symbol"))
        yield ReadComplaint(
            kind=str(failure.get("kind", "")),
            detail=str(failure.get("detail", "")),
            name=name if isinstance(name, str) else None,
        )


def _results(messages: tuple[Message, ...]) -> Iterator[ToolResult]:
    calls = {call.id: call for message in messages for call in message.calls}
    for message in messages:
        call = calls.get(message.call_id or "") if message.role == "tool" else None
        if call is not None:
            yield ToolResult(name=call.name, arguments=call.arguments, body=_result_body(message.text))


def dump(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


def say(text: str) -> ModelReply:
    """Answer with plain text."""
    return ModelReply(text=text)


def say_json(value: object) -> ModelReply:
    """Answer with one JSON object."""
    return ModelReply(text=dump(value))


def call(request: AskModel, calls: Sequence[tuple[str, Mapping[str, object] | str]], text: str = "") -> ModelReply:
    """Call tools; arguments may be given as raw text. Ids follow from the place in the conversation."""
    here = len(request.messages)
    made = tuple(
        ToolCall(id=f"s{here}-{at}", name=name, arguments=given if isinstance(given, str) else dump(given))
        for at, (name, given) in enumerate(calls)
    )
    return ModelReply(text=text, calls=made, stop="tool_calls")
