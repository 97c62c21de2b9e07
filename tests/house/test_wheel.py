"""The release path: the built wheel carries everything, and works away from the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import tradeassay

ROOT = Path(__file__).resolve().parents[2]


PACKAGES = sorted((ROOT / "packages").iterdir())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    for package in PACKAGES:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "build",
                "--wheel",
                "--no-isolation",
                "--outdir",
                str(out),
                str(package),
            ],
            check=True,
            capture_output=True,
            cwd=out,
        )
    return sorted(out.glob("*.whl"))


@pytest.mark.journey
def test_the_wheels_hold_every_file_of_their_package_and_nothing_else(wheels):
    assert len(wheels) == len(PACKAGES) == 4
    for package in PACKAGES:
        source = package / "src"
        (wheel,) = (
            one for one in wheels if one.name.startswith(f"{package.name.replace('-', '_')}-")
        )
        with zipfile.ZipFile(wheel) as archive:
            packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        expected = {
            str(path.relative_to(source))
            for path in source.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
        }
        assert packed == expected


@pytest.mark.slow
def test_a_run_from_the_wheels_outside_the_checkout(wheels, tmp_path):
    """The dependencies come from the environment of the tests, the package from the unpacked
    wheel only.
    """
    site = tmp_path / "site"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            (str(site), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        ),
        "TRADEASSAY_HOME": str(tmp_path / "home"),
    }
    # -S keeps the editable install's hook away, so that only the wheel can be imported.
    python = [sys.executable, "-S", "-m", "tradeassay"]
    there = {"env": env, "cwd": tmp_path, "text": True}
    ask = [sys.executable, "-S", "-c", "import tradeassay; print(tradeassay.__file__)"]
    assert subprocess.check_output(ask, **there).startswith(str(site))
    window = ["--first", "2022-12-01", "--last", "2022-12-31", "--executor", "inline"]
    command = [
        *python,
        "run",
        "daily-crypto-v1",
        "-a",
        "cash",
        "-a",
        "equal-weight",
        *window,
        "--name",
        "w",
    ]
    done = subprocess.run(command, capture_output=True, **there)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/w/report.html").stat().st_size > 100_000


@pytest.mark.slow
def test_a_clean_clone_can_be_released(tmp_path):
    """Both packages are built and their metadata checked; a file that was not committed stops
    it.
    """
    clone = tmp_path / "clone"
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c"}
    env = {**os.environ, **author, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.c"}
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=clone, env=env, check=True)
    (clone / ".venv").symlink_to(sys.prefix)
    (clone / ".git" / "info" / "exclude").write_text(".venv\n")
    done = subprocess.run(["scripts/release"], cwd=clone, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    version = tradeassay.__version__
    assert f"tradeassay-{version}-py3-none-any.whl" in done.stdout
    built = {path.name for path in (clone / "dist").iterdir()}
    assert built == {
        f"{package}-{version}{ending}"
        for package in (
            "tradeassay",
            "tradeassay_bench",
            "tradeassay_programs",
            "tradeassay_arena",
            "tradeassay_recordings",
        )
        for ending in ("-py3-none-any.whl", ".tar.gz")
    }
    (clone / "note.txt").write_text("not committed")
    refused = subprocess.run(
        ["scripts/release"], cwd=clone, env=env, capture_output=True, text=True
    )
    assert refused.returncode == 1 and "commit everything first" in refused.stderr
