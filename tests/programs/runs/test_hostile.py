"""Runs and archives that were received, or made to hurt whoever verifies them: bounds, paths,
one-line faults.
"""

import json
import os
import shutil
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import golden
import msgspec
import numpy as np
import pytest
import runs_talk as talk
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.cli import main
from tradeassay.core.errors import DataError, TradeassayError, UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.metrics.baseline import compare_to_baseline
from tradeassay.metrics.intervals import BootstrapConfig
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.data import load_dataset, load_verified
from tradeassay_bench.data.datasets import write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.runs import AgentSpec, CodeRun, RunSpec, Window, run
from tradeassay_bench.runs.spec.run_spec import spec_from
from tradeassay_bench.runs.verify import seal
from tradeassay_bench.runs.verify.report import verify
from tradeassay_bench.runs.verify.seal import open_seal, seal_run
from tradeassay_programs.benchmarks.quantcode.benchmark import QuantCodeProtocol
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.benchmarks.systrade.spec import SystradeSpec
from tradeassay_programs.sandbox import ask_kernel, refusal

SPEC = talk.talk_spec("tiny-good", seeds=(0,), window=Window(first="2024-01-15", last="2024-01-17"))

MODEL = "episodes/tiny-talk-v1__tiny-us__tiny-good__s0"


@pytest.fixture(scope="module")
def honest(home, tmp_path_factory):
    return run(SPEC, tmp_path_factory.mktemp("honest") / "r", executor="inline", home=home)


@pytest.fixture
def copy(honest, tmp_path):
    shutil.copytree(honest.folder, tmp_path / "r")
    return tmp_path / "r"


@pytest.mark.parametrize(
    "name", ["manifest.json", "scores.json", f"{MODEL}/events.jsonl", f"{MODEL}/outcome.json"]
)
def test_a_sparse_file_is_not_read_into_memory(copy, home, name):
    os.truncate(copy / name, 1 << 31)
    with pytest.raises(RunError, match="too large to be read"):
        verify(copy, home=home, workers=1)


@pytest.mark.parametrize("name", ["manifest.json", f"{MODEL}/outcome.json"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"1" * 100_000, "it contains an unreadable value"),
        (b"null", "it must not contain 'zzz'"),
    ],
    ids=["endless", "null"],
)
def test_a_name_that_no_record_knows_is_told_whatever_stands_behind_it(
    copy, home, name, value, said
):
    content = (copy / name).read_bytes().lstrip()
    (copy / name).write_bytes(b'{"zzz":' + value + b"," + content[1:])
    found = verify(copy, home=home, workers=1)
    assert said in str(found.violations)


def test_a_folder_where_the_manifest_belongs(copy):
    (copy / "manifest.json").unlink()
    (copy / "manifest.json").mkdir()
    with pytest.raises(RunError, match=r"manifest\.json is missing"):
        verify(copy)


@pytest.mark.parametrize(("field", "name"), [("dataset", "tiny-talk-v1"), ("benchmark", "tiny-us")])
def test_an_episode_of_what_the_manifest_does_not_describe(copy, home, field, name):
    """The name stands in the manifest, as that of something else."""
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["episodes"][0][field] = name
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=f"no description of '{name}'"):
        verify(copy, home=home, workers=1)


def test_thousands_of_strange_files_are_one_note(copy, home):
    for number in range(300):
        (copy / MODEL / f"s{number:04d}").touch()
    found = verify(copy, home=home, workers=1)
    assert found.exit_code == 0 and any("s0000 and 299 more" in note for note in found.notes)


def test_an_agent_that_bears_the_name_of_another(home, tmp_path):
    agents = (
        AgentSpec(name="cash", label="momentum-12-1"),
        AgentSpec(name="random", label="gpt-9"),
    )
    spec = msgspec.structs.replace(SPEC, agents=agents)
    found = verify(
        run(spec, tmp_path / "r", executor="inline", home=home).folder, home=home, workers=1
    )
    assert [one.what for one in found.violations] == [
        "'cash' has the label 'momentum-12-1', the name of another agent"
    ]
    (labels,) = (note for note in found.notes if note.startswith("the runner's labels: "))
    assert "'gpt-9' is shown as 'rule random: gpt-9'" in labels


