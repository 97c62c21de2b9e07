"""Real jobs behind real walls."""

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_programs.sandbox import (
    BadResult,
    ChildClaim,
    CpuTimeout,
    Crashed,
    FileAttempt,
    ForbiddenImport,
    Job,
    JobLimits,
    JobResult,
    NetworkAttempt,
    OutputLimit,
    PrivilegedAttempt,
    ProcessAttempt,
    Sandbox,
    SyntaxFault,
    WallTimeout,
)

CLOSE = np.array([1.0, 2.0, 4.0, 8.0])
COLUMNS: dict[str, Any] = {
    "time": np.arange(4).astype("M8[D]").astype("M8[ns]"),
    "close": CLOSE,
    "name": ["a", "b", None, "a"],
    "flag": [True, False, True, False],
}
TIGHT = JobLimits(cpu_s=1, wall_s=60.0, memory_mb=128, log_kb=64, result_mb=1, rows=1000, columns=4)


def body(text: str, sandbox: Sandbox, **options: Any) -> JobResult:
    source = "def run(columns):\n" + "\n".join("    " + line for line in text.splitlines())
    options = {"pass_as": "columns", "columns": COLUMNS, "limits": TIGHT} | options
    return sandbox.run(Job(source=source, **options))


def test_columns_go_in_and_decisions_come_out(sandbox):
    result = body(
        "return {'twice': columns['close'] * 2, 'same': columns['name'], 't': columns['time']}",
        sandbox,
    )
    columns = result.need()
    np.testing.assert_array_equal(columns["twice"], 2 * CLOSE)
    assert columns["same"].tolist() == ["a", "b", None, "a"]
    np.testing.assert_array_equal(columns["t"], COLUMNS["time"])
    assert result.tier == sandbox.tier and result.attempts == ()
    assert result.usage.cpu_s > 0 and result.usage.peak_mb > 1


def test_a_frame_job_and_a_large_result(sandbox):
    source = (
        "import pandas as pd\ndef run(frame):\n    return "
        "frame['close'].pct_change().fillna(0) > 0.5"
    )
    result = sandbox.run(Job(source=source, columns=COLUMNS))
    assert result.need()["value"].tolist() == [False, True, True, True]
    limits = JobLimits(result_mb=64, rows=1_000_000)
    text = "import numpy as np\nreturn {str(n): np.arange(500_000.0) for n in range(4)}"
    columns = body(text, sandbox, limits=limits).need()
    assert sum(column.nbytes for column in columns.values()) == 16_000_000
    assert columns["3"][-1] == 499_999.0


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("return (", SyntaxFault, "'(' is not closed: return ("),
        ("import socket", ForbiddenImport, "socket"),
        ("import requests", ForbiddenImport, "requests"),
        ("import importlib.metadata", ForbiddenImport, "importlib"),
        ("while True: pass", CpuTimeout, "processor time"),
        ("import time\ntime.sleep(60)", WallTimeout, "not done"),
        ("print('x' * 100_000)", OutputLimit, "log"),
        ("return {'a': columns['close'].repeat(100_000)}", OutputLimit, "result"),
        ("return {'a': columns['close'].repeat(500)}", BadResult, "rows"),
        ("return {str(n): [n] for n in range(9)}", BadResult, "columns"),
        ("import os\nos._exit(0)", BadResult, "no result"),
        ("import os\nos._exit(3)", Crashed, "exit code 3"),
        ("import os\nos.abort()", Crashed, "SIGABRT"),
        ("import os\nos.write(6, b'garbage!')", BadResult, "prefix"),
        ("import os\nos.fork()", ProcessAttempt, "clone"),
        ("open('/etc/passwd')", FileAttempt, "/etc/passwd"),
        ("import os\nos.memfd_create('x')", PrivilegedAttempt, "memfd_create"),
        ("import os\nos.setuid(0)", PrivilegedAttempt, "setuid"),
    ],
)
def test_errors_that_the_host_decides(sandbox, text, kind, word):
    limits = JobLimits(cpu_s=1, wall_s=0.5, memory_mb=128) if kind is WallTimeout else TIGHT
    failure = body(text, sandbox, limits=limits).failure
    assert isinstance(failure, kind), failure
    assert word in failure.text


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("return 1 / 0", "exception", "division by zero"),
        ("columns['close'][0] = 5\nreturn columns", "exception", "read-only"),
        ("import numpy as np\nnp.ones(10**9)", "memory", "allocate"),
        ("import not_there", "import", "not_there"),
        ("import pyarrow", "import", "pyarrow"),
        ("import polars", "import", "polars"),
        ("raise SystemExit", "exit", ""),
        ("return {'a': [object()]}", "unreturnable", "object"),
        ("return None", "unreturnable", "None"),
    ],
)
def test_errors_that_the_child_claims(sandbox, text, kind, word):
    failure = body(text, sandbox, guard_imports=kind != "import").failure
    assert isinstance(failure, ChildClaim), failure
    assert failure.kind == kind and word in failure.message


