"""Real processes, really killed, at random moments: the season ends as if nothing had happened."""

import os
import random
import signal
import time

import msgspec
import pytest
from tests.arena.postgres import fresh, server


def play_in_a_process(table) -> int:
    """Fork a process that plays the season to its end; it opens its own connection."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            table.play()
            status = 0
        finally:
            os._exit(status)
    return child


def killed_so_often(table, kills: int, seed: int) -> int:
    """Kill processes at random moments until one gets through, or ``kills`` have died; then let one finish."""
    generator = random.Random(seed)
    died = 0
    while died < kills:
        child = play_in_a_process(table)
        deadline = time.monotonic() + generator.expovariate(1 / 0.04)
        while time.monotonic() < deadline:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                assert status == 0
                return died
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert status == 0
            return died
        died += 1
    child = play_in_a_process(table)
    assert os.waitpid(child, 0)[1] == 0
    return died


def expected(table, tmp_path, season) -> bytes:
    whole = type(table)(str(tmp_path / "whole.db"), season, table.feed)
    whole.play()
    return whole.everything()


def test_processes_are_killed_and_nothing_is_lost(table, tmp_path):
    again = type(table)(str(tmp_path / "killed.db"), table.season, table.feed)
    died = killed_so_often(again, 12, seed=1)
    assert died >= 3
    assert again.everything() == expected(table, tmp_path, table.season)


@pytest.mark.slow
@pytest.mark.timeout(1500)  # two hundred processes are started, killed and waited for
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_hundred_kills_over_a_season(table, tmp_path, kind):
    season = msgspec.structs.replace(table.season, last="2022-12-30")
    wanted = expected(table, tmp_path, season)
    if kind == "sqlite":
        again = type(table)(str(tmp_path / "killed.db"), season, table.feed)
        assert killed_so_often(again, 200, seed=2) >= 100
        assert again.everything() == wanted
        return
    with server() as address:
        again = type(table)(fresh(address), season, table.feed)
        assert killed_so_often(again, 200, seed=3) >= 100
        assert again.everything() == wanted
