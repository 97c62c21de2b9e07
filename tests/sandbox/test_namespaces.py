import os

import pytest

from tradeassay.sandbox.namespaces import can_become_nobody, why_not_leave


def test_finding_out_changes_nothing(machine):
    before = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "net", "pid", "user", "uts")}
    who = os.getresuid()
    reason = why_not_leave()
    assert reason is None or reason
    can_become_nobody()
    assert os.getresuid() == who
    assert {name: os.readlink(f"/proc/self/ns/{name}") for name in before} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become nobody")
def test_an_ordinary_user_cannot_become_another():
    assert not can_become_nobody()
