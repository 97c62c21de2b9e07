"""A disk that fills: one line, nothing half-written, and the run goes on to the same bytes once
there is room.
"""

import errno
import os
import resource
from unittest import mock

import pytest
import runs_world as world

from tradeassay import cli
from tradeassay.core.files import naming, write_atomic
from tradeassay.report.shell import write_page
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.store.read import read_panel
from tradeassay_bench.runs import AgentSpec, resume, run


def limited(most, work):
    """Do something in a child whose files cannot grow beyond ``most`` bytes; return how it
    ended.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        try:
            work()
            said = "whole"
        except OSError as error:
            said = f"{errno.errorcode.get(error.errno or 0, '?')} {error.filename}"
        except BaseException as error:
            said = f"{type(error).__name__} {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status), f"the child got signal {os.WTERMSIG(status)}"
    return said


def leftovers(folder):
    return [
        path.name
        for path in folder.rglob("*")
        if path.name.endswith(".tmp") or path.name.startswith(".writ")
    ]


def one_agent():
    return world.tiny_spec(
        agents=(AgentSpec(name="reversal"),), seeds=(0,), benchmarks=("tiny-us-v1",)
    )


def test_a_run_on_a_full_disk_goes_on_when_there_is_room(home, tmp_path):
    whole = run(one_agent(), tmp_path / "whole", executor="inline", home=home)
    for most in (0, 1_000, 9_000):
        folder = tmp_path / str(most)
        said = limited(
            most, lambda folder=folder: run(one_agent(), folder, executor="inline", home=home)
        )
        assert said.startswith("EFBIG /") and leftovers(folder) == []
        if (folder / "manifest.json").exists():
            resume(folder, executor="inline", home=home)
        else:
            run(one_agent(), folder, executor="inline", home=home)
        assert world.same_bytes(folder) == world.same_bytes(whole.folder)


def test_a_page_is_whole_or_the_old_one(tmp_path):
    path = write_page(tmp_path / "report.html", "old")
    assert limited(1_000, lambda: write_page(path, "x" * 5_000)) == f"EFBIG {path}"
    assert path.read_text() == "old"
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("most", [0, 500, 5_000])
def test_a_store_is_whole_or_not_there(tmp_path, most):
    panel = world.tiny_panel()
    said = limited(most, lambda: write_snapshot(panel, tmp_path / "store", allow_faults=True))
    assert said.startswith("EFBIG /")
    assert os.listdir(tmp_path) == []
    write_snapshot(panel, tmp_path / "store", allow_faults=True)
    before = limited(
        most,
        lambda: write_snapshot(panel, tmp_path / "store", allow_faults=True, replace_existing=True),
    )
    assert before.startswith("EFBIG /")
    assert (
        read_panel(tmp_path / "store").symbols
        == open_snapshot(tmp_path / "store").at(59, "close").symbols
    )


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_any_trouble_of_the_disk_names_the_file_and_leaves_the_old_one(
    tmp_path, monkeypatch, trouble
):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    broken = mock.Mock(side_effect=OSError(trouble, os.strerror(trouble)))
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match=os.strerror(trouble)) as caught:
        write_atomic(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "error: No space left on device (make room",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/x"),
            "error: runs/x: No space left on device",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "runs"),
            "error: runs: Permission denied",
        ),
        (OSError(errno.EROFS, "Read-only file system"), "error: Read-only file system"),
        (
            ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
            "error: the connection was lost",
        ),
        (TimeoutError("timed out"), "error: the connection was lost: timed out (try again)"),
    ],
)
def test_the_command_line_says_it_in_one_line(error, said, monkeypatch, capsys):
    monkeypatch.setattr(cli.root, "main", mock.Mock(side_effect=error))
    assert cli.main(["run"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(said)
    assert shown.count("\n") == 1


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(cli.root, "main", mock.Mock(side_effect=OSError("something of ours")))
    with pytest.raises(OSError, match="something of ours"):
        cli.main(["run"])
    with pytest.raises(OSError, match="ours") as caught, naming("x"):
        raise OSError("something of ours")
    assert caught.value.filename is None


def test_a_pipe_or_a_device_is_written_to_and_a_link_stays(tmp_path):
    """``-o /dev/stdout`` put a file in the place of the device, for everybody on the machine."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(tmp_path / "pipe", b"whole")
        assert os.read(reader, 10) == b"whole" and (tmp_path / "pipe").is_fifo()
    finally:
        os.close(reader)
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there").read_bytes() == b"new"
