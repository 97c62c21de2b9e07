"""One seed, the same bytes: today, tomorrow, and on a CPU without vector instructions.

When a change of the model is meant, raise ``VERSION`` and print the new digests with ``digest.py``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core import _multiarray_umath

from tradeassay_bench.data.synthetic import VERSION

GOLDEN = {
    "us:7": "611173adcf532162438760c7acbaa1a5e382058a941762163ea6873b52bda57d",
    "us:8": "1ae5d74f6220abe83b3d85cf2ee7e910e45bf581a4160d7a41111878d7cba93e",
    "ashare:7": "d64b4c963cd3a8610d5ed2264c4a3664bd7dc40324b6f194ee0038ec47c22096",
    "ashare:8": "75f6906a416939d4434646550072e894c50afe5a921c6e5a46a77c48d5764a7b",
    "crypto:7": "8331c0d0375e2e373d4ef2bc8b41afc45984c6862929939059854118bddfa4fb",
    "crypto:8": "6eb9df508d5b60b624a40b963bb8cb8c16fe557229b402d00e0fc455925dbe00",
    "minutes:7": "e12975d2793f6fbe6e7cf0c32a090340c5ca58ce42141c7101ed60726c9aa99d",
}


def digests(**environment: str) -> dict[str, str]:
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("digest.py"))]
    return json.loads(subprocess.check_output(command, env={**os.environ, **environment}))


def test_worlds_are_the_same_as_ever():
    assert VERSION == "synthetic-v1", "the version of these digests"
    assert digests(PYTHONHASHSEED="1") == GOLDEN


@pytest.mark.slow
def test_worlds_are_the_same_without_vector_instructions():
    """numpy picks its loops by CPU; without any of the optional features the bytes must not
    change.
    """
    found = _multiarray_umath.__cpu_features__
    features = [name for name in _multiarray_umath.__cpu_dispatch__ if found.get(name)]
    if not features:
        pytest.skip("this CPU has none of numpy's optional features")
    probe = (
        "import numpy._core._multiarray_umath as m; print(sum(m.__cpu_features__[f] for f in "
        "m.__cpu_dispatch__))"
    )
    environment = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        "OPENBLAS_CORETYPE": "Nehalem",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA",
        "PYTHONHASHSEED": "2",
    }
    command = [sys.executable, "-W", "ignore", "-c", probe]
    done = subprocess.check_output(command, env={**os.environ, **environment})
    assert int(done) == 0, "the features are really off"
    assert digests(**environment) == GOLDEN
