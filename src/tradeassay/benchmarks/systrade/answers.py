"""What an answer hands in: a program and a strategy card.

Each of the two is found by itself, so that a writer who gave one of them is asked for the other alone.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TypeGuard

import msgspec

from tradeassay.benchmarks.systrade.wording import EXAMPLE, example_program
from tradeassay.code.extraction import NoCode, extract_block
from tradeassay.code.program_source import parses
from tradeassay.llm.json_text import FENCE_END, fenced_blocks, outer_objects, pairs, parse_object

CLASS = "TradingStrategy"
_JSON = re.compile(r"```json[^\n]*+\n", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+```", re.MULTILINE)


class Halves(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer holds. ``wrong`` says what is the matter with it, and is empty when it has both."""

    program: str | None = None
    card: str | None = None
    missing: NoCode = ""
    wrong: str = ""

    def beside(self, earlier: Halves) -> Halves:
        """Return this with what is missing taken from what the same writer gave before."""
        program, card = self.program or earlier.program, self.card or earlier.card
        told = "" if program is not None and card is not None else self.wrong
        return msgspec.structs.replace(self, program=program, card=card, wrong=told)


@lru_cache(maxsize=32)  # a conversation is gone through again on every resume, and by everybody who checks it
def read_halves(text: str, *, cut_off: bool = False) -> Halves:
    """Return the program and the card of an answer as a careful reader finds them.

    The program is the last block with a class that has a method ``run`` (its name does not matter where it is the
    only one), else what :func:`~tradeassay.code.extraction.extract` finds. A card is a JSON object with a strategy
    or parameters: in a block fenced as json, in any other block, or in the prose; the last of several counts. What
    repeats the example of the question is neither, nor is a program that was ``cut_off`` in the middle.
    """
    program, missing = _program(text, cut_off)
    blocks = fenced_blocks(text)
    labelled = [block.text for block in blocks if block.label == "json"]
    spans = (
        labelled,
        [block.text for block in blocks if block.label not in ("json", "python", "py")],
        list(outer_objects(_unfenced(text))),
    )
    like = (
        [one for one in group if {"strategy", "parameters"} & (parse_object(one) or {}).keys()] for group in spans
    )
    cards = next((known for known in like if known), [])
    card = next(reversed(cards or labelled), None)
    wrong = ""
    if card is not None and (parse_object(card) or {}).get("strategy") == EXAMPLE:
        card, wrong = None, f'its card is that of the example "{EXAMPLE}", not of the strategy that is asked for'
    trees = [None if text is None else parses(text) for text in (program, example_program())]
    if all(trees) and len({ast.dump(tree) for tree in trees if tree}) == 1:
        program, wrong = None, "its program is that of the example, not of the strategy that is asked for"
    elif program is None:
        wrong = f"there is no Python program in it ({missing or 'nothing that looks like one'})"
    elif card is None:
        wrong = wrong or "there is no strategy card in it"
    return Halves(program=program, card=card, missing=missing, wrong=wrong)


def _unfenced(text: str) -> str:
    kept, at = "", 0
    for opened, closed in pairs(text, _FENCE, FENCE_END):
        kept += text[at : opened.start()]
        at = closed.end()
    return kept + text[at:]


def _program(text: str, cut_off: bool) -> tuple[str | None, NoCode]:
    for block in reversed(fenced_blocks(text)):
        tree = parses(block.text) if block.label != "json" else None
        runners = [node.name for node in (tree.body if tree else ()) if _runs(node)]
        if CLASS in runners:
            return block.text, ""
        if len(runners) == 1:
            return f"{block.text}\n\n\n{CLASS} = {runners[0]}\n", ""
    found = extract_block(text, cut_off=cut_off)
    if found.code is not None and parse_object(found.code) is not None:
        return None, "prose"
    if cut_off and found.form == "unclosed":
        return None, "cut off"
    return found.code, found.missing


def _runs(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and any(
        isinstance(one, ast.FunctionDef) and one.name == "run" for one in node.body
    )
