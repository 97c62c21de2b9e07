"""Exchange bytes with a foreign agent.

Every failure is an :class:`Unusable`, and failures are counted by kind.

A host name is resolved once, its addresses are checked, and the connection uses a checked address.
Without this check a host name could give an agent access to the arena's own network, because a name
may resolve to an internal address, or to a different address a second after the check.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import ipaddress
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack
from urllib.parse import urlsplit

import msgspec

from tradeassay.core.errors import UserError, require
from tradeassay.core.secrets import clean_foreign, remember, remember_settings
from tradeassay_bench.agents.own_file import load_own
from tradeassay_bench.core.drive import at_line, fault_in_user_code, fault_of

if TYPE_CHECKING:
    import ssl

    import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""A function that resolves a host and a port to addresses as text."""

EVERYWHERE: tuple[Network, ...] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
"""All networks. A user's own agents may run in any network, because they usually run on this
machine.
"""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_INWARD = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10", "168.63.129.16/32")))
"""Addresses that some versions of Python wrongly report as global: protocol assignments, site-local
addresses, and the metadata address of cloud providers.
"""


class Unusable(Exception):
    """A request or an answer that cannot be used.

    ``kind`` is the category for the counts of failures.
    """

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text
        super().__init__(f"{kind}: {text}")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an agent's address. ``path`` starts with a slash and may have a query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return the Host header as written by the agent's owner, without a standard port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == standard else f"{host}:{self.port}"

    def at(self, address: str) -> str:
        """Return the URL with the host replaced by a checked address."""
        shown = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{shown}:{self.port}{self.path}"


def parse_target(url: str, path: str = "") -> Target:
    """Return the parts of an agent's address, with ``path`` appended.

    Raises :class:`UserError` for an address that is not plain http or https.
    """
    hint = "write https://host or https://host:port"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"'{url}' is not a valid address: {error}", hint=hint) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"'{url}' is not a web address", hint=hint)
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise UserError(
            "an agent's address may not contain a user, a password or a fragment",
            hint="leave them out",
        )
    if any(c <= " " or c == "\x7f" for c in url):
        raise UserError(
            "an agent's address may not contain blanks or control characters", hint="leave them out"
        )
    full_path = (parts.path.rstrip("/") + path if path else parts.path) or "/"
    return Target(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        path=f"{full_path}?{parts.query}" if parts.query else full_path,
    )


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return IP networks from their texts. Raises :class:`UserError` for an invalid network."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise UserError(
            f"invalid network: {error}", hint="write e.g. 127.0.0.0/8 or ::1/128"
        ) from error


def inward(address: Address) -> bool:
    """Return whether an address, or an address embedded in it, is not on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        teredo = None if address.teredo is None else address.teredo[1]
        nat64 = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        wrapped = address.ipv4_mapped or address.sixtofour or teredo or nat64
        if wrapped is not None:
            return inward(wrapped)
    return (
        any(address in network for network in _INWARD)
        or not address.is_global
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_link_local
    )


async def checked_address(target: Target, allow: Sequence[Network], resolve: Resolve) -> str:
    """Resolve a target and return the address to connect to.

    Raises :class:`Unusable`: ``unreachable`` if the name has no address, ``forbidden`` if any of
    its addresses is internal and in none of the allowed networks.
    """
    try:
        addresses = await resolve(target.host, target.port)
    except OSError as error:
        raise Unusable("unreachable", f"'{target.host}' has no address: {error}") from error
    if not addresses:
        raise Unusable("unreachable", f"'{target.host}' has no address")
    for text in addresses:
        try:
            address = ipaddress.ip_address(text)
        except ValueError as error:  # for example a scoped link-local address
            raise Unusable("forbidden", f"'{target.host}' leads to {text}") from error
        if inward(address) and not any(address in network for network in allow):
            raise Unusable(
                "forbidden", f"'{target.host}' leads to {address}, which is not a public address"
            )
    return addresses[0]


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, resolved by the operating system."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


TIMEOUT_S = 180.0
"""Default time limit for an answer, in seconds."""
MAX_ANSWER = 64 * 1024
"""Default maximum size of an answer, in bytes."""
KEPT = ("LANG", "LC_ALL", "TZ")
"""Environment variables that a process inherits in addition to the search path."""
_PATH = "/usr/local/bin:/usr/bin:/bin"
_LAST_WORDS = 4096
"""Number of bytes stored from the end of a process's error output."""
_PLACE = re.compile(r'File "([^"<]+)", line (\d+)')
BEFORE_RETRY_S = 0.2
"""Seconds to wait after a dropped connection before the request is sent once more."""
_SHOWN = 200
"""Maximum number of characters of an agent's answer quoted in a message."""
GRACE_S = 5.0
"""Seconds that a killed process may take to exit."""


