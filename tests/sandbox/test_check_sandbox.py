"""The escape suite: everything must hold here, and the suite must notice when something does not."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tradeassay.core.errors import UserError
from tradeassay.core.syntax import syntax_tree
from tradeassay.sandbox import BadResult, Job, JobExecutor, JobResult, JobUsage, Tier
from tradeassay.sandbox.codec import ClaimHead, CodecError, decode, encode
from tradeassay.testing import CheckFailed
from tradeassay.testing.sandbox import ATTACKS, LIGHT, check_sandbox


def test_there_are_enough_attacks_and_each_is_a_program():
    assert len(ATTACKS) >= 40
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for source in (source for attack in ATTACKS for source in attack.sources):
        syntax_tree(source)
    families = {attack.family for attack in ATTACKS}
    assert {attack.family for attack in ATTACKS if attack.short} >= families - {"privileged"}


def test_an_unknown_attack_is_a_users_mistake():
    with pytest.raises(UserError, match="no attack nonsense"):
        check_sandbox(only=["nonsense"])


@pytest.mark.slow_for("all")
@pytest.mark.parametrize("least", [10, 40], ids=["short form", "all"])
def test_no_attack_gets_out(machine, least):
    report = check_sandbox(short=least < 40)
    assert report.escaped == ()
    assert len(report.counted) >= least
    assert all(result.record for result in report.results)
    # An attack that fails in a plain process too (a 32-bit call on a processor without any) has nothing to refuse.
    refused = [result for result in report.counted if result.family in ("network", "process", "privileged")]
    assert all("refused" in result.record for result in refused), report.table()
    assert report.summary() in report.table()


@pytest.mark.slow
def test_no_attack_of_the_short_form_gets_out_of_standard_walls(machine):
    report = check_sandbox(config=msgspec.structs.replace(LIGHT, namespaces=False), short=True)
    assert report.tier.level == "standard"
    assert 10 <= len(report.counted) < 40


class PlainSubprocess(JobExecutor):
    """An executor as harnesses without a sandbox have them: a bounded subprocess and a trusted pipe."""

    tier = Tier(level="standard")

    def run(self, job: Job) -> JobResult:
        script = (
            "import sys, resource\n"
            "resource.setrlimit(resource.RLIMIT_CPU, (8, 8))\n"
            "from tradeassay.sandbox.codec import Caps, decode, encode\n"
            "from tradeassay.sandbox.strategy import StrategyCall as Call, parse, run_code\n"
            "import msgspec\n"
            "order = msgspec.json.decode(sys.argv[1], type=Call)\n"
            "code, _ = parse(sys.argv[2], None)\n"
            "columns = decode(sys.stdin.buffer.read(), Caps())\n"
            "out = b''.join(encode(run_code(code, order, columns, None)))\n"
            "sys.stdout.buffer.write(out)\n"
        )
        call = msgspec.json.encode(job.call).decode()
        done = subprocess.run(
            [sys.executable, "-c", script, call, job.source],
            input=b"".join(encode(job.columns)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            timeout=250,
        )
        usage = JobUsage(cpu_s=0, wall_s=0, peak_mb=0)
        try:
            columns = decode(done.stdout, job.limits.caps())
            assert not isinstance(columns, ClaimHead)
        except CodecError as error:
            return JobResult(source="", tier=self.tier, usage=usage, failure=BadResult(reason=str(error)))
        return JobResult(source="", tier=self.tier, usage=usage, columns=columns)


CAUGHT = ("read-secret", "own-environment", "tcp-connect", "fork", "write-outside", "kill-a-process")


def test_an_executor_without_walls_is_found_out():
    with pytest.raises(CheckFailed, match="got out of the sandbox") as failed:
        check_sandbox(PlainSubprocess(), only=[*CAUGHT, "printed-result"])
    for name in CAUGHT:
        assert name in str(failed.value)
    assert "printed-result" not in str(failed.value)  # a typed result holds, even without walls
    assert "TRADEASSAY_ESCAPE_SECRET" not in os.environ


AS_A_USER = """
import os, sys
from tradeassay.testing.sandbox import LIGHT, check_sandbox
import msgspec
assert os.getuid() == 12345
report = check_sandbox(short=True)
print(report.tier.level, len(report.counted), len(report.escaped))
report = check_sandbox(config=msgspec.structs.replace(LIGHT, namespaces=False), only=["read-secret", "fork"])
print(report.tier.level, len(report.counted), len(report.escaped))
"""


def first_closed_folder() -> Path | None:
    """The topmost folder above this interpreter that other users cannot enter."""
    for path in (Path(sys.executable).resolve(), Path(sys.prefix), Path(__file__)):
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                return folder
    return None


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_is_held_as_well(machine, tmp_path):
    from tradeassay.sandbox import kernel

    closed = first_closed_folder()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            if closed is not None:
                # In a mount namespace of its own, show the folder's contents under a parent that may be entered.
                kernel.unshare(kernel.CLONE_NEWNS)
                kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
                inside = next(p for p in Path(sys.executable).resolve().parents if p.parent == closed)
                kernel.mount(str(inside), "/mnt", None, kernel.MS_BIND | kernel.MS_REC)
                kernel.mount("tmpfs", str(closed), "tmpfs", 0, "mode=0755")
                inside.mkdir()
                kernel.mount("/mnt", str(inside), None, kernel.MS_BIND | kernel.MS_REC)
            with (tmp_path / "out").open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            os.setgroups([])
            os.setresgid(12345, 12345, 12345)
            os.setresuid(12345, 12345, 12345)
            os.execve(sys.executable, [sys.executable, "-c", AS_A_USER], {"PATH": "/usr/bin:/bin"})
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    words = (tmp_path / "out").read_text()
    assert status == 0, words
    lines = [line.split() for line in words.splitlines()]
    assert [line[2] for line in lines] == ["0", "0"]
    assert lines[1][0] == "standard"
