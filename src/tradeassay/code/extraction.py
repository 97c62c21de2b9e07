"""The program inside a model's answer, or what came instead of one."""

from __future__ import annotations

import ast
import re
from typing import Final, Literal

import msgspec

from tradeassay.code.source import parses

LONGEST_ANSWER: Final = 2_000_000
"""Characters of an answer that are read. A longer one is cut, and the note says so."""

Form = Literal["fenced", "unclosed", "bare", "none"]
NoCode = Literal["", "empty", "prose", "loop", "cut off"]

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w.+-]*)[^\n`]*$")
_PYTHON: Final = frozenset({"python", "py", "python3", "py3", ""})
_CODE_LINE = re.compile(r"^(import |from \w[\w.]* import |class \w|def \w|@\w)")
_LOOP_LINES: Final = 12
"""A line that occurs this often and makes up most of the text is a loop."""


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``code`` is None exactly when ``form`` is ``none``; ``missing`` then says what came instead.

    ``unclosed`` is a fence that never ends: an answer that was cut off in the middle of its program. ``blocks``
    counts the candidates that the program was chosen from.
    """

    code: str | None
    form: Form
    blocks: int = 0
    missing: NoCode = ""
    note: str = ""


def extract(answer: str, *, cut_off: bool = False) -> Extraction:
    """Return the program of an answer; ``cut_off`` says that the model ran out of tokens.

    Fenced blocks come first. Among several, the last one that defines a strategy is taken (a model that corrects
    itself ends with what it means), then the last one that is Python at all, then the last. Without fences the
    whole answer, or its longest run of Python after prose, is the program. Thoughts in tags never count.
    """
    note = ""
    if len(answer) > LONGEST_ANSWER:
        answer, note = answer[:LONGEST_ANSWER], f"only the first {LONGEST_ANSWER} characters were read"
    text = _THOUGHT.sub("", answer)
    thinking = _OPEN_THOUGHT.search(text)
    if thinking is not None:  # never closed: what follows is still thought
        text = text[: thinking.start()]
    closed, open_block = _blocks(text)
    if closed:
        return Extraction(code=_best(closed), form="fenced", blocks=len(closed), note=note)
    if open_block is not None and open_block.strip():
        return Extraction(code=open_block, form="unclosed", blocks=1, note=note or "the fence is never closed")
    bare = _bare(text)
    if bare is not None:
        return Extraction(code=bare, form="bare", blocks=1, note=note)
    return Extraction(code=None, form="none", missing=_missing(answer, thinking is not None, cut_off), note=note)


def _blocks(text: str) -> tuple[list[str], str | None]:
    """Return the Python blocks that are closed, and the rest of one that is not."""
    blocks: list[str] = []
    fence, label, lines = "", "", list[str]()
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence:
            if found is not None:
                fence, label, lines = found[1], found[2].lower(), []
        elif found is not None and found[1].startswith(fence) and not found[2]:
            if label in _PYTHON:
                blocks.append("\n".join(lines) + "\n")
            fence = ""
        else:
            lines.append(line)
    usable = [block for block in blocks if block.strip()]
    return usable, "\n".join(lines) + "\n" if fence and label in _PYTHON else None


def _best(blocks: list[str]) -> str:
    trees = [parses(block) for block in blocks]
    for wanted in (_defines_strategy, _defines_something, _is_python):
        for block, tree in zip(reversed(blocks), reversed(trees), strict=True):
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


def _is_python(tree: ast.Module) -> bool:
    return bool(tree.body)


def _bare(text: str) -> str | None:
    """Return a program without fences: from the first line that looks like code to the last that still parses."""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if _CODE_LINE.match(line)]
    if not starts:
        return None
    body = lines[starts[0] :]
    broken = "\n".join(body) + "\n"
    # Prose after the program is cut off paragraph by paragraph; a program with a mistake of its own stays whole.
    ends = [len(body), *(at for at in range(len(body) - 1, 0, -1) if not body[at].strip())]
    for end in ends[:50]:
        source = "\n".join(body[:end]) + "\n"
        tree = parses(source)
        if tree is not None and _defines_something(tree):
            return source
    looks = sum(bool(_CODE_LINE.match(line)) or line.startswith((" ", "\t")) for line in body)
    return broken if looks >= max(3, len(body) // 2) else None


def _missing(answer: str, thinking: bool, cut_off: bool) -> NoCode:
    if not answer.strip():
        return "cut off" if cut_off else "empty"
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    most = max(map(lines.count, set(lines[-200:])), default=0)
    if thinking or (most >= _LOOP_LINES and most * 2 >= len(lines[-200:])):
        return "loop"
    return "cut off" if cut_off else "prose"