def test_intervals_that_were_made_easy_are_named(honest, home):
    found = verify(honest.folder, home=home, workers=1)
    assert any(
        note.startswith("the runner changed the computation of intervals: draws 50")
        for note in found.notes
    )
    path = [1.01**day * (1 + 0.001 * (day % 3)) for day in range(60)]
    easy = compare_to_baseline(path, [1.0] * 60, bootstrap=BootstrapConfig(level=0.05))
    assert easy.sentence.endswith("judged at a level of only 5%")


def repacked(source, target, edit):
    shutil.copyfile(source, target)
    with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive:
        edit(archive)
    return target


def bomb(archive):
    archive.writestr("models/x.jsonl", b"\0" * (2 << 20))


def test_an_archive_that_is_made_to_hurt(honest, tmp_path, monkeypatch):
    monkeypatch.setattr(seal, "SMALL", 1 << 20)
    monkeypatch.setattr(seal, "DENSEST", 20)
    seal_run(honest.folder, tmp_path / "r.seal")
    bad = repacked(tmp_path / "r.seal", tmp_path / "bad.seal", bomb)
    with pytest.raises(RunError, match="too large to be unpacked"), open_seal(bad):
        pass


needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)

AWAY = {"models": ("scripted/away",)}
GRID = {"name": "x", "benchmarks": ("ktdfin-v1",), "agents": (AgentSpec(name="cash"),)}
MANY = {"models": tuple(f"scripted/{n}" for n in range(1000)), "seeds": tuple(range(1000))}


@pytest.mark.parametrize(
    "make",
    [
        *(
            partial(kind, **AWAY, **{field: value})
            for kind, field, value in (
                (SystradeSpec, "minutes", 10**9),
                (SystradeSpec, "minutes", -1),
                (SystradeSpec, "data_seed", 10**30),
                (SystradeSpec, "seeds", tuple(range(10**6))),
                (QuantCodeSpec, "turns", 10**9),
                (QuantCodeSpec, "seeds", (-1,)),
                (QuantCodeSpec, "tasks", tuple(map(str, range(10**6)))),
            )
        ),
        lambda: QuantCodeProtocol(QuantCodeSpec(**MANY)).episodes(),
        lambda: RunSpec(**GRID, seeds=(2**63,)),
        lambda: RunSpec(**GRID, seeds=tuple(range(10**6))),
        lambda: RunSpec(**GRID, protocol={"temperature": tuple(range(100_000))}),
        lambda: spec_from({**GRID, "agents": ["cash"], "bootstrap": {"level": np.nan}}),
        lambda: load_dataset(f"synthetic/us:{'9' * 5000}"),
    ],
)
def test_numbers_beyond_their_bounds_are_refused_before_any_work(make):
    with pytest.raises(UserError) as refused:
        make()
    assert refused.value.hint


@pytest.mark.parametrize(
    "setting", ["tool_calls=1000000000", "retries=-1", "timeout_s=nan", "max_tokens=1e300"]
)
def test_settings_of_a_conversation_have_bounds(setting, tell):
    assert tell(
        ["run", "ktdfin-v1", "-m", "scripted/sensible", "--set", setting], 2
    ).err.startswith("error: ")


