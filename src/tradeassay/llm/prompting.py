"""Prompts kept as versioned files, and the JSON object inside an answer: what all dialogues share."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

from tradeassay.core.hashing import sha256_bytes
from tradeassay.llm.json_text import fenced_blocks, outer_objects, parse_object

_ROOT = "tradeassay."


class PromptFolder:
    """The prompts of one protocol: text files ``<name>.<version>.txt`` in a package of their own.

    A change of one word is a new version of the files and of the benchmark.
    """

    def __init__(self, package: str, version: str, names: tuple[str, ...]) -> None:
        self.package = package
        self.version = version
        self.names = names

    @property
    def files(self) -> tuple[str, ...]:
        """Where the files are inside the package ``tradeassay``."""
        folder = self.package.removeprefix(_ROOT).replace(".", "/")
        return tuple(f"{folder}/{name}.{self.version}.txt" for name in self.names)

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of every prompt's file, by name and version."""
        names = [f"{name}.{self.version}" for name in self.names]
        return {name: sha256_bytes((files(self.package) / f"{name}.txt").read_bytes()) for name in names}

    def text(self, name: str) -> str:
        """Return a prompt as it is, its blanks open."""
        return (files(self.package) / f"{name}.{self.version}.txt").read_text(encoding="utf-8")

    def fill(self, name: str, **values: object) -> str:
        """Return a prompt with its blanks filled in; a blank without a value raises :class:`KeyError`."""
        pieces = _pieces(self.package, f"{name}.{self.version}.txt")
        return "".join([str(values[piece]) if blank else piece for piece, blank in pieces])


@cache
def _pieces(package: str, file: str) -> tuple[tuple[str, bool], ...]:
    """Return a prompt in pieces, texts and names of blanks (``$name``, ``${name}``; ``$$`` is a dollar)."""
    text, pieces, at = (files(package) / file).read_text(encoding="utf-8"), [], 0
    for found in Template.pattern.finditer(text):
        if found["invalid"] is not None:
            raise ValueError(f"{file}: a lone dollar at character {found.start()}; write $$")
        name = found["named"] or found["braced"]
        pieces += [(text[at : found.start()], False), (name or "$", name is not None)]
        at = found.end()
    return (*pieces, (text[at:], False))


def answer_object(text: str, key: str) -> dict[str, object] | None:
    """Return the JSON object that a text answers with, None when there is none.

    The search order is: the whole text, the last fenced block, the last ``{...}`` in the prose. Where several
    blocks are objects, the last one that has ``key`` wins: a model that thinks aloud concludes at the end.
    """
    whole = parse_object(text)
    if whole is not None:
        return whole
    blocks = [parse_object(block.text) for block in fenced_blocks(text)]
    found = [body for body in blocks if body is not None]
    if not found:
        found = [body for body in map(parse_object, outer_objects(text)) if body is not None]
    keyed = [body for body in found if key in body]
    return keyed[-1] if keyed else found[-1] if found else None


def unclosed_object(text: str) -> dict[str, object] | None:
    """Return the JSON object that a text is, fences aside, but for its last brace; None for anything else."""
    inner = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    return None if inner.endswith("}") else parse_object(f"{inner}}}") or None