def test_a_swallowed_attempt_is_recorded_and_fails_the_job(sandbox):
    text = """
import socket
for _ in range(3):
    try:
        socket.socket()
    except OSError:
        pass
return {'a': [1]}
"""
    result = body(text, sandbox, guard_imports=False)
    assert isinstance(result.failure, NetworkAttempt)
    assert result.attempts[0].count == 3
    assert result.columns is None
    forgiven = body(text, sandbox, guard_imports=False, fail_on=frozenset())
    assert forgiven.need()["a"].tolist() == [1]
    assert forgiven.attempts == result.attempts


@pytest.mark.parametrize(
    ("call", "error", "stream"),
    [
        ("os.kill(1, 9)", "OSError", "refused calls"),
        ("open('missing')", "FileNotFoundError", "file calls"),
    ],
)
def test_a_flood_of_calls_ends_the_job(sandbox, call, error, stream):
    text = f"import os\nwhile True:\n    try:\n        {call}\n    except {error}:\n        pass"
    failure = body(text, sandbox, limits=JobLimits(cpu_s=5, file_calls=50)).failure
    assert isinstance(failure, OutputLimit) and failure.stream == stream


def test_what_is_printed_is_kept_and_not_believed(sandbox):
    result = body(
        "import sys\nprint('{\"pnl\": 1}')\nsys.stderr.write('oops')\nreturn {'a': [1]}", sandbox
    )
    assert result.log == b'{"pnl": 1}\noops'
    assert list(result.need()) == ["a"]


def test_what_code_does_to_its_output_costs_it_nothing_but_its_result(sandbox):
    for change in ("sys.stdout.close()", "sys.stdout = sys.stderr = None", "sys.stderr = 3"):
        result = body(f"import sys\n{change}\nreturn {{'a': [1]}}", sandbox)
        assert result.need()["a"].tolist() == [1] and not result.attempts, change
    result = body("import os\nos.close(6)\nreturn {'a': [1]}", sandbox)
    assert isinstance(result.failure, Crashed) and not result.attempts, (
        "it has tried to open nothing"
    )


def test_scratch_files_come_back(sandbox):
    if sandbox.tier.level != "strong":
        pytest.skip("no scratch folder here")
    text = """
import os, tempfile
open('log.txt', 'w').write('hi')
tempfile.TemporaryFile().write(b'x')
return {'a': [os.getcwd()]}
"""
    result = body(text, sandbox)
    assert result.need()["a"].tolist() == ["/scratch"]
    assert result.files == {"log.txt": b"hi"}


def test_each_job_starts_clean(sandbox):
    body(
        "import math, os\nmath.pi = 3\nopen('x', 'w').close()\nos.environ['A'] = 'b'\nreturn {'a': "
        "[1]}",
        sandbox,
    )
    result = body(
        "import math, os\nreturn {'a': [math.pi, os.path.exists('x'), 'A' in os.environ]}", sandbox
    )
    assert result.need()["a"].tolist() == [np.pi, 0.0, 0.0]


DRAWS = """
import os, random, secrets, numpy as np
return {'a': [random.random(), np.random.rand(), np.random.default_rng().random(), secrets.randbelow(10**6),
        hash('text') % 10**6, int.from_bytes(os.getrandom(4), "big"), int.from_bytes(os.urandom(4), "big")]}
"""


def test_the_same_seed_gives_the_same_draws_and_the_random_devices_are_shut(sandbox, standard):
    first, second, plain, other = (
        body(DRAWS, walls, seed=seed).need()["a"].tolist()
        for walls, seed in ((sandbox, 5), (sandbox, 5), (standard, 5), (sandbox, 6))
    )
    assert first == second == plain and first[:3] != other[:3]
    assert isinstance(body("open('/dev/urandom')", sandbox).failure, FileAttempt)


def test_only_the_given_rows_are_in_the_child(sandbox):
    listed = (
        "import os\nopen_ones = []\nfor one in range(3, 64):\n    try:\n        os.fstat(one)\n"
    )
    listed += (
        "        open_ones.append(one)\n    except OSError:\n        pass\nreturn {'a': open_ones}"
    )
    assert body(listed, sandbox).need()["a"].tolist() == [6]


