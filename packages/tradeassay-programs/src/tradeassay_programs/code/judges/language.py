"""Ask a model whether a program follows its task. No I/O here.

:func:`judge_dialogue` yields :class:`~tradeassay_bench.core.dialogue.AskModel` requests and
receives the replies. The caller supplies the model, which answers each criterion in strict JSON. If
a judge cannot be reached or its answer is not in this form, the check is not scored.

Foreign text inside the prompt is quoted line by line, with line numbers, between marks that contain
a hash of the text. To end the quotation early, a text would have to contain its own SHA-256. The
prompt has no random part, so the same program always gets the same prompt.
"""

from __future__ import annotations

import ast
from collections.abc import Generator
from string import Template
from typing import Final, Literal, Protocol

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply
from tradeassay_bench.llm.prompting import fenced_blocks, parse_object
from tradeassay_programs.code.extraction import NOTHING_SPENT, exchange
from tradeassay_programs.code.judges.decisions import CRITERIA, Criterion, LanguageVerdict
from tradeassay_programs.code.program_source import parses

_BLANKS: Final = {
    "system": set[str](),
    "question": {"task_mark", "program_mark", "advice", "task", "program"},
    "again": {"problem", "left"},
}


class JudgePrompts(msgspec.Struct, frozen=True, kw_only=True):
    """The three texts of the judge. ``$name`` is a placeholder.

    - ``system`` has no placeholders.
    - ``question`` quotes ``$task`` and ``$program`` after ``$task_mark``, ``$program_mark`` and
      ``$advice``.
    - ``again`` is sent after an unreadable answer. It has ``$problem`` and ``$left``.

    Raises :class:`UserError` for a text with different placeholders.
    """

    system: str
    question: str
    again: str

    def __post_init__(self) -> None:
        for name, wanted in _BLANKS.items():
            found = set(Template(getattr(self, name)).get_identifiers())
            if found != wanted:
                raise UserError(
                    f"the judge's prompt '{name}' has the blanks {sorted(found)}",
                    hint=f"it needs exactly {sorted(wanted)}",
                )

    @property
    def sha256(self) -> str:
        return sha256_of(self)


def quote(kind: str, text: str) -> str:
    """Return ``text`` between marks, line by line, with control and invisible characters
    escaped.
    """
    mark = quote_mark(kind, text)
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        visible = (c if c.isprintable() or c == "\t" else f"\\u{{{ord(c):x}}}" for c in line)
        lines.append(f"{number:04d}| {''.join(visible)}")
    return "\n".join([f"<<<{mark}", *lines, f"{mark}>>>"])


def quote_mark(kind: str, text: str) -> str:
    """Return the mark around a quotation, e.g. ``PROGRAM-5f0c...``: 32 hex digits of the text's
    hash.
    """
    return f"{kind.upper()}-{sha256_bytes(text.encode('utf-8', 'surrogatepass'))[:32]}"


def without_remarks(source: str) -> str:
    """Return a program without comments and docstrings.

    Only executable code remains, with no text addressed to its reader.
    """
    tree = parses(source)
    if tree is None:
        return source
    mute = (ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.expr_context)
    for node in ast.walk(tree):
        for part in ("body", "orelse", "finalbody"):
            statements = getattr(node, part, None)
            if isinstance(statements, list) and statements:
                # An expression of constants has no effect. It can only address a reader.
                kept = [
                    one
                    for one in statements
                    if not (
                        isinstance(one, ast.Expr)
                        and all(isinstance(n, mute) for n in ast.walk(one.value))
                    )
                ]
                setattr(node, part, kept or ([ast.Pass()] if part == "body" else []))
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (
        RecursionError,
        ValueError,
    ):  # The program is nested too deeply, or has a number too long to write.
        return source


JUDGE_KIND: Final = "quantcode.judge"
"""The ``kind`` of the payload, from which a scripted model recognises the question."""
_LONGEST_REASON: Final = 2_000


class JudgeClient(Protocol):
    """A language model that judges: its prompts and a method to query it."""

    @property
    def name(self) -> str: ...

    @property
    def prompts(self) -> JudgePrompts: ...

    def ask(self, request: AskModel) -> ModelReply: ...


class LanguageJudgeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the language judge.

    ``retries`` is the number of times that an invalid answer is sent back. ``remarks`` shows
    comments and docstrings to the judge. By default it sees executable code only, because no
    criterion needs more.
    """

    retries: int = 2
    remarks: bool = False


class _Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    verdict: Literal["pass", "fail"]
    reason: str


_Answers = msgspec.defstruct(
    "_Answers", [(name, _Answer) for name in CRITERIA], forbid_unknown_fields=True
)

_ONE: Final = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["pass", "fail"]},
        "reason": {"type": "string"},
    },
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}
_ALL: Final = {
    "type": "object",
    "properties": dict.fromkeys(CRITERIA, _ONE),
    "required": list(CRITERIA),
}
ANSWER_SCHEMA: Final = msgspec.json.encode({**_ALL, "additionalProperties": False}).decode()
"""The JSON schema of an answer, as text."""


class JudgeCase(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the judge: a task's wording and a program.

    ``indicators`` and ``direction`` are advice from the task.
    """

    task_id: str
    description: str
    source: str
    framework: str = "backtrader"
    indicators: tuple[str, ...] = ()
    direction: str = ""


def judge_dialogue(
    case: JudgeCase,
    prompts: JudgePrompts,
    *,
    judge: str = "",
    config: LanguageJudgeConfig | None = None,
) -> Generator[AskModel, ModelReply, LanguageVerdict]:
    """Ask a model about one program, and return its verdict.

    Without an answer the verdict is ``not_scored``.
    """
    config = config or LanguageJudgeConfig()
    shown = case.source if config.remarks else without_remarks(case.source)
    marks = {
        "task_mark": quote_mark("task", case.description),
        "program_mark": quote_mark("program", shown),
    }
    quoted = {"task": quote("task", case.description), "program": quote("program", shown)}
    directions = {
        "long": "it only buys",
        "short": "it only sells short",
        "both": "it buys and sells short",
    }
    known = [f"indicators: {', '.join(case.indicators)}"] if case.indicators else []
    known += [directions[case.direction]] if case.direction in directions else []
    advice = "An equivalent formulation of the task's rules is as good as a literal one."
    if known:
        told = f"A reader would look for this ({'; '.join(known)})"
        advice = f"{told}, but an equivalent formulation is as good."
    question = Template(prompts.question).substitute(advice=advice, **marks, **quoted)
    messages = [Message(role="system", text=prompts.system), Message(role="user", text=question)]
    payload = {
        "kind": JUDGE_KIND,
        "task": case.task_id,
        "framework": case.framework,
        "expected_indicators": case.indicators,
        "direction": case.direction,
        **marks,
    }
    given = Given(session="", rules="{}", observation=msgspec.json.encode(payload).decode())
    answers: list[str] = []
    usage, problem = NOTHING_SPENT, ""
    criteria: tuple[Criterion, ...] = ()
    for attempt in range(1, config.retries + 2):
        reply = yield AskModel(
            purpose="judge",
            messages=tuple(messages),
            answer_schema=ANSWER_SCHEMA,
            attempt=attempt,
            given=given,
        )
        usage = usage.plus(reply.usage)
        answers.append(reply.text)
        if reply.error is not None:
            problem = f"the judge gave no answer ({reply.error_kind or 'error'}): {reply.error}"
            break
        read = read_answer(reply.text)
        if not isinstance(read, str):
            criteria = read
            break
        problem = f"the judge kept to no form in {config.retries + 1} attempts, last: {read}"
        left = config.retries + 1 - attempt
        again = Template(prompts.again).substitute(
            problem=read, left=f"{left} attempt{'s' * (left != 1)}"
        )
        messages += exchange(reply, again)
    against = [criterion for criterion in criteria if criterion.verdict == "fail"]
    status: Literal["passed", "failed", "not_scored"] = "failed" if against else "passed"
    if not criteria:
        status = "not_scored"
    return LanguageVerdict(
        status=status,
        reason="; ".join(f"{one.name}: {one.reason}" for one in against) if criteria else problem,
        criteria=criteria,
        judge=judge,
        prompts=prompts.sha256,
        attempts=len(answers),
        answers=tuple(answers),
        usage=usage,
    )


def read_answer(text: str) -> tuple[Criterion, ...] | str:
    """Return the criteria of an answer, or the reason why it is invalid.

    Prose is never interpreted.
    """
    body = parse_object(text)
    if body is None:
        blocks = [
            found
            for block in fenced_blocks(text)
            if (found := parse_object(block.text)) is not None
        ]
        if len(blocks) != 1:
            return "the answer is not one JSON object"
        body = blocks[0]
    try:
        answers = msgspec.convert(body, _Answers)
    except msgspec.ValidationError as error:
        return str(error)
    criteria = []
    for name in CRITERIA:
        answer: _Answer = getattr(answers, name)
        if not any(letter.isalpha() for letter in answer.reason):
            return f"'{name}' has no reason"
        reason = answer.reason.strip()[:_LONGEST_REASON]
        criteria.append(Criterion(name=name, verdict=answer.verdict, reason=reason))
    return tuple(criteria)
