"""Entry point of ``python -m tradeassay`` and of the installed command."""

import gc
import os
import sys

try:
    import signal
    from types import FrameType
except KeyboardInterrupt:  # This import takes longer than everything before it.
    os._exit(130)


def main() -> int:
    """Run the command line and return its exit status.

    Until the command line is loaded, Ctrl-C ends the process with one line and no traceback.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # A background command of a script may ignore Ctrl-C.
        signal.signal(signal.SIGINT, _stop)
    # Loading a command creates many objects and hardly any garbage. At Python's usual threshold of
    # 700 objects, garbage collection takes a tenth of the time of a short command.
    gc.set_threshold(50_000)
    from tradeassay import cli

    signal.signal(signal.SIGINT, usual)
    status = cli.main()
    gc.freeze()  # The process ends here, so a last garbage collection is useless.
    return status


def _stop(number: int, frame: FrameType | None) -> None:
    # An exception would show the imports that it passes through, or an import would swallow it.
    os.write(sys.stderr.fileno(), b"stopped\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
