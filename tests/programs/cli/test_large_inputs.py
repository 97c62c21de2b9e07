"""What would take hours is refused at once, in one line."""

import time

import pytest

COLUMNS = 100_000


@pytest.fixture(scope="module")
def wide():
    """A table of two days with a hundred thousand columns."""
    names = ",".join(f"c{number}" for number in range(COLUMNS))
    days = "".join(f"2024-01-0{day},10{',1' * COLUMNS}\n" for day in (2, 3))
    return f"date,close,{names}\n{days}"


@pytest.mark.parametrize(
    "line",
    [
        "data import wide.csv --name wide",
        "data doctor wide.csv",
        "assay wide.csv",
        "assay narrow.csv --benchmark wide.csv",
        "assay narrow.csv --weights wide.csv",
    ],
)
def test_a_header_of_a_hundred_thousand_columns_is_refused(tell, tmp_path, wide, line):
    (tmp_path / "wide.csv").write_text(wide)
    days = [
        f"2024-{month:02}-{day:02},0.00{day % 7}\n" for month in range(1, 7) for day in range(1, 29)
    ]
    (tmp_path / "narrow.csv").write_text("date,return\n" + "".join(days))
    before = time.process_time()
    said = tell(line.split(), 2).err
    assert time.process_time() - before < 20
    assert said.strip().splitlines()[-1] == (
        "error: wide.csv has 100,002 columns, at most 20,000 are read (give one row per day and "
        "symbol)"
    )


def test_titles_that_are_repeated_ten_thousand_times_are_read(tell, tmp_path):
    (tmp_path / "same.csv").write_text(f"date,close{',a' * 10_000}\n2024-01-02,10{',1' * 10_000}\n")
    before = time.process_time()
    tell(["data", "doctor", "same.csv"])
    assert time.process_time() - before < 20


@pytest.mark.parametrize("count", ["100000000", "0", "-1", "999999999999999999999"])
def test_more_tasks_than_anybody_draws_are_refused(given, count):
    said = given(f"code tasks --draw {count}", 2).err
    assert "'--draw'" in said and "1<=x<=100000" in said
