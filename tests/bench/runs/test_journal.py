"""Journals: appended whole, cut where torn, refused where damaged."""

import multiprocessing
import os
import time

import pytest
from hypothesis import given, settings, strategies as st

from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import Marked, StepRecord
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.play.journal import (
    BATCHED,
    EVERY_LINE,
    Journal,
    encode_line,
    read_lines,
    read_records,
)


def record(step):
    return StepRecord(
        step=step,
        session=f"2024-01-{step + 1:02d}",
        decided_at=step,
        opening=(),
        decision=Decision(reason="é"),
        events=(Marked(100.0, 0.0, 100.0),),
    )


def write(path, count):
    with Journal(path) as journal:
        for step in range(count):
            journal.append(encode_line(record(step)))
    return path.read_bytes()


def test_lines_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "events.jsonl"
    content = write(path, 3)
    assert content.count(b"\n") == 3
    assert list(read_records(path)) == [record(step) for step in range(3)]
    lines, length = read_lines(path)
    assert length == len(content)
    assert b"\n".join(line.raw for line in lines) + b"\n" == content


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_killed_at_any_byte_it_continues_to_the_same_bytes(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    whole = write(path, 4)
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with Journal(path) as journal:
        for step in range(len(journal.lines), 4):
            journal.append(encode_line(record(step)))
    assert path.read_bytes() == whole


def test_a_torn_end_is_no_complete_journal(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(write(path, 2)[:-5])
    with pytest.raises(RunError, match="ends in an incomplete line"):
        list(read_records(path))
    with pytest.raises(RunError, match=r"the journal .* is missing"):
        list(read_records(tmp_path / "none"))


def test_a_garbled_last_line_is_cut_a_garbled_inner_one_refused(tmp_path):
    path = tmp_path / "events.jsonl"
    whole = write(path, 3)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + b"\0\0\0\n")
    with Journal(path) as journal:
        assert len(journal.lines) == 2
    assert path.read_bytes() == b"".join(lines[:2])
    path.write_bytes(lines[0] + b"{}\n" + lines[2])
    with pytest.raises(RunError, match="line 2 is damaged"), Journal(path):
        pass


def test_every_line_is_durable_at_once_unless_batched(tmp_path, monkeypatch):
    syncs = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    for batch, expected in ((EVERY_LINE, 5), (2, 3), (BATCHED, 1)):
        path = tmp_path / f"{batch}.jsonl"
        with Journal(path) as journal:
            syncs.clear()  # the new file's name was made durable already
            journal.batch = batch
            for step in range(5):
                journal.append(encode_line(record(step)))
                if batch == EVERY_LINE:
                    assert path.read_bytes().count(b"\n") == step + 1
        assert len(syncs) == expected
        assert path.read_bytes().count(b"\n") == 5


def test_what_was_decided_is_written_even_when_an_error_follows(tmp_path):
    path = tmp_path / "events.jsonl"
    with pytest.raises(KeyboardInterrupt), Journal(path) as journal:
        journal.batch = BATCHED
        journal.append(encode_line(record(0)))
        raise KeyboardInterrupt
    assert list(read_records(path)) == [record(0)]


def _hold(path, ready):
    with Journal(path):
        ready.set()
        time.sleep(60)


def test_two_processes_cannot_write_one_journal_and_a_dead_one_is_no_obstacle(tmp_path):
    path = tmp_path / "events.jsonl"
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    child = context.Process(target=_hold, args=(path, ready))
    child.start()
    try:
        assert ready.wait(120)
        with (
            pytest.raises(RunError, match="is being written by another process"),
            Journal(path, patience=0.05),
        ):
            pass
    finally:
        child.kill()
        child.join()
    with Journal(path, patience=60) as journal:
        assert journal.lines == ()