class Transport(Protocol):
    """The connection to one agent."""

    async def exchange(self, body: bytes) -> bytes:
        """Send a request and return the answer. Raises :class:`Unusable` for any failure."""
        ...

    async def reset(self) -> None:
        """Restart the connection after an answer that could not be used."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class PipeOptions(TypedDict, total=False):
    """Options of a :class:`PipeTransport`."""

    env: Mapping[str, str] | None
    timeout_s: float
    max_answer: int


class HttpOptions(TypedDict, total=False):
    """Options of an :class:`HttpTransport`."""

    timeout_s: float
    allow: Sequence[Network]
    max_answer: int
    token: str | None
    resolve: Resolve
    through: httpx.AsyncBaseTransport | None


class HttpTransport:
    """Post requests to a web server. Needs ``httpx``.

    ``allow`` lists private networks in which an agent may run. ``token`` is sent with every
    request. Kinds of failure: ``forbidden`` (an internal address), ``unreachable``, ``timeout``,
    ``redirect``, ``status``, ``too_large``, ``parse``. The constructor raises
    :class:`~tradeassay.core.errors.UserError` for an invalid address.
    """

    def __init__(self, url: str, path: str = "", **options: Unpack[HttpOptions]) -> None:
        require("httpx", "arena")
        self._token = options.get("token")
        remember(self._token)
        self._target = parse_target(url, path)
        self._timeout_s = options.get("timeout_s", TIMEOUT_S)
        self._allow = tuple(options.get("allow", ()))
        self.max_answer = options.get("max_answer", MAX_ANSWER)
        self._resolve = options.get("resolve", resolve_by_system)
        self._through = options.get("through")

    async def exchange(self, body: bytes) -> bytes:
        """Post a request and return the answer. A dropped connection is retried once."""
        import httpx

        try:
            async with asyncio.timeout(self._timeout_s):  # httpx limits only single steps
                try:
                    return await self._post(body)
                except (httpx.NetworkError, httpx.ProtocolError, OSError):
                    # A dropped connection is no evidence about the agent. A request contains its
                    # question's id, so an agent with a memory recognises a repeated question.
                    await asyncio.sleep(BEFORE_RETRY_S)
                    return await self._post(body)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Unusable("timeout", f"no answer within {self._timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            detail = f"{fault_of(error)}{''.join(getattr(error, '__notes__', ()))}"
            if isinstance(error, httpx.RemoteProtocolError):
                detail += " (a server whose code raises does that: see what it printed)"
            raise Unusable("unreachable", detail) from error

    async def reset(self) -> None: ...

    async def close(self) -> None: ...

    async def _post(self, body: bytes) -> bytes:
        import httpx

        target = self._target
        address = await checked_address(target, self._allow, self._resolve)
        headers = {
            "Host": target.authority,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a small compressed answer could expand to a large one
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        # The connection uses the checked address. The certificate must still be the host's.
        extensions = {"sni_hostname": target.host}
        # A proxy from the environment would resolve the host again, and a redirect could point to
        # another host. Both are disabled.
        async with httpx.AsyncClient(
            transport=self._through,
            verify=_authorities() if target.scheme == "https" else False,
            follow_redirects=False,
            trust_env=False,
            timeout=self._timeout_s,
        ) as client:
            async with client.stream(
                "POST", target.at(address), content=body, headers=headers, extensions=extensions
            ) as response:
                if response.is_redirect or 300 <= response.status_code < 400:
                    detail = (
                        f"the agent answered {response.status_code}; redirects are not followed"
                    )
                    raise Unusable("redirect", detail)
                if response.headers.get("content-encoding", "identity").lower() not in (
                    "",
                    "identity",
                ):
                    raise Unusable("parse", "the answer is compressed, which was not asked for")
                answer = bytearray()
                try:
                    async for piece in response.aiter_bytes():
                        answer += piece
                        if len(answer) > self.max_answer:
                            raise Unusable(
                                "too_large", f"the answer has more than {self.max_answer} bytes"
                            )
                except httpx.HTTPError as error:
                    error.add_note(
                        f" after it answered {response.status_code}{quoted(bytes(answer))}"
                    )
                    raise
                if response.status_code != 200:
                    raise Unusable(
                        "status",
                        f"the agent answered {response.status_code}{quoted(bytes(answer))}",
                    )
                return bytes(answer)


def quoted(answer: bytes) -> str:
    """Return the beginning of an agent's answer, for the end of an error message."""
    text = " ".join(clean_foreign(answer[: 4 * _SHOWN].decode(errors="replace")).split())
    return f": {text[:_SHOWN]}" if text else " and nothing else"


