import pytest

from tradeassay_programs.code.review import Review, comparisons, peer_mark, review_board, vendor_of


def review(reviewer: str, author: str, fidelity: float | None, strategy: str = "s") -> Review:
    return Review(
        reviewer=reviewer, author=author, strategy=strategy, fidelity=fidelity, risk=fidelity
    )


def test_own_marks_never_count():
    reviews = [review("x/a", "x/a", 10.0), review("x/a", "y/b", 5.0), review("y/b", "x/a", 6.0)]
    board = review_board(reviews)
    assert board.fidelity["x/a"].value == 6.0
    assert board.own_bias[0].fidelity.value == pytest.approx(4.0)
    assert board.own_bias[1].fidelity.value is None
    assert peer_mark(reviews, "x/a", "s").value == 6.0
    assert peer_mark(reviews, "x/a", "other").value is None


def test_comparisons_are_within_a_reviewer_and_a_strategy():
    reviews = [
        review("r", "a", 8.0),
        review("r", "b", 6.0),
        review("q", "a", 5.0),
        review("q", "b", 5.0),
    ]
    found = sorted((c.first, c.second, c.won) for c in comparisons(reviews))
    assert found == [("a", "b", 0.5), ("a", "b", 1.0)]


def test_vendors_and_missing_marks():
    reviews = [
        review("x/a", "x/b", 9.0),
        review("y/c", "x/b", 7.0),
        Review(
            reviewer="y/c", author="x/a", strategy="s", fidelity=None, risk=None, failure="timeout"
        ),
    ]
    board = review_board(reviews)
    bias = {b.who: b.fidelity for b in board.vendor_bias}
    assert bias["x"].value == pytest.approx(2.0)
    assert board.unanswered == 1
    assert board.reviewers[0].marks["x/a"].reason == "1 could not be read: timeout"
    assert board.fidelity["x/a"].value is None
    assert vendor_of("openrouter/z/m") == "openrouter/z"


def test_both_rankings_and_who_marked_whom():
    reviews = [
        *(review("a", author, mark) for author, mark in (("a", 10.0), ("b", 5.0))),
        *(review("b", author, mark) for author, mark in (("a", 6.0), ("b", 5.0))),
        *(review("c", author, mark) for author, mark in (("a", 6.0), ("b", 9.0))),
    ]
    board = review_board(reviews)
    assert board.standings and board.reviewers
    places = {one.author: (one.peer_place, one.everyone_place) for one in board.standings}
    assert places == {"b": (1, 2), "a": (2, 1)}, (
        "by its own mark the first author overtakes the second"
    )
    assert [(row.reviewer, row.mean.value) for row in board.reviewers] == [
        ("a", 5.0),
        ("b", 6.0),
        ("c", 7.5),
    ]
    assert board.reviewers[0].marks["a"].value == 10.0, (
        "the map shows own marks, the mean leaves them out"
    )
