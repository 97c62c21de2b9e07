"""The four ways in, from `git clone` to the answer, as scripts: few commands, and an answer at the end."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
WAYS = sorted((ROOT / "examples" / "ways").glob("*.sh"))
MOST = (6, 8, 3, 4)
ANSWERS = ("model-index:", "against", "returned", "step 2: mean reward")


def test_a_way_is_short() -> None:
    assert len(WAYS) == 4
    for path, most in zip(WAYS, MOST, strict=True):
        commands = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(commands) <= most, path.name


@pytest.mark.slow
@pytest.mark.parametrize("way", range(4), ids=[path.stem for path in WAYS])
def test_a_way_ends_with_the_answer(way: int, tmp_path: Path) -> None:
    """Packages come from this environment instead of the index: only the checkout itself is installed."""
    made = tmp_path / "env"
    venv.create(made, with_pip=True)
    place = Path(sysconfig.get_path("purelib", vars={"base": str(made), "platbase": str(made)}))
    (place / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = made / "bin" / "pip"
    pip.write_text(
        f"#!/bin/sh\nshift\nexec {made}/bin/python -m pip install -q --no-deps --no-build-isolation --no-index "
        '"$@"\n'
    )
    rng = np.random.default_rng(1)
    for name in ("returns", "market"):
        days = np.arange("2022-01-03", "2023-06-01", dtype="datetime64[D]")
        rows = [f"{day},{value:.6f}" for day, value in zip(days, rng.normal(0, 0.01, len(days)), strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["date,return", *rows]))
    env = {
        **os.environ,
        "PATH": f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "REPOSITORY": str(ROOT),
        "TRADEASSAY_HOME": str(tmp_path / "home"),
        "NO_COLOR": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    words = ["bash", "-euo", "pipefail", str(WAYS[way])]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    told = done.stdout + ((tmp_path / "README.md").read_text() if (tmp_path / "README.md").exists() else "")
    assert ANSWERS[way] in told
