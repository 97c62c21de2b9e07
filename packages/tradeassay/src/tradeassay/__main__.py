"""``python -m tradeassay``, and the installed command."""

import gc
import os
import sys

try:
    import signal
    from types import FrameType
except KeyboardInterrupt:  # these take longer to load than all that came before them
    os._exit(130)


def main() -> int:
    """Run the command line. Until it is loaded, Ctrl-C ends the process in one line: nothing has begun."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # a command in the background of a script may ignore it
        signal.signal(signal.SIGINT, _stop)
    # Loading a command makes many objects and hardly any garbage. At Python's usual threshold of 700 objects the
    # search for garbage takes a tenth of the time of a short command.
    gc.set_threshold(50_000)
    from tradeassay import cli

    signal.signal(signal.SIGINT, usual)
    status = cli.main()
    gc.freeze()  # the process ends, so its objects need no last search for garbage
    return status


def _stop(number: int, frame: FrameType | None) -> None:
    # An exception would show the imports that it passes through, or be lost in one of them.
    os.write(sys.stderr.fileno(), b"stopped\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
