"""A received run: numbers are bounded, paths stay closed, worlds are made again, faults are one line."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import golden
import msgspec
import numpy as np
import pytest

from tradeassay.benchmarks.quantcode.benchmark import QuantCodeProtocol
from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay.benchmarks.systrade.spec import SystradeSpec
from tradeassay.cli import main
from tradeassay.core.errors import DataError, TradeassayError, UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.data import load_dataset, load_proven
from tradeassay.data.datasets import write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.runs import AgentSpec, CodeRun, RunSpec, Window, run
from tradeassay.runs.spec.run_spec import spec_from
from tradeassay.runs.verify.report import verify
from tradeassay.sandbox import ask_kernel, refusal

needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)
RULE = (AgentSpec(name="cash"),)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SystradeSpec(models=("scripted/away",), minutes=10**9),
        lambda: SystradeSpec(models=("scripted/away",), minutes=-1),
        lambda: SystradeSpec(models=("scripted/away",), data_seed=10**30),
        lambda: SystradeSpec(models=("scripted/away",), seeds=tuple(range(10**6))),
        lambda: QuantCodeSpec(models=("scripted/away",), turns=10**9),
        lambda: QuantCodeSpec(models=("scripted/away",), seeds=(-1,)),
        lambda: QuantCodeSpec(models=("scripted/away",), tasks=tuple(map(str, range(10**6)))),
        lambda: QuantCodeProtocol(
            QuantCodeSpec(models=tuple(f"scripted/{n}" for n in range(1000)), seeds=tuple(range(1000)))
        ).episodes(),
        lambda: RunSpec(slug="x", benchmarks=("ktdfin-v1",), agents=RULE, seeds=(2**63,)),
        lambda: RunSpec(slug="x", benchmarks=("ktdfin-v1",), agents=RULE, seeds=tuple(range(10**6))),
        lambda: RunSpec(
            slug="x", benchmarks=("ktdfin-v1",), agents=RULE, protocol={"temperature": tuple(range(100_000))}
        ),
        lambda: spec_from(
            {"slug": "x", "benchmarks": ["ktdfin-v1"], "agents": ["cash"], "bootstrap": {"level": np.nan}}
        ),
        lambda: load_dataset(f"synthetic/us:{'9' * 5000}"),
    ],
)
def test_numbers_beyond_their_bounds_are_refused_before_any_work(make: Callable[[], object]) -> None:
    with pytest.raises(UserError) as refused:
        make()
    assert refused.value.hint


@pytest.mark.parametrize("setting", ["tool_calls=1000000000", "retries=-1", "timeout_s=nan", "max_tokens=1e300"])
def test_settings_of_a_conversation_have_bounds(setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "ktdfin-v1", "-m", "scripted/sensible", "--set", setting]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def edited(folder: Path, target: Path, **spec: Any) -> Path:
    """Copy a run of programs with other fields in its spec and every hash made again."""
    shutil.copytree(folder, target)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["spec"] |= spec
    manifest["work_sha256"] = sha256_of(msgspec.convert(manifest["spec"], CodeRun.load(folder).kind.Spec))
    (target / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return target


@pytest.mark.slow
@needs_walls
def test_no_path_of_a_received_run_is_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    folder = edited(golden.stored("quantcode-frame"), tmp_path / "r", task_file=str(tmp_path / "pipe"))
    real, opened = Path.open, []
    with mock.patch.object(Path, "open", lambda self, *a, **k: opened.append(self) or real(self, *a, **k)):
        found = verify(folder, workers=1)
        assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
        assert main(["compare", str(folder), str(folder)]) == 0
    assert tmp_path / "pipe" not in opened
    why = "its tasks are those of a file of the runner's ('pipe'), which is not opened"
    assert {one.claim for one in found.claims if one.why.startswith(why)} >= {"rules", "programs", "scores"}
    assert "--task-file" in capsys.readouterr().out + str(found.claims)
    for path in ("/proc/kmsg", str(tmp_path / "pipe"), str(tmp_path)):
        with pytest.raises(TradeassayError):
            QuantCodeProtocol(QuantCodeSpec(models=("scripted/away",), task_file=path))


@pytest.mark.parametrize("place", ["manifest.json", "scores.json", "models/x.jsonl"])
@pytest.mark.parametrize("odd", [os.mkfifo, lambda path: os.symlink("/proc/kmsg", path)])
def test_a_run_with_a_pipe_or_a_link_is_refused_by_every_command(
    place: str, odd: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(golden.stored("stockbench-paper"), tmp_path / "r")
    (folder / place).unlink(missing_ok=True)
    odd(folder / place)
    page = str(tmp_path / "page.html")
    for argv in (["verify"], ["report", "-o", page], ["seal"], ["assay", "-o", page], ["resume"]):
        assert main([argv[0], str(folder), *argv[1:]]) == 2
        assert capsys.readouterr().err.startswith("error: ")


@needs_walls
@pytest.mark.parametrize("name", [pytest.param("quantcode-frame", marks=pytest.mark.slow), "systrade-peeps"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: b"[" * 100_000 + b"\n",
        lambda line: json.dumps({**json.loads(line), "result": {"a": [1e308, -1]}}).encode() + b"\n",
    ],
)
def test_a_damaged_journal_of_programs_is_contradicted_in_words(
    name: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    folder = shutil.copytree(golden.stored(name), tmp_path / "r")
    for file in folder.glob("episodes/*/events.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(map(damage, lines)))
    found = verify(folder, workers=1, programs=False)
    assert found.exit_code == 1 and {one.check for one in found.violations} & {"journal", "replay"}


def test_a_fault_of_verify_itself_has_a_status_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = golden.stored("stockbench-paper")
    with mock.patch("tradeassay.runs.verify.report.read_manifest", side_effect=TypeError("of ours\nmore")):
        assert main(["verify", str(folder)]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line.startswith("error: a fault of tradeassay's own, TypeError at ") and "of ours (nothing is said" in line
    )


def test_a_synthetic_world_is_made_again_and_not_believed_from_the_store(tmp_path: Path) -> None:
    world = "synthetic/crypto:7"
    stored = load_dataset(world, tmp_path)
    assert load_proven(world, tmp_path).sha256 == stored.sha256
    shutil.rmtree(stored.folder)
    panel = generate(preset("crypto", seed=8)).panel  # hashed as it should be, and another world
    write_snapshot(replace(panel, name=world), stored.folder)
    with pytest.raises(DataError, match="is not the one that its seed gives"):
        load_proven(world, tmp_path)
    spec = RunSpec(
        slug="x",
        benchmarks=("daily-crypto-v1",),
        agents=(AgentSpec(name="random", params={"k": 3}),),
        window=Window(first="2022-03-01", last="2022-03-03"),
    )
    made = run(spec, tmp_path / "r", home=tmp_path, executor="inline")
    honest = run(spec, tmp_path / "h", home=tmp_path / "other", executor="inline")
    found = verify(made.folder, home=tmp_path, workers=1)
    assert found.exit_code == 1 and "is not the one that its seed gives" in str(found.violations[0])
    found = verify(honest.folder, home=tmp_path, workers=1)  # the store of whoever verifies accuses nobody
    assert found.exit_code == 3 and any("it is made anew on its next use" in one.why for one in found.claims)
    assert verify(honest.folder, home=tmp_path / "other", workers=1).exit_code == 0
