"""Asking a model to mark somebody else's submission, blind: what it is shown and how its marks are read."""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated

import msgspec

from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.code.gates.spec import StrategySpec
from tradeassay.code.review.board import Review
from tradeassay.code.submission import Submission
from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.hashing import sha256_bytes
from tradeassay.llm.prompting import answer_object

REVIEW_KIND = "systrade.review"
ATTEMPTS = 2


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer answers."""

    fidelity: Annotated[float, msgspec.Meta(ge=1, le=10)]
    risk: Annotated[float, msgspec.Meta(ge=1, le=10)]
    strengths: str = ""
    weaknesses: str = ""


def review_dialogue(
    spec: StrategySpec, submission: Submission, *, reviewer: str, author: str
) -> Generator[AskModel, ModelReply, Review]:
    """Ask for marks once, and once more when they cannot be read. No marks are a failure, never a middle mark."""
    messages = _opening(spec, submission)
    why = ""
    for attempt in range(1, ATTEMPTS + 1):
        reply = yield AskModel(purpose="review", messages=messages, answer_schema=_SCHEMA, attempt=attempt)
        if reply.error is not None:
            why = reply.error_kind or "unreachable"
            break
        body = answer_object(reply.text, "fidelity")
        try:
            marks = msgspec.convert(body or {}, Marks)
        except msgspec.ValidationError as error:
            why = f"schema: {error}"
            said = Message(role="assistant", text=reply.text)
            payload = msgspec.json.encode({"kind": "feedback", "failures": [{"kind": "schema", "detail": why}]})
            again = PROMPTS.fill("again", reason=why, payload=payload.decode())
            messages = (*messages, said, Message(role="user", text=again))
            continue
        return Review(
            reviewer=reviewer,
            author=author,
            strategy=spec.id,
            fidelity=marks.fidelity,
            risk=marks.risk,
            strengths=marks.strengths[:1000],
            weaknesses=marks.weaknesses[:1000],
        )
    return Review(reviewer=reviewer, author=author, strategy=spec.id, fidelity=None, risk=None, failure=why)


def _opening(spec: StrategySpec, submission: Submission) -> tuple[Message, ...]:
    # A mark made from the content cannot be written into the content, so nothing inside can end the quotation.
    mark = f"<<{sha256_bytes(submission.sha256.encode())[:16]}>>"
    text = f"strategy_card.json\n{submission.card}\n\nstrategy.py\n{submission.source}"
    quoted = "\n".join(f"{mark} {line}" for line in text.splitlines())
    payload = {"kind": REVIEW_KIND, "strategy": spec.id, "lines": len(text.splitlines())}
    user = PROMPTS.fill(
        "review",
        strategy=spec.id,
        semantics=spec.semantics.canonical.decode(),
        mark=mark,
        quoted=quoted,
        payload=msgspec.json.encode(payload).decode(),
    )
    return (
        Message(role="system", text=PROMPTS.fill("review_system")),
        Message(role="user", text=user),
    )


_SCHEMA = msgspec.json.encode(msgspec.json.schema(Marks)).decode()
