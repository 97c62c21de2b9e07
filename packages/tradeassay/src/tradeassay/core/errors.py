"""Errors, one class per kind of fault. Each error has a hint about what to do next.

The command line shows any :class:`TradeassayError` as one line without a traceback. Any other
exception that escapes is a bug in tradeassay and keeps its traceback.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import msgspec

    UNDECODABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
    """Exceptions of a decoder for unreadable input: wrong format or shape, not UTF-8, nested too
    deeply."""
else:

    def __getattr__(name: str) -> Any:
        # Every command loads this module, but only commands that decode something need msgspec.
        if name != "UNDECODABLE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import msgspec

        return (msgspec.DecodeError, UnicodeError, RecursionError)


class TradeassayWarning(UserWarning):
    """A warning about something that does not change a number."""


class TradeassayError(Exception):
    """Base class of all expected failures.

    ``message`` names the fault, and ``hint`` says how to fix it.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message} ({hint})" if hint else message)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # The runner sends exceptions between processes. Keyword arguments must survive pickling.
        return partial(type(self), hint=self.hint), (self.message,)


class UserError(TradeassayError):
    """A wrong name, option, file or value that the caller must correct."""


class MissingExtra(UserError):
    """An optional package is needed but not installed."""


class DataError(TradeassayError):
    """Data is missing, damaged or different from its manifest."""


class SandboxError(TradeassayError):
    """Untrusted code could not be run safely."""


def require(module: str, extra: str, what: str = "this", *, instead: str = "") -> object:
    """Import an optional module, or raise :class:`MissingExtra` naming its ``extra``.

    ``what`` is the feature that needs the module. ``instead`` is an alternative for the hint.
    """
    import importlib

    package = module.partition(".")[0]
    hint = f"{f'{instead}, or ' if instead else ''}pip install 'tradeassay[{extra}]'"
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if not (
            isinstance(error, ModuleNotFoundError)
            and (error.name or "").partition(".")[0] == package
        ):
            message = f"{what} needs the package '{package}', which cannot be imported: {error}"
            raise MissingExtra(message, hint=hint) from error
        raise absent(package, extra, what, hint) from error


def absent(package: str, extra: str, what: str = "this", hint: str = "") -> MissingExtra:
    return MissingExtra(
        f"{what} needs the package '{package}', which is not installed",
        hint=hint or f"pip install 'tradeassay[{extra}]'",
    )
