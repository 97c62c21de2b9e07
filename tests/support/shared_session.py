"""What the processes of one session of tests share: golden runs, and worlds that are made once."""

import os
import tempfile
from pathlib import Path


def session_folder() -> Path:
    """Return what the processes of this session of tests share; the conftest drops it."""
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"pid-{os.getpid()}"
    shared = Path(tempfile.gettempdir()) / f"tradeassay-golden-{session}"
    shared.mkdir(exist_ok=True)
    return shared


def session_home() -> Path:
    """Return a data home in which each synthetic world is made once per session."""
    return session_folder() / "worlds"
