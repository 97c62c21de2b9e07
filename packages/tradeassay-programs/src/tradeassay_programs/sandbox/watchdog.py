"""Watch the host's supervisors, so that a stuck supervisor fails only its own job.

Each supervisor works in a separate thread. The thread that submitted the job waits here and
monitors the supervisor. A supervisor that makes no progress is interrupted. If it waits inside the
operating system, it cannot be interrupted and is abandoned. Its child is killed, and its thread
closes its descriptors if it ever continues.
"""

import ctypes
import socket
import threading
import time
from typing import Final

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox.failures import Attribution, SupervisorFault
from tradeassay_programs.sandbox.job import JobResult
from tradeassay_programs.sandbox.supervise import Supervisor, SupervisorStuck

STUCK_S: Final = 120.0
"""Seconds without progress after which a supervisor is considered stuck.

The longest normal steps take a few seconds.
"""
LEAVE_S: Final = 15.0
"""Seconds that an interrupted supervisor has to finish."""
_BEAT_S: Final = 1.0
"""The watchdog's interval in seconds.

If it wakes up later than twice the interval, the machine was suspended.
"""


class _Work:
    """A supervisor at work in a separate thread, and its outcome."""

    def __init__(self, supervisor: Supervisor, zygote: socket.socket) -> None:
        self.supervisor = supervisor
        self.done = threading.Event()
        self.outcome: tuple[JobResult, Attribution] | None = None
        self.error: BaseException | None = None
        self._zygote = zygote
        # The thread is a daemon, so the interpreter's exit does not wait for an abandoned thread.
        self._thread = threading.Thread(target=self._run, name="sandbox-supervisor", daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            raise SandboxError(str(error), hint="use fewer workers") from error

    def _run(self) -> None:
        try:
            with self.supervisor:
                self.outcome = self.supervisor.run(self._zygote)
        except BaseException as error:  # The submitting thread raises this exception.
            self.error = error
        finally:
            self.done.set()

    def interrupt(self) -> None:
        """Raise SupervisorStuck in the thread as soon as it executes Python again."""
        thread = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(SupervisorStuck))


def run_watched(supervisor: Supervisor, zygote: socket.socket) -> tuple[JobResult, Attribution]:
    """Run a supervisor's job, and return its result. Raises the supervisor's exceptions.

    A stuck supervisor returns a failed job.
    """
    work = _Work(supervisor, zygote)
    try:
        work.start()
        stuck = not _wait(work)
    except BaseException:  # On Ctrl-C the job ends first, and all its descriptors are closed.
        supervisor.give_up()
        work.done.wait(LEAVE_S)
        raise
    if work.outcome is not None:
        return work.outcome
    if stuck or isinstance(work.error, SupervisorStuck):
        reason = (
            f"its supervisor took no step for {STUCK_S:g} s while it was {supervisor.busy_with}"
        )
        result = supervisor.failed(SupervisorFault(reason=reason))
        supervisor.give_up()
        return result, ""
    assert work.error is not None
    raise work.error


def _wait(work: _Work) -> bool:
    """Wait until a supervisor is done.

    Returns False if the supervisor makes no progress and cannot be interrupted.
    """
    steps, without_step, interrupted = work.supervisor.steps, 0.0, False
    woke = time.monotonic()
    while not work.done.wait(_BEAT_S):
        before, woke = woke, time.monotonic()
        if work.supervisor.steps != steps:
            steps, without_step = work.supervisor.steps, 0.0
            continue
        without_step += min(woke - before, 2 * _BEAT_S)
        if interrupted and without_step > LEAVE_S:
            return False
        if not interrupted and without_step > STUCK_S:
            work.interrupt()
            interrupted, without_step = True, 0.0
    return True
