"""Golden runs as folders on disk, for tests that need a finished run of any kind; each is played once."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import golden


@cache
def played(name: str) -> Path:
    """Return the folder of a golden run, without its page."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        folder = golden.play(name, Path(mkdtemp(prefix="golden-")))
    (folder / "report.html").unlink(missing_ok=True)
    return folder
