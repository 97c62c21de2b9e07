"""Who is asking which model what, and the cost so far: what a terminal shows while models play."""

from __future__ import annotations

from tradeassay.core.dialogue import Usage
from tradeassay.play.dialogue_log import Spending

MOST_SHOWN = 3


class Talk:
    """Follows the conversations of a run."""

    def __init__(self) -> None:
        self.spending = Spending()
        self._doing: dict[str, str] = {}

    def asked(self, key: str, agent: str, session: str, purpose: str) -> None:
        """Take note that an episode asks."""
        self._doing[key] = f"{agent} {session} {purpose}"

    def answered(self, usage: Usage) -> None:
        """Take note of an answer."""
        self.spending = self.spending.plus(usage)

    def left(self, key: str) -> None:
        """Take note that an episode ended."""
        self._doing.pop(key, None)

    def who(self) -> str:
        """Return who is doing what, the first few of them."""
        shown = list(self._doing.values())[:MOST_SHOWN]
        more = len(self._doing) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

    def words(self) -> str:
        """Return all of it in one line."""
        who = self.who()
        return f"{self.spending.words()}{f'; {who}' if who else ''}"
