"""The escape suite: everything must hold here, and the suite must notice when something does
not.
"""

import os
import subprocess
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from sources import FOLDERS

from tradeassay.core.errors import UserError
from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_programs.sandbox import (
    BadResult,
    Job,
    JobExecutor,
    JobResult,
    JobUsage,
    Tier,
    kernel,
)
from tradeassay_programs.sandbox.codec import ClaimHead, CodecError, decode, encode
from tradeassay_programs.testing import ATTACKS, LIGHT, check_sandbox

pytestmark = pytest.mark.journey


def test_there_are_enough_attacks_and_each_is_a_program():
    assert len(ATTACKS) >= 40
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for source in (source for attack in ATTACKS for source in attack.sources):
        syntax_tree(source)
    families = {attack.family for attack in ATTACKS}
    assert {attack.family for attack in ATTACKS if attack.short} >= families - {"privileged"}


def test_an_unknown_attack_is_a_users_mistake():
    with pytest.raises(UserError, match="unknown attacks: nonsense"):
        check_sandbox(only=["nonsense"])


@pytest.mark.slow_for("all")
@pytest.mark.parametrize("least", [10, 40], ids=["short form", "all"])
def test_no_attack_gets_out(machine, least):
    report = check_sandbox(short=least < 40)
    assert report.escaped == ()
    assert len(report.counted) >= least
    assert all(result.record for result in report.results)
    # An attack that fails in a plain process too (a 32-bit call on a processor without any) has nothing to refuse.
    refused = [
        result for result in report.counted if result.family in ("network", "process", "privileged")
    ]
    assert all("refused" in result.record for result in refused), report.table()
    assert report.summary() in report.table()


@pytest.mark.slow
def test_no_attack_of_the_short_form_gets_out_of_standard_walls(machine):
    report = check_sandbox(config=msgspec.structs.replace(LIGHT, namespaces=False), short=True)
    assert report.tier.level == "standard"
    assert 10 <= len(report.counted) < 40


class PlainSubprocess(JobExecutor):
    """An executor as harnesses without a sandbox have them: a bounded subprocess and a trusted
    pipe.
    """

    tier = Tier(level="standard")

    def run(self, job: Job) -> JobResult:
        script = (
            "import sys, resource\n"
            "resource.setrlimit(resource.RLIMIT_CPU, (8, 8))\n"
            "from tradeassay_programs.sandbox.codec import Caps, decode, encode\n"
            "from tradeassay_programs.sandbox.strategy import StrategyCall as Call, parse, "
            "run_code\n"
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
            return JobResult(
                source="", tier=self.tier, usage=usage, failure=BadResult(reason=str(error))
            )
        return JobResult(source="", tier=self.tier, usage=usage, columns=columns)


CAUGHT = (
    "read-secret",
    "own-environment",
    "tcp-connect",
    "fork",
    "write-outside",
    "kill-a-process",
)


def test_an_executor_without_walls_is_found_out():
    with pytest.raises(CheckFailed, match="got out of the sandbox") as failed:
        check_sandbox(PlainSubprocess(), only=[*CAUGHT, "printed-result"])
    for name in CAUGHT:
        assert name in str(failed.value)
    assert "printed-result" not in str(failed.value)  # a typed result holds, even without walls
    assert "TRADEASSAY_ESCAPE_SECRET" not in os.environ


AS_A_USER = """
import os, sys
from tradeassay_programs.testing import LIGHT, check_sandbox
import msgspec
assert os.getuid() == 12345
report = check_sandbox(short=True)
print(report.tier.level, len(report.counted), len(report.escaped))
report = check_sandbox(config=msgspec.structs.replace(LIGHT, namespaces=False), only=["read-secret", "fork"])
print(report.tier.level, len(report.counted), len(report.escaped))
"""


CLOSED = 77
"""The exit status of a child that cannot show another user where the package lies."""


def needed_paths() -> set[Path]:
    """Return what another user must reach to import the package, by the names in use and by the
    real ones.
    """
    named = {Path(one) for one in (sys.executable, sys.prefix, sys.base_prefix, __file__, *FOLDERS)}
    return named | {path.resolve() for path in named}


def closed_folder(paths: Iterable[Path]) -> Path | None:
    """Return a folder above ``paths`` that other users cannot enter; outer folders come first."""
    above = {folder for path in paths for folder in path.parents}
    closed = [folder for folder in above if not folder.stat().st_mode & 0o001]
    return min(closed, key=lambda folder: len(folder.parts), default=None)


def open_to_others(paths: set[Path]) -> None:
    """Cover every closed folder above ``paths`` with one that all may enter, in which these
    paths still lead to what they are. This is seen in a mount namespace of this process's own
    only.
    """
    if closed_folder(paths) is None:
        return
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    while closed := closed_folder(paths):
        inside = {
            closed / path.relative_to(closed).parts[0] for path in paths if closed in path.parents
        }
        kept = {path: os.open(path, os.O_PATH) for path in inside}
        kernel.mount("tmpfs", str(closed), "tmpfs", 0, "mode=0755")
        for path, descriptor in kept.items():
            path.mkdir()
            kernel.mount(
                f"/proc/self/fd/{descriptor}", str(path), None, kernel.MS_BIND | kernel.MS_REC
            )


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_is_held_as_well(machine, tmp_path):
    if not Path(sys.prefix).stat().st_mode & 0o001:
        pytest.skip(f"other users may not enter the environment itself: {sys.prefix}")
    child = os.fork()
    if child == 0:
        try:
            with (tmp_path / "out").open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            try:
                open_to_others(needed_paths())
            except PermissionError:  # root of a container may not mount
                os._exit(CLOSED)
            os.setgroups([])
            os.setresgid(12345, 12345, 12345)
            os.setresuid(12345, 12345, 12345)
            os.execve(sys.executable, [sys.executable, "-c", AS_A_USER], {"PATH": "/usr/bin:/bin"})
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == CLOSED:
        pytest.skip(
            f"other users may not enter {closed_folder(needed_paths())}, and nothing can be "
            "mounted here"
        )
    words = (tmp_path / "out").read_text()
    assert status == 0, words
    lines = [line.split() for line in words.splitlines()]
    assert [line[2] for line in lines] == ["0", "0"]
    assert lines[1][0] == "standard"
