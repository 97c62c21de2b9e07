"""The command line: one file per command group. Each command body is one library call.

Results are written to stdout, prose and progress to stderr. Therefore ``--json`` output can be
piped.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import warnings
from typing import Any

import click

from tradeassay.cli._group import root
from tradeassay.core.errors import TradeassayError, TradeassayWarning, absent
from tradeassay.core.screen import clean_screen
from tradeassay.core.secrets import lookalikes

__all__ = ["main", "root"]

_MACHINE = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
)
"""Error numbers caused by the machine, such as a full disk or too many open files."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    _open_streams()
    _speak_plainly()
    # Our matrices are small. With several threads, synchronisation takes a third of the CPU time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    usual = warnings.formatwarning

    def said(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
        """Format tradeassay's own warnings without their source location."""
        ours = issubclass(category, TradeassayWarning)
        return f"warning: {message}\n" if ours else usual(message, category, *where, **more)

    with clean_screen():
        warnings.formatwarning = said
        try:
            return _main(argv)
        finally:
            warnings.formatwarning = usual
            if (warning := lookalikes()) is not None:
                print(warning, file=sys.stderr)


def _open_streams() -> None:
    """Open standard streams that were closed before the start, on the null device.

    Otherwise the next opened file takes the stream's descriptor, and printed text is written into
    that file.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, "r+", encoding="utf-8")
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)


def _speak_plainly() -> None:
    """Replace characters that the terminal's encoding lacks by ASCII ones.

    The minus sign is such a character.
    """

    def plain(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        signs = {
            "\N{MINUS SIGN}": "-",
            "\N{EN DASH}": "-",
            "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
        }
        return "".join(
            signs.get(sign, "?") for sign in error.object[error.start : error.end]
        ), error.end

    codecs.register_error("tradeassay.plain", plain)
    for screen in (sys.stdout, sys.stderr):
        if isinstance(screen, io.TextIOWrapper) and codecs.lookup(screen.encoding).name != "utf-8":
            screen.reconfigure(errors="tradeassay.plain")


def _main(argv: list[str] | None) -> int:
    try:
        status = root.main(args=argv, prog_name="tradeassay", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt) as stop:
        # A stopped run has already reported how to continue. Report only stops without a message
        # here.
        if not str(stop.__cause__ or stop):
            click.echo("stopped", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TradeassayError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except ModuleNotFoundError as error:
        from tradeassay.core.machine import OPTIONAL

        package = (error.name or "").partition(".")[0]
        extra = next((extra for extra, (module, _) in OPTIONAL.items() if module == package), None)
        if extra is None:
            raise
        click.echo(f"error: {absent(package, extra)}", err=True)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (ConnectionError, TimeoutError) as error:
        click.echo(
            f"error: the connection was lost: {error.strerror or error} (try again)", err=True
        )
        return 2
    except OSError as error:
        # The user can fix a folder without write permission or a full disk. Any other error without
        # a path is a bug in tradeassay.
        if error.filename is None and error.errno not in _MACHINE:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        room = "" if isinstance(error, PermissionError) else "make room, or "
        hint = f"{room}choose another folder; the run can be continued"
        click.echo(f"error: {where}{error.strerror or error} ({hint})", err=True)
        return 2
    return status if isinstance(status, int) else 0
