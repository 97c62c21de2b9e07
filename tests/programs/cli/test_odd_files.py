"""Files and numbers that would never end, or would be passed over in silence, are refused in one
line.
"""

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "forgeries"))

from honest_runs import play

STRATEGY = str(Path(__file__).parents[3] / "examples/strategies/sma_cross.py")


@pytest.fixture
def in_time():
    """Stop what waits for a pipe that nobody writes to."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("line", ["code eval {}", "code eval {} --task d-sma-cross-long --reward"])
def test_a_program_is_read_from_a_file(given, tmp_path, in_time, kind, line):
    place = "/dev/zero"
    if kind == "pipe":
        place = str(tmp_path / "mine.py")
        os.mkfifo(place)
    said = given(line.format(shlex.quote(place)), 2).err
    assert said.startswith(f"error: {place} is a ") and len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ['[price."openai/gpt-5"]\ninput = 1.0\n', "", "agents = 5\n"])
def test_a_file_without_prices_is_no_file_of_prices(given, tmp_path, text):
    (tmp_path / "mine.toml").write_text(text)
    said = given("run daily-us-v1 -m scripted/sensible --prices mine.toml --plan", 2).err
    assert (
        said.startswith("error: mine.toml has no table 'prices'")
        and len(said.strip().splitlines()) == 1
    )


@pytest.mark.parametrize("ratio", ["1e-308", "-1e-200", "1e-7", "5e-324"])
def test_a_ratio_that_no_number_of_sessions_finds_is_refused(given, ratio):
    said = given(f"power --ratio={ratio}", 2).err
    assert (
        said.startswith("error: ")
        and "is no effect" in said
        and len(said.strip().splitlines()) == 1
    )


@pytest.mark.parametrize("number", ["1000000000", "1000001"])
def test_more_random_portfolios_than_anybody_draws_are_refused(given, tmp_path, number):
    days = ("--first", "2022-01-10", "--last", "2022-01-31")
    run = play(tmp_path, "run", "daily-us-v1", "-a", "momentum-12-1:k=3", *days, "--name", "few")
    said = given(f"luck {shlex.quote(str(run))} --portfolios {number}", 2).err
    assert (
        said.strip().splitlines()[-1] == f"error: {number} random portfolios (use 1 to 1,000,000)"
    )


@pytest.mark.parametrize("tries", ["999999999999999999999", "1000000001"])
def test_more_tries_than_a_level_can_be_shared_among_are_refused(given, tmp_path, tries):
    days = [
        f"2024-{month:02}-{day:02},0.00{day % 7}\n" for month in range(1, 7) for day in range(1, 29)
    ]
    (tmp_path / "mine.csv").write_text("date,return\n" + "".join(days))
    said = given(f"assay mine.csv --tries {tries}", 2).err
    assert said.startswith(f"error: {tries} tries (") and "at most 1,000,000,000" in said
