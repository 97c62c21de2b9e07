"""Data shared by the processes of one test session: golden runs, and worlds that are generated
once.
"""

import os
import tempfile
from pathlib import Path


def session_folder() -> Path:
    """Return the folder shared by the processes of this test session. The conftest deletes it."""
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"pid-{os.getpid()}"
    shared = Path(tempfile.gettempdir()) / f"tradeassay-golden-{session}"
    shared.mkdir(exist_ok=True)
    return shared


def session_home() -> Path:
    """Return a data home in which each synthetic world is generated once per session."""
    return session_folder() / "worlds"
