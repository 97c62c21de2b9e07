import msgspec
import pytest

from tradeassay.core.errors import SandboxError
from tradeassay.sandbox import Kernel, SandboxRefused, ask_kernel, refusal

GOOD = Kernel(system="linux", machine="x86_64", release="6.1", landlock_abi=3, seccomp_filter=True)


@pytest.mark.parametrize(
    ("change", "reason", "hint"),
    [
        ({"system": "darwin"}, "macOS", "container"),
        ({"system": "win32"}, "Windows", "container"),
        ({"machine": "riscv64"}, "riscv64", "aarch64"),
        ({"landlock_abi": 0}, "no Landlock", "5.13"),
        ({"seccomp_filter": False}, "no seccomp", "CONFIG_SECCOMP_FILTER"),
    ],
)
def test_a_refusal_names_the_reason_and_the_mend(change, reason, hint):
    refused = refusal(msgspec.structs.replace(GOOD, **change))
    assert isinstance(refused, SandboxRefused) and isinstance(refused, SandboxError)
    assert reason in refused.message and hint in (refused.hint or "")


def test_a_good_machine_is_not_refused():
    assert refusal(GOOD) is None
    assert refusal(msgspec.structs.replace(GOOD, machine="aarch64", landlock_abi=1)) is None


def test_other_systems_are_asked_nothing(monkeypatch):
    assert ask_kernel().release
    monkeypatch.setattr("sys.platform", "darwin")
    asked = ask_kernel()
    assert not asked.landlock_abi and not asked.seccomp_filter and refusal(asked) is not None
