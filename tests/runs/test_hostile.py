"""Runs and archives made to hurt whoever verifies them, or to tell something that is not so in an honest form."""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import runs_talk as talk

from tradeassay.core.errors import RunError
from tradeassay.metrics.baseline import compare_to_baseline
from tradeassay.metrics.intervals import BootstrapConfig
from tradeassay.runs import AgentSpec, Run, run
from tradeassay.runs.spec.run_spec import Window
from tradeassay.runs.verify import seal
from tradeassay.runs.verify.report import verify
from tradeassay.runs.verify.seal import SEAL, SIGNATURE, Signers, open_seal, seal_run

SPEC = talk.talk_spec("tiny-good", seeds=(0,), window=Window(first="2024-01-15", last="2024-01-17"))
MODEL = "episodes/tiny-talk-v1__tiny-us__tiny-good__s0"


@pytest.fixture(scope="module")
def honest(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(SPEC, tmp_path_factory.mktemp("honest") / "r", executor="inline", home=home)


@pytest.fixture
def copy(honest: Run, tmp_path: Path) -> Path:
    shutil.copytree(honest.folder, tmp_path / "r")
    return tmp_path / "r"


@pytest.mark.parametrize(
    "name", ["manifest.json", "scores.json", f"{MODEL}/events.jsonl", f"{MODEL}/outcome.json"]
)
def test_a_sparse_file_is_not_read_into_memory(copy: Path, home: Path, name: str) -> None:
    os.truncate(copy / name, 1 << 31)
    with pytest.raises(RunError, match="too large to be read"):
        verify(copy, home=home, workers=1)


@pytest.mark.parametrize("name", ["manifest.json", f"{MODEL}/outcome.json"])
def test_a_number_without_end_in_a_name_that_no_record_knows(copy: Path, home: Path, name: str) -> None:
    content = (copy / name).read_bytes().lstrip()
    (copy / name).write_bytes(b'{"zzz":' + b"1" * 100_000 + b"," + content[1:])
    found = verify(copy, home=home, workers=1)
    assert "it holds a value that cannot be read" in str(found.violations)


def test_a_folder_where_the_manifest_belongs(copy: Path) -> None:
    (copy / "manifest.json").unlink()
    (copy / "manifest.json").mkdir()
    with pytest.raises(RunError, match=r"manifest\.json is missing"):
        verify(copy)


def test_thousands_of_strange_files_are_one_note(copy: Path, home: Path) -> None:
    for number in range(300):
        (copy / MODEL / f"s{number:04d}").touch()
    found = verify(copy, home=home, workers=1)
    assert found.exit_code == 0 and any("s0000 and 299 more" in note for note in found.notes)


def test_an_agent_that_bears_the_name_of_another(home: Path, tmp_path: Path) -> None:
    agents = (AgentSpec(name="cash", label="momentum-12-1"), AgentSpec(name="random", label="gpt-9"))
    spec = msgspec.structs.replace(SPEC, agents=agents)
    found = verify(run(spec, tmp_path / "r", executor="inline", home=home).folder, home=home, workers=1)
    assert [one.what for one in found.violations] == ["'cash' is called 'momentum-12-1', which is another agent"]
    assert "'gpt-9' is the runner's own label: it is shown as 'rule random: gpt-9'" in found.notes


def test_intervals_that_were_made_easy_are_named(honest: Run, home: Path) -> None:
    found = verify(honest.folder, home=home, workers=1)
    assert any(note.startswith("the runner chose how intervals are made: draws 50") for note in found.notes)
    path = [1.01**day * (1 + 0.001 * (day % 3)) for day in range(60)]
    easy = compare_to_baseline(path, [1.0] * 60, bootstrap=BootstrapConfig(level=0.05))  # type: ignore[arg-type]
    assert easy.sentence.endswith("judged at a level of only 5%")


def repacked(source: Path, target: Path, edit: Callable[[zipfile.ZipFile], None]) -> Path:
    shutil.copyfile(source, target)
    with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive:
        edit(archive)
    return target


def bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr("models/x.jsonl", b"\0" * (2 << 20))


def test_an_archive_that_is_made_to_hurt(honest: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "SMALL", 1 << 20)
    monkeypatch.setattr(seal, "DENSEST", 20)
    seal_run(honest.folder, tmp_path / "r.seal")
    bad = repacked(tmp_path / "r.seal", tmp_path / "bad.seal", bomb)
    with pytest.raises(RunError, match="too large to be unpacked"), open_seal(bad):
        pass


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_the_signature_of_another_archive(honest: Run, copy: Path, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "k"], check=True)
    (tmp_path / "signers").write_text(f"me@lab {(tmp_path / 'k.pub').read_text()}")
    seal_run(honest.folder, tmp_path / "a.seal", key=tmp_path / "k")
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["versions"]["packages"] = {}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    seal_run(copy, tmp_path / "b.seal")
    with zipfile.ZipFile(tmp_path / "a.seal") as archive:
        signature = archive.read(SIGNATURE)
        assert SEAL in archive.namelist()
    bad = repacked(tmp_path / "b.seal", tmp_path / "f.seal", lambda made: made.writestr(SIGNATURE, signature))
    for signers in (None, tmp_path / "signers"):
        with pytest.raises(RunError, match="ssh-keygen"), open_seal(bad, signers and Signers(signers)):
            pass
