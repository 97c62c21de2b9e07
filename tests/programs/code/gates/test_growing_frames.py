"""The frames of a replay are those that a run on the same rows gets."""

import numpy as np
import pandas as pd
import pytest

from tradeassay_programs.code.systrade_child import GrowingFrames
from tradeassay_programs.sandbox.strategy import shape

ROWS = 5
TIMES = np.arange(ROWS, dtype="i8") * 86_400_000_000_000 + 1_700_000_000_000_000_000
NUMBERS = {
    name: np.linspace(1, 2, ROWS) * n
    for n, name in enumerate(("X/open", "X/close", "Y/open"), start=1)
}
HALTED = {"X/halted": np.array([True, False, True, False, True])}


@pytest.mark.parametrize("extra", [{}, HALTED], ids=["numbers", "mixed"])
def test_frames_of_the_first_rows(extra):
    table = {"X/time": TIMES, **NUMBERS, "Y/time": TIMES, **extra}
    kinds = "".join({"i": "q", "f": "d", "b": "?"}[column.dtype.kind] for column in table.values())
    grown = GrowingFrames(list(table), kinds, ROWS + 1)
    for row in range(ROWS):
        grown.put(row, [column[row] for column in table.values()])
        grown.put(row + 1, ())
        seen = {name: column[: row + 1] for name, column in table.items()}
        seen |= {
            name: column.view("M8[ns]") for name, column in seen.items() if name.endswith("/time")
        }
        made, plain = grown.first(row + 1), shape(seen, "frames")
        assert made.keys() == plain.keys()
        for leg, frame in made.items():
            pd.testing.assert_frame_equal(frame, plain[leg], check_exact=True)
            frame.iloc[:, 0] = 0
    assert grown.first(1)["X"]["open"].tolist() == [1.0], "what a strategy writes stays its own"
