"""Vendor libraries talk: warnings, log lines, prints, progress bars. Our output is ours, not their chatter."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quietly(module: str) -> Iterator[None]:
    """Keep a library's log lines, prints, progress bars and the warnings it causes to itself; errors pass."""
    logger = logging.getLogger(module)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
