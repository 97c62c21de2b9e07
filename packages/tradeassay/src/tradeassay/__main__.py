"""``python -m tradeassay``, and the installed command."""

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
    from tradeassay import cli

    signal.signal(signal.SIGINT, usual)
    return cli.main()


def _stop(number: int, frame: FrameType | None) -> None:
    # An exception would show the imports that it passes through, or be lost in one of them.
    os.write(sys.stderr.fileno(), b"stopped\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
