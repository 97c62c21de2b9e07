"""Vendor libraries talk: warnings, log lines, prints on stdout. Our results go there, not their chatter."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quietly(module: str) -> Iterator[None]:
    """Keep a library's log lines, its prints and the warnings it causes to itself; its exceptions pass."""
    logger = logging.getLogger(module)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
