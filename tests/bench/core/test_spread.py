"""Many pieces: the same results from everywhere, errors with their type, and a piece that kills
its process.
"""

import math
from functools import partial

import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors import HERE, Spread

TWO = Spread(executor="local", workers=2)


@pytest.mark.parametrize("spread", [HERE, TWO], ids=["inline", "local"])
def test_results_come_in_the_order_of_the_pieces(spread):
    told: dict[int, float] = {}
    pieces = [float(n) for n in range(9)]
    assert spread.map(math.sqrt, pieces, done=told.__setitem__) == [
        math.sqrt(one) for one in pieces
    ]
    assert told == {place: math.sqrt(one) for place, one in enumerate(pieces)}
    assert spread.map(partial(pow, 2), []) == []
    with pytest.raises(ValueError, match="invalid literal"):
        spread.map(int, ["1", "two"])


def test_a_piece_that_kills_its_process_is_said_and_takes_no_other_with_it():
    done: list[int] = []
    with pytest.raises(RunError, match="1 of 3 tasks were lost"):
        TWO.map(
            eval,
            ["1 + 1", "__import__('os')._exit(9)", "3"],
            done=lambda place, _: done.append(place),
        )
    assert sorted(done) == [0, 2]


def test_an_unknown_executor_is_refused():
    with pytest.raises(UserError, match="unknown executor 'cloud'"):
        Spread(executor="cloud").map(math.sqrt, [1.0])  # type: ignore[arg-type]  # on purpose