@cache
def _authorities() -> ssl.SSLContext:
    """Return the certificate authorities. They are cached, because loading takes 0.1 s."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


def check_id(answered: str | None, asked: str, *, must_name: bool) -> None:
    """Raise :class:`Unusable` if an answer belongs to a different question.

    With ``must_name`` an answer without an id is an error too.
    """
    if answered is None and must_name:
        raise Unusable(
            "schema", 'the answer does not name its question: repeat the request\'s "id" in it'
        )
    if answered is not None and answered != asked:
        raise Unusable("stray", f"this answers question {answered[:80]}, but {asked} was asked")


class PipeTransport:
    """Runs a command that exchanges JSON lines: requests on its input, answers on its output.

    The process starts at the first request and keeps running, so it can have a memory. It gets an
    empty folder and an environment with only the search path, a new home folder, and ``env``. The
    folder of this Python comes first on the search path. File names in the command are relative to
    the current folder. After a failure the process and all its children are killed, and the next
    request starts a new process. It runs with the rights of the user. Run an untrusted program
    behind HTTP on another machine, or in the sandbox.

    Kinds of failure: ``start`` (the command cannot run), ``exit`` (the process ended), ``timeout``,
    ``too_large``. Raises :class:`UserError` for an empty command.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        if not command or not command[0]:
            raise UserError(
                "an agent on a pipe needs a command", hint='e.g. command = "python agent.py"'
            )
        self._command = tuple(command)
        self._said = b""
        self._hearing: asyncio.Task[None] | None = None
        self._env = dict(env or {})
        remember_settings(self._env)
        self._timeout_s = timeout_s
        self.max_answer = max_answer
        self._process: asyncio.subprocess.Process | None = None
        self._folder: str | None = None
        self._turn = asyncio.Lock()

    async def exchange(self, body: bytes) -> bytes:
        """Send one line and return the line of the answer. Exchanges run one at a time."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._exchange(body + b"\n")
            except TimeoutError as error:
                await self._end()
                raise Unusable("timeout", f"no answer within {self._timeout_s:g} s") from error
            except BaseException:  # after a failure or a cancelled task, leave no process running
                await self._end()
                raise

    async def reset(self) -> None:
        """End the process. The next request starts a new one."""
        await self.close()

    async def close(self) -> None:
        async with self._turn:
            await self._end()

    async def _exchange(self, line: bytes) -> bytes:
        process = await self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line)
            await process.stdin.drain()
            return await process.stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            raise Unusable(
                "too_large", f"the answer has more than {self.max_answer} bytes"
            ) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            code = await process.wait()
            if self._hearing is not None:  # a child of the process may keep the other end open
                await asyncio.wait([self._hearing], timeout=GRACE_S)
            # Report the last line of error output, and the last line of code in a traceback.
            lines = [
                line.strip()
                for line in self._said.decode(errors="replace").splitlines()
                if line.strip()
            ]
            places = [match for line in lines if (match := _PLACE.match(line)) is not None]
            place = at_line(*places[-1].groups()) if places else ""
            detail = f": {clean_foreign(lines[-1])[:300]}{place}" if lines else ""
            raise Unusable("exit", f"the process ended with status {code}{detail}") from error

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        self._folder = tempfile.mkdtemp(prefix="tradeassay-agent-")
        inherited = {name: os.environ[name] for name in KEPT if name in os.environ}
        home = {"HOME": self._folder, "TMPDIR": self._folder}
        program = self.program()
        files = [
            os.path.abspath(word) if os.path.isfile(word) else word for word in self._command[1:]
        ]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(program or self._command[0], *files),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={
                    "PATH": _search_path(),
                    **home,
                    "PYTHONUNBUFFERED": "1",
                    **inherited,
                    **self._env,
                },
                cwd=self._folder,
                limit=self.max_answer,
                start_new_session=True,  # a new process group, so that the children are killed with
                # the process
            )
        except OSError as error:
            raise Unusable(
                "start", f"'{self._command[0]}' cannot be run: {error.strerror}"
            ) from error
        self._said, self._hearing = b"", asyncio.create_task(self._hear(self._process))
        return self._process

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        """Store the last bytes of a process's error output."""
        assert process.stderr is not None
        while piece := await process.stderr.read(1 << 16):
            self._said = (self._said + piece)[-_LAST_WORDS:]

    def program(self) -> str | None:
        """Return the path of the command's program, or None if it is not found."""
        path = shutil.which(self._command[0], path=_search_path())
        return None if path is None else os.path.abspath(path)

    async def _end(self) -> None:
        process, self._process = self._process, None

        async def drained(process: asyncio.subprocess.Process) -> None:
            # Read the rest of the pipe. Otherwise the end of a killed process would not be noticed.
            while process.stdout is not None and await process.stdout.read(1 << 16):
                pass
            await process.wait()

        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(
                TimeoutError
            ):  # a child outside the group may keep the pipe open forever
                await asyncio.wait_for(drained(process), GRACE_S)
            if self._hearing is not None:
                self._hearing.cancel()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _search_path() -> str:
    """Return the search path for programs: the folder of this Python, then the shell's path."""
    return os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH") or _PATH))


