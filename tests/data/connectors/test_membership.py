from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tradeassay.data.calendars import sessions_between
from tradeassay.data.connectors.ashare import STRIDE, dated_members

SESSIONS = sessions_between("24/7", "2024-01-01", "2024-04-09")
SIZE = SESSIONS.days.size


def members_at(memberships, day: str) -> set[str]:
    return {m.symbol for m in memberships if m.start <= day and (m.end is None or day <= m.end)}


@given(st.dictionaries(st.integers(1, SIZE - 1), st.frozensets(st.sampled_from("ABCDE"), min_size=1), max_size=6))
def test_changes_are_found_to_the_day(changes):
    # Changes within one stride may cancel out, which no vendor's index does; keep them a stride apart.
    rows = [row for row in sorted(changes) if all(abs(row - other) > STRIDE for other in changes if other < row)]
    truth, present = [], frozenset("A")
    for row in range(SIZE):
        present = changes[row] if row in rows else present
        truth.append(present)
    asked: list[str] = []

    def ask(day: str) -> frozenset[str]:
        asked.append(day)
        return truth[int(np.searchsorted(SESSIONS.days, np.datetime64(day)))]

    found = dated_members("IDX", SESSIONS, ask)
    for row in range(SIZE):
        assert members_at(found, str(SESSIONS.days[row])) == truth[row]
    assert len(asked) == len(set(asked)) <= SIZE


def test_an_unchanged_index_takes_few_questions():
    asked: list[str] = []

    def ask(day: str) -> frozenset[str]:
        asked.append(day)
        return frozenset({"A", "B"})

    found = dated_members("IDX", SESSIONS, ask)
    assert [(m.symbol, m.start, m.end) for m in found] == [("A", "2024-01-01", None), ("B", "2024-01-01", None)]
    assert len(asked) == 6


def test_one_session_is_enough():
    one = sessions_between("24/7", "2024-01-01", "2024-01-01")
    assert [m.symbol for m in dated_members("IDX", one, lambda day: frozenset({"A"}))] == ["A"]
