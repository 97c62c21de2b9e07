"""A watchdog over the host's own supervisors: one that is stuck costs its own job, and no other.

Each supervisor works in a thread of its own, and whoever asked for the job waits here and looks after it. A
supervisor that takes no further step is interrupted. One that cannot be interrupted either (it waits inside the
operating system) is left behind: its child is killed, and its thread closes what it holds if it ever goes on.
"""

import ctypes
import socket
import threading
import time
from typing import Final

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox.failures import Doubt, SupervisorFault
from tradeassay_programs.sandbox.job import JobResult
from tradeassay_programs.sandbox.supervise import Supervisor, SupervisorStuck

STUCK_S: Final = 120.0
"""A supervisor that takes longer for one step is stuck; the longest honest ones take a few seconds."""
LEAVE_S: Final = 15.0
"""What a supervisor gets to end in, once it was interrupted."""
_BEAT_S: Final = 1.0
"""The watchdog looks this often; waking late by as much again, it was the machine that stood still."""


class _Work:
    """A supervisor at work in a thread of its own, and what came of it."""

    def __init__(self, supervisor: Supervisor, zygote: socket.socket) -> None:
        self.supervisor = supervisor
        self.done = threading.Event()
        self.outcome: tuple[JobResult, Doubt] | None = None
        self.error: BaseException | None = None
        self._zygote = zygote
        # A daemon: the interpreter's end does not wait for a thread that was left behind.
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
        except BaseException as error:  # it belongs to the thread that asked for the job
            self.error = error
        finally:
            self.done.set()

    def interrupt(self) -> None:
        """Raise SupervisorStuck in the thread as soon as it executes Python again."""
        thread = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(SupervisorStuck))


def run_watched(supervisor: Supervisor, zygote: socket.socket) -> tuple[JobResult, Doubt]:
    """Run a supervisor's job; raises what the supervisor raises. A supervisor that is stuck gives a failed job."""
    work = _Work(supervisor, zygote)
    try:
        work.start()
        stuck = not _wait(work)
    except BaseException:  # Ctrl-C: the job goes first, and nothing of it stays open
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
    """Wait until a supervisor is done; returns False for one that neither goes on nor can be interrupted."""
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