class PythonCaller:
    """Calls a function of a user's object, plain or ``async``.

    A plain function runs in a thread, and a thread cannot be stopped from outside. If an earlier
    call that timed out is still running, the next call waits for it within its own time limit. One
    late answer therefore does not cost the following days. Kinds of failure: ``agent`` (an
    exception), ``timeout``.
    """

    def __init__(self, function: Callable[[Any], Any], *, timeout_s: float) -> None:
        self._function = function
        self._timeout_s = timeout_s
        self._hanging: asyncio.Future[Any] | None = None

    async def call(self, argument: object) -> Any:
        """Return the function's result. Raises :class:`Unusable` for an exception or a time-out."""
        started = False
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._hanging is not None and not self._hanging.done():
                    await asyncio.wait([self._hanging])
                started = True
                if inspect.iscoroutinefunction(self._function):
                    return await self._function(argument)
                self._hanging = asyncio.ensure_future(asyncio.to_thread(self._function, argument))
                result = await asyncio.shield(self._hanging)
                return await result if inspect.isawaitable(result) else result
        except TimeoutError as error:
            reason = (
                f"no answer within {self._timeout_s:g} s"
                if started
                else "an earlier call still hangs"
            )
            raise Unusable("timeout", reason) from error
        except Exception as error:
            raise Unusable("agent", str(fault_in_user_code(error))) from error


def load_class(name: str, method: str) -> Any:
    """Return an instance of ``package.module:Class`` or ``path.py:Class``, which is imported.

    Modules in the current folder are found too. Raises :class:`UserError` if the import or the call
    fails, or if the class lacks the method.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UserError(f"'{name}' does not name a class", hint="write package.module:Class")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        if module.endswith(".py"):
            agent = load_own(module, attribute)()
        else:
            agent = getattr(importlib.import_module(module), attribute)()
    except UserError:
        raise
    except Exception as error:
        hint = "its constructor is called without arguments"
        raise UserError(
            f"'{name}' cannot be created: {fault_in_user_code(error)}", hint=hint
        ) from error
    require_method(agent, method, name)
    return agent


def require_method(agent: object, method: str, name: str | None = None) -> None:
    """Raise :class:`UserError` if an object lacks a required method."""
    if not callable(getattr(agent, method.partition("(")[0], None)):
        label = type(agent).__name__ if name is None else f"'{name}'"
        raise UserError(f"{label} has no {method}", hint="define that method")
