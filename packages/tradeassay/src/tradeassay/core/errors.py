"""Errors, named by the boundary that was crossed. Each says what to do next.

The command line shows any :class:`TradeassayError` as one line without a traceback. Anything else
that escapes is a bug in tradeassay and keeps its traceback.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import msgspec

    UNDECODABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
    """What a decoder raises on what it cannot read: another format or shape, no UTF-8, nested too deep."""
else:

    def __getattr__(name: str) -> Any:
        # Every command loads this module, but only those that decode something need the decoder's package.
        if name != "UNDECODABLE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import msgspec

        return (msgspec.DecodeError, UnicodeError, RecursionError)


class TradeassayWarning(UserWarning):
    """Something the user should know but that does not change a number."""


class TradeassayError(Exception):
    """Base of every expected failure. ``message`` names the thing that is wrong, ``hint`` says what to do about
    it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message} ({hint})" if hint else message)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Exceptions cross process boundaries in the runner; keyword arguments must survive pickling.
        return partial(type(self), hint=self.hint), (self.message,)


class UserError(TradeassayError):
    """A wrong name, flag, file or value that the caller must fix."""


class MissingExtra(UserError):
    """An optional part is needed but not installed."""


class DataError(TradeassayError):
    """Data is missing, damaged or not what its manifest says."""


class SandboxError(TradeassayError):
    """Untrusted code could not be run safely."""


def require(module: str, extra: str, what: str = "this", *, instead: str = "") -> object:
    """Import an optional ``module``; raise :class:`MissingExtra` naming the ``extra`` when it cannot be had.
    ``what`` is the part that needs it, ``instead`` another way out."""
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