def edited(folder, target, **spec):
    """Copy a run of programs with other fields in its spec and every hash made again."""
    shutil.copytree(folder, target)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["spec"] |= spec
    manifest["work_sha256"] = sha256_of(
        msgspec.convert(manifest["spec"], CodeRun.load(folder).kind.Spec)
    )
    (target / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return target


@pytest.mark.slow
@needs_walls
def test_no_path_of_a_received_run_is_opened(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    folder = edited(
        golden.stored("quantcode-frame"), tmp_path / "r", task_file=str(tmp_path / "pipe")
    )
    real, opened = Path.open, []
    with mock.patch.object(
        Path, "open", lambda self, *a, **k: opened.append(self) or real(self, *a, **k)
    ):
        found = verify(folder, workers=1)
        assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
        assert main(["compare", str(folder), str(folder)]) == 0
    assert tmp_path / "pipe" not in opened
    why = "the tasks are in a file of the runner ('pipe'), which is not opened"
    assert {one.claim for one in found.claims if one.why.startswith(why)} >= {
        "rules",
        "programs",
        "scores",
    }
    assert "--task-file" in capsys.readouterr().out + str(found.claims)
    for path in ("/proc/kmsg", str(tmp_path / "pipe"), str(tmp_path)):
        with pytest.raises(TradeassayError):
            QuantCodeProtocol(QuantCodeSpec(models=("scripted/away",), task_file=path))


@pytest.mark.parametrize("place", ["manifest.json", "scores.json", "models/x.jsonl"])
@pytest.mark.parametrize("odd", [os.mkfifo, lambda path: os.symlink("/proc/kmsg", path)])
def test_a_run_with_a_pipe_or_a_link_is_refused_by_every_command(place, odd, tmp_path, tell):
    folder = shutil.copytree(golden.stored("stockbench-paper"), tmp_path / "r")
    (folder / place).unlink(missing_ok=True)
    odd(folder / place)
    page = str(tmp_path / "page.html")
    for argv in (["verify"], ["report", "-o", page], ["seal"], ["assay", "-o", page], ["resume"]):
        assert tell([argv[0], str(folder), *argv[1:]], 2).err.startswith("error: ")


@needs_walls
@pytest.mark.parametrize(
    "name", [pytest.param("quantcode-frame", marks=pytest.mark.slow), "systrade-peeps"]
)
@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: b"[" * 100_000 + b"\n",
        lambda line: (
            json.dumps({**json.loads(line), "result": {"a": [1e308, -1]}}).encode() + b"\n"
        ),
    ],
)
def test_a_damaged_journal_of_programs_is_contradicted_in_words(name, damage, tmp_path):
    folder = shutil.copytree(golden.stored(name), tmp_path / "r")
    for file in folder.glob("episodes/*/events.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(map(damage, lines)))
    found = verify(folder, workers=1, programs=False)
    assert found.exit_code == 1 and {one.check for one in found.violations} & {"journal", "replay"}


def test_a_fault_of_verify_itself_has_a_status_of_its_own(capsys):
    folder = golden.stored("stockbench-paper")
    with mock.patch(
        "tradeassay_bench.runs.verify.report.read_manifest", side_effect=TypeError("of ours\nmore")
    ):
        assert main(["verify", str(folder)]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line.startswith("error: internal error in tradeassay, TypeError at ")
        and "of ours (the run itself was not judged" in line
    )


def test_a_synthetic_world_is_made_again_and_not_believed_from_the_store(tmp_path):
    world = "synthetic/crypto:7"
    stored = load_dataset(world, tmp_path)
    assert load_verified(world, tmp_path).sha256 == stored.sha256
    shutil.rmtree(stored.folder)
    panel = generate(preset("crypto", seed=8)).panel  # hashed as it should be, and another world
    write_snapshot(replace(panel, name=world), stored.folder)
    with pytest.raises(DataError, match="differs from the world that its seed generates"):
        load_verified(world, tmp_path)
    spec = RunSpec(
        name="x",
        benchmarks=("daily-crypto-v1",),
        agents=(AgentSpec(name="random", params={"k": 3}),),
        window=Window(first="2022-03-01", last="2022-03-03"),
    )
    made = run(spec, tmp_path / "r", home=tmp_path, executor="inline")
    honest = run(spec, tmp_path / "h", home=tmp_path / "other", executor="inline")
    found = verify(made.folder, home=tmp_path, workers=1)
    assert found.exit_code == 1 and "differs from the world of its seed" in str(found.violations[0])
    found = verify(
        honest.folder, home=tmp_path, workers=1
    )  # the store of whoever verifies accuses nobody
    assert found.exit_code == 3 and any(
        "it is generated again on its next use" in one.why for one in found.claims
    )
    assert verify(honest.folder, home=tmp_path / "other", workers=1).exit_code == 0
