"""Asking baostock: log in, put one question at a time, read every page, say in plain words what went wrong."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tradeassay.core.errors import SourceError, require
from tradeassay.data.connectors.asked import changed_format
from tradeassay.data.connectors.baostock_socket import Watch
from tradeassay.data.connectors.patience import Runtime, Throttled, Unanswered, patiently
from tradeassay.data.connectors.quiet import quietly

VENDOR = "baostock"
Row = dict[str, str]

OK, NOT_LOGGED_IN, TOO_OLD, TOO_MANY_LOGINS, BANNED = "0", "10001001", "10001004", "10001005", "10001011"
WIRE_TROUBLE = ("10002", "10004001", "10004002")
"""Beginnings of the codes that the library itself gives when reading from the wire failed."""


class BaostockWire:
    """A conversation with baostock. Use inside :func:`conversation`."""

    def __init__(self, library: Any, watch: Watch, runtime: Runtime) -> None:
        self._library = library
        self._watch = watch
        self._runtime = runtime
        self._logged_in = False

    def rows(self, what: str, needed: Sequence[str], method: str, *args: str, **named: str) -> list[Row]:
        """Call a query of the library and return all its rows.

        Raises :class:`SourceError` when it fails, or when a field of ``needed`` is missing in the answer.
        """

        def once() -> list[Row]:
            if not self._logged_in:
                self._log_in()
            return self._read(what, needed, getattr(self._library, method), args, named)

        return patiently(once, vendor=VENDOR, what=what, runtime=self._runtime)

    def _log_in(self) -> None:
        answer = self._attempt("the login", self._library.login)
        self._refuse("the login", answer)
        self._logged_in = True

    def _read(
        self,
        what: str,
        needed: Sequence[str],
        query: Callable[..., Any],
        args: Sequence[str],
        named: dict[str, str],
    ) -> list[Row]:
        rows: list[list[str]] = []

        def every_page() -> Any:
            result = query(*args, **named)
            # The library fetches the next page inside next(), and ends quietly when that fails.
            while result.error_code == OK and result.next():
                rows.append(result.get_row_data())
            return result

        result = self._attempt(what, every_page)
        self._refuse(what, result)
        missing = [name for name in needed if name not in result.fields]
        if missing:
            raise changed_format(VENDOR, what, f"no field {', '.join(missing)}", VENDOR)
        short = next((row for row in rows if len(row) != len(result.fields)), None)
        if short is not None:
            raise changed_format(VENDOR, what, f"a row reads {short}", VENDOR)
        return [dict(zip(result.fields, row, strict=True)) for row in rows]

    def _attempt(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            result = call()
        except json.JSONDecodeError as error:
            self._logged_in = False
            raise Unanswered("the answer is not complete JSON") from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise changed_format(VENDOR, what, repr(error), VENDOR) from error
        if self._watch.fault is not None:
            self._logged_in = False
            raise Unanswered(self._watch.fault)
        return result

    def _refuse(self, what: str, result: Any) -> None:
        code, message = str(result.error_code), str(result.error_msg)
        if code == OK:
            return
        if code == NOT_LOGGED_IN or code.startswith(WIRE_TROUBLE):
            self._logged_in = False
            raise Unanswered(f"{message} ({code})")
        if code == TOO_MANY_LOGINS:
            raise Throttled(f"too many logins: {message} ({code})")
        mends = {
            BANNED: "baostock has barred this address; wait a day and ask for less at once",
            TOO_OLD: "pip install -U baostock",
        }
        raise SourceError(
            f"baostock refused {what}: {message} ({code})", mend=mends.get(code, "check the code and the days")
        )


@contextlib.contextmanager
def conversation(runtime: Runtime) -> Iterator[BaostockWire]:
    """Open a conversation; it logs in with the first question and hangs up at the end.

    Raises :class:`~tradeassay.core.errors.MissingExtra` when baostock is not installed.
    """
    library: Any = require("baostock", "ashare")
    with quietly("baostock"), Watch(runtime.patience.timeout) as watch:
        yield BaostockWire(library, watch, runtime)
