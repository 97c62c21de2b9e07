"""An agent in a process of its own that speaks JSON lines: a request on its input, an answer on its output.

The process is started at the first decision and kept, so that it can remember. It gets an empty folder and an
environment without anything of ours in it. After any failure it is killed with all its children and started afresh
for the next decision. It runs with the rights of whoever started the season: a program one does not trust belongs
behind HTTP on another machine, or into the sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence

from tradeassay.core.arena import Choice, Packet
from tradeassay.core.errors import UserError
from tradeassay.core.secrets import remember_settings
from tradeassay.frontends.ama_wire import (
    MAX_ANSWER,
    MAX_REQUEST,
    Unusable,
    encode_request,
    failed_choice,
    read_answer,
)

KEPT = ("LANG", "LC_ALL", "TZ")
"""What of our environment a process may know, beside a search path and a home of its own."""
PATH = "/usr/local/bin:/usr/bin:/bin"
GRACE_S = 5.0
"""How long a killed process may take to be gone."""


class SubprocessAgent:
    """Runs a command and asks it. Every failure is a choice that holds and says what went wrong.

    ``env`` is added to the bare environment: what is given there is all the process gets to know. Kinds of
    failure: ``start`` (it cannot be run), ``exit`` (it ended), ``timeout``, ``too_large``, ``parse``, ``schema``.
    Raises :class:`UserError` for an empty command.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 180.0,
        max_answer: int = MAX_ANSWER,
        max_request: int = MAX_REQUEST,
    ) -> None:
        if not command or not command[0]:
            raise UserError("a subprocess agent needs a command", mend='e.g. command = "python agent.py"')
        self._command = tuple(command)
        self._env = dict(env or {})
        remember_settings(self._env)
        self._timeout_s = timeout_s
        self._max_answer, self._max_request = max_answer, max_request
        self._process: asyncio.subprocess.Process | None = None
        self._folder: str | None = None
        self._turn = asyncio.Lock()

    async def decide(self, packet: Packet) -> Choice:
        """Ask the process, one decision at a time; never raises for anything it does."""
        async with self._turn:
            try:
                line = encode_request(packet, limit=self._max_request) + b"\n"
                async with asyncio.timeout(self._timeout_s):
                    return read_answer(await self._exchange(line), limit=self._max_answer)
            except Unusable as error:
                await self._end()
                return failed_choice(error.kind, error.text)
            except TimeoutError:
                await self._end()
                return failed_choice("timeout", f"no answer within {self._timeout_s:g} s")
            except BaseException:  # cancelled from above: leave nothing running
                await self._end()
                raise

    async def close(self) -> None:
        """End the process and remove its folder."""
        async with self._turn:
            await self._end()

    async def _exchange(self, line: bytes) -> bytes:
        process = await self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line)
            await process.stdin.drain()
            answer = await process.stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            raise Unusable("too_large", f"the answer has more than {self._max_answer} bytes") from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            code = await process.wait()
            raise Unusable("exit", f"the process ended with status {code}") from error
        return answer

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        self._folder = tempfile.mkdtemp(prefix="tradeassay-agent-")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environment(self._folder),
                cwd=self._folder,
                limit=self._max_answer,
                start_new_session=True,  # a group of its own, so that its children die with it
            )
        except OSError as error:
            raise Unusable("start", f"'{self._command[0]}' cannot be run: {error.strerror}") from error
        return self._process

    def _environment(self, home: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {"PATH": PATH, "HOME": home, "TMPDIR": home, "PYTHONUNBUFFERED": "1", **kept, **self._env}

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(TimeoutError):  # one that fled its group may hold the pipe for ever
                await asyncio.wait_for(_drain(process), GRACE_S)
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Read what a killed process left, without which its end is not noticed, and wait for that."""
    if process.stdout is not None:
        while await process.stdout.read(1 << 16):
            pass
    await process.wait()
