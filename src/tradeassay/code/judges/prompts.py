"""What a language judge is asked with: texts with blanks, and their hash."""

from __future__ import annotations

from string import Template

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of

_BLANKS = {"system": set[str](), "question": {"payload", "task", "program"}, "again": {"problem", "left"}}


class JudgePrompts(msgspec.Struct, frozen=True, kw_only=True):
    """The three texts of the judge; ``$name`` marks a blank.

    ``system`` has none. ``question`` has ``$payload``, ``$task`` and ``$program``, ``again`` (an answer could
    not be read) has ``$problem`` and ``$left``. Raises :class:`UserError` for a text whose blanks are others.
    """

    system: str
    question: str
    again: str
    version: str

    def __post_init__(self) -> None:
        for name, wanted in _BLANKS.items():
            found = set(Template(getattr(self, name)).get_identifiers())
            if found != wanted:
                raise UserError(
                    f"the judge's prompt '{name}' has the blanks {sorted(found)}",
                    mend=f"it needs exactly {sorted(wanted)}",
                )

    @property
    def sha256(self) -> str:
        """The hash under which a verdict names what was asked."""
        return sha256_of(self)

    def ask(self, *, payload: str, task: str, program: str) -> str:
        """Return the question filled in."""
        return Template(self.question).substitute(payload=payload, task=task, program=program)

    def ask_again(self, *, problem: str, left: str) -> str:
        """Return the words for an answer that could not be read."""
        return Template(self.again).substitute(problem=problem, left=left)