def test_who_and_where_it_is(sandbox):
    text = "import os\nreturn {'a': [os.getuid(), os.geteuid(), len(os.sched_getaffinity(0)) > 0]}"
    if sandbox.tier.level == "strong":
        assert body(text, sandbox).need()["a"].tolist() == [65534, 65534, 1]
    names = body("import os\nreturn {'k': list(os.environ)}", sandbox).need()["k"].tolist()
    threads = (f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"))
    assert {*names} <= {
        *threads,
        *"PYTHONHASHSEED TZ LC_ALL MPLBACKEND MPLCONFIGDIR HOME TMPDIR".split(),
    }


def test_no_folder_of_this_machine_is_named(sandbox):
    if sandbox.tier.level != "strong":
        pytest.skip("without namespaces folders keep their names")
    text = """
    import gc, sys, traceback
    import numpy
    assert "tradeassay_programs.sandbox.executor" not in sys.modules  # the host's part
    gc.unfreeze()
    within = (one for thing in gc.get_objects() for one in gc.get_referents(thing) if isinstance(one, str))
    texts = {one[:200] for one in within if one.startswith("/")}
    told = [*texts, *sys.path, *sys.argv, *sys.orig_argv, sys.executable, sys.prefix, sys.base_prefix]
    told += [str(getattr(one, "__file__", "")) for one in list(sys.modules.values())]
    told += [str(getattr(one, "__spec__", "")) for one in list(sys.modules.values())]
    try:
        numpy.mean("x")
    except Exception:
        told.append(traceback.format_exc())
    told = ascii("\\n".join(told))
    return {"told": [told[at : at + 4000] for at in range(0, len(told), 4000)]}
    """
    told = "".join(
        body(textwrap.dedent(text).strip(), sandbox, guard_imports=False).need()["told"].tolist()
    )
    assert "/tmp/base/lib/python" in told and "/tmp/env/lib/python" in told
    # Constants of the standard library (os.defpath, the folders of time zones) name it on every machine.
    everywhere = {"/usr"}
    here = {
        sys.prefix,
        sys.base_prefix,
        os.path.dirname(os.__file__),
        str(Path(__file__).parents[3]),
    }
    assert [path for path in sorted(here - everywhere) if path in told] == []


def test_standard_walls_hold_too(standard):
    assert standard.tier.level == "standard"
    assert standard.tier.missing
    assert body("return {'a': columns['close']}", standard).ok
    assert isinstance(body("open('/etc/passwd')", standard).failure, FileAttempt)
    assert isinstance(body("open('x', 'w')", standard).failure, FileAttempt)
    assert isinstance(body("import os\nos.fork()", standard).failure, ProcessAttempt)
    exists = body("import os\nreturn {'a': [os.path.exists('/etc/passwd')]}", standard)
    assert exists.need()["a"].tolist() == [False]


def test_columns_that_cannot_be_sent_are_the_callers_fault(sandbox):
    with pytest.raises(UserError, match="column 'a'"):
        sandbox.run(Job(source="", columns={"a": np.zeros((2, 2))}))


def test_the_null_device_and_the_name_of_the_machine(sandbox):
    text = """
import os
with open(os.devnull, 'w') as nowhere:
    print('x', file=nowhere)
return {'a': [os.uname().nodename, str(len(open('/dev/zero', 'rb').read(3)))]}
"""
    result = body(text, sandbox)
    assert result.need()["a"][1] == "3"
    assert result.attempts == ()
    if result.tier.level == "strong":
        assert result.need()["a"][0] == "sandbox"


def test_libraries_where_installed(machine):
    for name in ("talib", "backtrader", "matplotlib"):
        pytest.importorskip(name)
    source = """
import backtrader, matplotlib.pyplot as plt, pandas as pd, scipy.stats, talib
def run(frame):
    plt.figure().savefig('x.png')
    return {'rsi': talib.RSI(frame['close'].to_numpy(), 14), 'z': scipy.stats.zscore(frame['close'])}
"""
    days = np.arange(60)
    columns = {"close": 100 + np.sin(days / 3.0), "time": days.astype("M8[D]").astype("M8[ns]")}
    with Sandbox() as full:
        result = full.run(Job(source=source, columns=columns))
    found = result.need()
    assert np.isnan(found["rsi"][:14]).all() and len(found["z"]) == 60 and result.attempts == ()
    if result.tier.level == "strong":
        assert result.files["x.png"].startswith(b"\x89PNG")


def test_no_refused_call_is_hidden_behind_many_others(sandbox):
    """The first 64 kinds have their details; a new call after them is counted all the same."""
    source = """
import ctypes, os
def run(columns):
    for number in range(90):
        try:
            open(f"/etc/nothing-{number}")
        except OSError:
            pass
    libc = ctypes.CDLL(None)
    libc.syscall(435, None, 64)
    libc.syscall(437, -100, b"/etc/passwd", None, 24)
    libc.flock(0, 1)
    return {"a": [1.0]}
"""
    job = Job(source=source, pass_as="columns", guard_imports=False, fail_on=frozenset())
    result = sandbox.run(job)
    calls = {attempt.call: attempt for attempt in result.attempts}
    assert {"clone3", "openat2", "flock", "openat"} <= set(calls), result.attempts
    assert sum(attempt.count for attempt in result.attempts if attempt.call == "openat") == 90
    assert calls["clone3"].family == "process" and calls["openat2"].family == "file"
