"""A screen and a log that show no secrets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tradeassay.core.secrets import clean_bytes, clean_text

if TYPE_CHECKING:
    import logging

    from rich.console import Console


class _CleanStream:
    """A text or binary stream that removes configured secrets from everything written to it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, data: Any) -> int:
        if isinstance(data, str):
            self._inner.write(clean_text(data))
        else:
            self._inner.write(clean_bytes(bytes(data)))
        return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _CleanStream:
        return _CleanStream(self._inner.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inner)


@contextmanager
def clean_screen() -> Iterator[None]:
    """Keep secrets out of standard output and standard error while the block runs."""
    output, errors = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _clean(output), _clean(errors)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, errors


@contextmanager
def clean_log() -> Iterator[None]:
    """Keep secrets out of log records that are made while the block runs."""
    import logging

    factory = logging.getLogRecordFactory()
    logging.setLogRecordFactory(_clean_records(factory))
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)


def _clean(stream: Any) -> Any:
    return stream if stream is None or isinstance(stream, _CleanStream) else _CleanStream(stream)


def _clean_records(factory: Any) -> Any:
    def make(*args: Any, **named: Any) -> logging.LogRecord:
        record: logging.LogRecord = factory(*args, **named)
        said = record.getMessage() if record.args else str(record.msg)
        cleaned = clean_text(said)
        if cleaned is not said:
            record.msg, record.args = cleaned, ()
        if record.exc_info and record.exc_info[1] is not None:
            import traceback

            told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (shown := clean_text(told)) is not told:
                record.exc_text = shown
        return record

    return make


def stdout() -> Console:
    """Return the console that prints tables on stdout; a pipe gets them at a fixed width."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)
