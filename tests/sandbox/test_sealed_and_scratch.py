import mmap
import os

import pytest

from tradeassay.sandbox.supervise import collect, seal


def test_sealed_memory_cannot_be_changed():
    descriptor = seal([b"abc", b"", b"def"], "test")
    try:
        assert os.pread(descriptor, 100, 0) == b"abcdef"
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        with pytest.raises(PermissionError):
            mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        with mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ) as view:
            assert view[:3] == b"abc"
    finally:
        os.close(descriptor)


def test_only_plain_files_are_collected_and_their_bytes_have_a_cap_in_sum(tmp_path):
    for name in ("bad\x1bname", "log.txt", "mate", "more"):
        (tmp_path / name).write_bytes(bytes(400))
    (tmp_path / "big").write_bytes(bytes(2_000))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert sorted(collect(folder, 1_000)) == ["log.txt", "mate"]
    finally:
        os.close(folder)
