import os
import struct
from pathlib import Path

import pytest

from tradeassay.sandbox import kernel


@pytest.mark.parametrize(
    ("version", "rights", "size"),
    [
        (1, 0x1FFF, 8),
        (2, 0x3FFF, 8),
        (3, 0x7FFF, 8),
        (4, 0x7FFF, 16),
        (5, 0xFFFF, 16),
        (6, 0xFFFF, 24),
        (9, 0xFFFF, 24),
    ],
)
def test_each_version_takes_away_all_it_can(version, rights, size):
    attributes = kernel.ruleset_attributes(version)
    assert len(attributes) == size
    assert struct.unpack_from("=Q", attributes)[0] == rights
    assert kernel.handled_rights(version) == rights


def test_only_what_is_granted_can_be_opened(machine, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file").write_text("x")
    (tmp_path / "shut").write_text("x")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            folder = os.open(tmp_path / "open", os.O_PATH)
            kernel.no_new_privileges()
            kernel.restrict(kernel.landlock_abi(), [(folder, kernel.READ)])
            code = _what_is_open(tmp_path)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _what_is_open(folder: Path) -> int:
    if (folder / "open" / "file").read_text() != "x":
        return 2
    for attempt in (
        lambda: (folder / "shut").read_text(),
        lambda: (folder / "open" / "file").write_text("y"),
        lambda: (folder / "open" / "new").write_text("y"),
        lambda: os.listdir(folder),
    ):
        try:
            attempt()
            return 3
        except PermissionError:
            continue
    return 0
