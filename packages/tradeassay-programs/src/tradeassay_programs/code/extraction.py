"""Extract the program from a model's answer.

:func:`extract` reads an answer as a person would. It also accepts programs from fences that are
indented or labelled oddly, from tags, from a JSON text, from a class whose imports are in the
previous fence, and a single function under another name. :func:`extract_block` accepts only the
plain forms. Neither guesses if a reader could not decide. The cost of an answer is bounded, because
models and programs choose its length.
"""

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from functools import reduce
from typing import Final, Literal

import msgspec

from tradeassay_bench.core.dialogue import Message, ModelReply, Usage
from tradeassay_bench.llm.prompting import parse_object
from tradeassay_programs.code.program_source import LONGEST_SOURCE, parses, strategy_classes
from tradeassay_programs.code.task import Framework

LONGEST_ANSWER: Final = 2_000_000
"""Maximum number of characters searched for a block.

A longer text is cut, and the note states it.
"""
LONGEST_PROGRAM_ANSWER: Final = 300_000
"""The same limit for the answer from a program: about eighty thousand tokens."""

Form = Literal["fenced", "unclosed", "bare", "none"]
NoCode = Literal["", "empty", "prose", "loop", "cut off"]

_OPEN_THOUGHT = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w.+-]*+)[^\n`]*+$")
_PYTHON: Final = frozenset({"python", "py", "python3", "py3", ""})
_CODE_LINE = re.compile(r"^(import |from \w[\w.]* import |class \w|def \w|@\w)")
_PARSED: Final = 2 * LONGEST_SOURCE
"""Maximum number of characters parsed to choose among candidates.

Candidates beyond this limit are not parsed.
"""
_LOOP_LINES: Final = 12
"""A line with this number of repetitions that makes up most of the text is a loop."""


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an extraction.

    - ``code`` is None exactly if ``form`` is ``none``. ``missing`` then describes the answer.
    - ``unclosed`` is a fence without an end. The answer was cut off within its program.
    - ``blocks`` is the number of candidates from which the program was chosen.
    - ``to_the_end`` means that the program, or a later one, extends to the last character of the
      answer.
    """

    code: str | None
    form: Form
    blocks: int = 0
    missing: NoCode = ""
    note: str = ""
    to_the_end: bool = False


def extract_block(answer: str, *, cut_off: bool) -> Extraction:
    """Return the program of an answer, read in the plain forms.

    This is the last fenced block that defines a strategy, because a model that corrects itself puts
    its final version last. Otherwise it is the last Python block, then the last block. Without
    fences it is the longest run of Python. Thoughts are ignored.
    """
    note = ""
    if len(answer) > LONGEST_ANSWER:
        answer, note = (
            answer[:LONGEST_ANSWER],
            f"only the first {LONGEST_ANSWER} characters were read",
        )
    text, thinking = _without_thoughts(answer)
    closed, open_block = _blocks(text)
    opened = open_block is not None and bool(open_block.strip())
    if closed:
        return Extraction(
            code=_best(closed), form="fenced", blocks=len(closed), note=note, to_the_end=opened
        )
    if open_block is not None and opened:
        told = note or "the fence is never closed"
        return Extraction(code=open_block, form="unclosed", blocks=1, note=told, to_the_end=True)
    bare = _bare(text)
    if bare is not None:
        ends = text.rstrip().endswith(bare.rstrip())
        return Extraction(code=bare, form="bare", blocks=1, note=note, to_the_end=ends)
    return Extraction(
        code=None, form="none", missing=_missing(answer, thinking, cut_off), note=note
    )


def extract(
    answer: str, framework: Framework = "backtrader", *, cut_off: bool = False, last: bool = True
) -> Extraction:
    """Return the program of an answer, read as a careful person reads it.

    A ``last`` answer may have been cut off after its strategy. Lone surrogates become question
    marks, because no file can store them.
    """
    whole, answer = len(answer) <= LONGEST_PROGRAM_ANSWER, answer[:LONGEST_PROGRAM_ANSWER]
    if not answer.isascii():
        answer = answer.encode("utf-8", "replace").decode(
            "utf-8-sig"
        )  # A byte-order mark is not part of the text, as in files.
    ended, opened = _END_OF_THOUGHT.search(answer), _OPEN_THOUGHT.search(answer)
    if ended is not None and (opened is None or opened.start() > ended.start()):
        answer = answer[ended.end() :]  # A chat template has removed the start mark of the thought.
    found = extract_block(answer, cut_off=cut_off)
    if not whole:
        told = f"only the first {LONGEST_PROGRAM_ANSWER} characters were read"
        found = msgspec.structs.replace(found, note=told)
    text, _ = _without_thoughts(answer)
    fenced, _ = _blocks(text, every=True)
    tagged = [textwrap.dedent(found[2].strip("\n")) + "\n" for found in _TAGGED.finditer(text)]
    body = parse_object(text.strip()) if len(text) <= _PARSED else None
    quoted = [value for value in (body or {}).values() if isinstance(value, str) and "\n" in value]
    candidates = [*tagged, *fenced] if fenced or tagged else quoted
    trees = _parsed(candidates)
    wanted = [
        place
        for place, tree in enumerate(trees)
        if tree is not None and _is_program(tree, framework)
    ]
    if not wanted:
        return _whole_class(found, framework) if last else found
    place = wanted[-1]
    code, tree, note = candidates[place], trees[place] or ast.Module([], []), found.note
    if not any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body):
        # Earlier fences that contain only imports belong to a program without imports.
        heads = [
            candidate
            for candidate, other in zip(candidates[:place], trees[:place], strict=True)
            if other
            and other.body
            and all(isinstance(node, ast.Import | ast.ImportFrom) for node in other.body)
        ]
        if heads:
            code, note = f"{heads[-1]}\n{code}", "the imports were in a fence of their own"
    if framework == "frame" and not _defines_strategy(tree):
        name = _only_function(tree)
        code, note = (
            f"{code}\n\nsignals = {name}\n",
            f"the only function, '{name}', was taken as 'signals'",
        )
    fenced_to_the_end = found.to_the_end and found.form != "bare"
    return Extraction(
        code=code, form="fenced", blocks=len(candidates), note=note, to_the_end=fenced_to_the_end
    )


def _whole_class(found: Extraction, framework: Framework) -> Extraction:
    """Return an unclosed program without its truncated last statement.

    The program is returned unchanged if its strategy is incomplete.
    """
    code = found.code or ""
    if found.form != "unclosed" or len(code) > _PARSED or parses(code) is not None:
        return found
    lines = code.splitlines()
    last = next(
        (at for at in range(len(lines) - 1, 0, -1) if lines[at] and not lines[at][0].isspace()), 0
    )
    tree = parses("\n".join(lines[:last]) + "\n")
    if tree is None or lines[last].startswith(("class ", "@")) or not _is_program(tree, framework):
        return found
    told = "the statement after the strategy that was cut off is left out"
    return msgspec.structs.replace(found, code="\n".join(lines[:last]) + "\n", note=told)


def _parsed(candidates: list[str]) -> list[ast.Module | None]:
    """Return the syntax trees of candidates.

    The last candidates are parsed first, within the allowance.
    """
    left = _PARSED
    trees: list[ast.Module | None] = []
    for candidate in reversed(candidates):
        left -= len(candidate)
        trees.append(parses(candidate) if left >= 0 else None)
    return trees[::-1]


def _is_program(tree: ast.Module, framework: Framework) -> bool:
    if framework == "frame":
        return _defines_strategy(tree) or _only_function(tree) is not None
    return bool(strategy_classes(tree)) or any(
        isinstance(node, ast.ClassDef)
        and any(
            "Strategy" in (getattr(base, "attr", ""), getattr(base, "id", ""))
            for base in node.bases
        )
        for node in tree.body
    )


def _only_function(tree: ast.Module | None) -> str | None:
    """Return the name of the only top-level function that takes one table, or None."""
    named = [node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef)]
    if len(named) != 1:
        return None
    given = named[0].args
    needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return named[0].name if needed == 1 and not any(d is None for d in given.kw_defaults) else None


_TAGGED = re.compile(
    r"[<\[](python|code)[>\]]((?:(?![<\[]/?(?:python|code)[>\]]).)*+)[<\[]/\1[>\]]",
    re.IGNORECASE | re.DOTALL,
)
"""A program between [PYTHON] and [/PYTHON], or <code> and </code>, as in the training data of some
models.
"""


def _without_thoughts(answer: str) -> tuple[str, bool]:
    """Return the text outside of thoughts, and whether a thought is unclosed.

    The text after an unclosed thought is part of it.
    """
    kept: list[str] = []
    lower = answer.lower()
    at = 0
    while (found := _OPEN_THOUGHT.search(answer, at)) is not None:
        kept.append(answer[at : found.start()])
        mark = f"</{found[1].lower()}>"
        end = lower.find(mark, found.end())
        if end < 0:
            return "".join(kept), True
        at = end + len(mark)
    return "".join([*kept, answer[at:]]), False


def _blocks(text: str, *, every: bool = False) -> tuple[list[str], str | None]:
    """Return the closed Python blocks and the content of an unclosed block.

    With ``every`` all closed blocks are returned.
    """
    blocks: list[str] = []
    fence, label, lines = "", "", list[str]()
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence:
            if found is not None:
                fence, label, lines = found[1], found[2].lower(), []
        elif found is not None and found[1].startswith(fence) and not found[2]:
            if every:
                blocks.append(textwrap.dedent("\n".join(lines)) + "\n")
            elif label in _PYTHON:
                blocks.append("\n".join(lines) + "\n")
            fence = ""
        else:
            lines.append(line)
    usable = [block for block in blocks if block.strip()]
    return usable, "\n".join(lines) + "\n" if fence and label in _PYTHON else None


def _best(blocks: list[str]) -> str:
    """Return the last block that defines a strategy.

    Otherwise return the last block with any definition, or the last block with code.
    """
    found = list(zip(blocks, _parsed(blocks), strict=True))[::-1]
    for wanted in (_defines_strategy, _defines_something, lambda tree: bool(tree.body)):
        for block, tree in found:
            if tree is not None and wanted(tree):
                return block
    return blocks[-1]


def _defines_strategy(tree: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.ClassDef) and node.bases)
        or (isinstance(node, ast.FunctionDef) and node.name == "signals")
        for node in tree.body
    )


def _defines_something(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in tree.body)


def _bare(text: str) -> str | None:
    """Return a program without fences, or None.

    The program extends from the first line that looks like code to the last line that still parses.
    """
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _CODE_LINE.match(line)), None)
    if start is None:
        return None
    body, left = lines[start:], _PARSED
    # Prose after the program is removed paragraph by paragraph. A program with a genuine syntax
    # error stays whole.
    ends = [len(body), *(at for at in range(len(body) - 1, 0, -1) if not body[at].strip())]
    for end in ends[:50]:
        source = "\n".join(body[:end]) + "\n"
        left -= len(source)
        if left < 0:
            break
        tree = parses(source)
        if tree is not None and _defines_something(tree):
            return source
    looks = sum(bool(_CODE_LINE.match(line)) or line.startswith((" ", "\t")) for line in body)
    return "\n".join(body) + "\n" if looks >= max(3, len(body) // 2) else None


def _missing(answer: str, thinking: bool, cut_off: bool) -> NoCode:
    if not answer.strip():
        return "cut off" if cut_off else "empty"
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    counted = Counter(lines)
    most = max((counted[line] for line in lines[-200:]), default=0)
    if thinking or (most >= _LOOP_LINES and most * 2 >= len(lines[-200:])):
        return "loop"
    return "cut off" if cut_off else "prose"


NOT_ITS_FAULT: Final = frozenset(
    {"unreachable", "rate_limited", "over_budget", "rejected", "timeout"}
)
"""Reply errors that are not the model's fault.

Other errors (refused, context, unreadable) are the model's fault.
"""

NOTHING_SPENT: Final = Usage(usd=0.0)


def no_answer(reply: ModelReply) -> str:
    """Return the reason why there is no answer by which to judge a model.

    The result is empty if the model answered or is itself to blame.
    """
    if reply.error is None or reply.error_kind not in NOT_ITS_FAULT:
        return ""
    return f"the model gave no answer ({reply.error_kind}): {reply.error}"


def exchange(reply: ModelReply, words: str) -> tuple[Message, Message]:
    return Message(role="assistant", text=reply.text), Message(role="user", text=words)


def total_usage(parts: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, parts, NOTHING_SPENT)
