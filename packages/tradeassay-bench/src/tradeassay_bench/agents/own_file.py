"""Load an agent from a Python file of the user: ``-a ./trend.py:Mine``, without a package or
plugin.

The file's hash is one of the agent's parameters. Continuing or verifying a run with a changed file
is an error, because the changed file defines a different run.

The agent runs in an isolated process without access to the disk. It sees only the view of the
market. The package with the sandbox registers the function that starts this process
(:data:`agent_runners`).
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_file
from tradeassay.core.measure import OWN_PROGRAM
from tradeassay.core.our_code import is_ours
from tradeassay.core.registry import Registry
from tradeassay_bench.agents.registry import AgentConfig, agents, make_config
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.core.drive import fault_in_user_code
from tradeassay_bench.core.orders import Decision

CLOSED, OPEN = "closed", "open"
SPEAKS = ("reply", "answer")
"""Methods that make a class an agent. A class defines one of these methods, which is called for
each decision.
"""


class IsolatedAgent(Protocol):
    """An agent from a file, in a process without access to disk and network.

    ``speaks`` is the method in :data:`SPEAKS` that its class defines, or "" without such a method.
    """

    speaks: str

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None: ...
    def answer(self, request: AskDecision) -> Decision: ...
    def close(self) -> None: ...


class AgentRunner(Protocol):
    """Runs agents from files in processes without access to disk and network."""

    def refusal(self) -> str:
        """Return the reason why this machine cannot isolate an agent, or "" if it can."""
        ...

    def start(
        self, path: Path, name: str, settings: dict[str, Any] | None, files: Iterable[Path]
    ) -> IsolatedAgent:
        """Return an agent that runs a class of a file in a new process.

        ``files`` are the user's files that the class may import. Without ``settings`` the class is
        imported but not instantiated. Raises :class:`UserError` if the import fails.
        """
        ...


agent_runners: Registry[AgentRunner] = Registry("agent_runner")
"""The installed sandbox (entry point ``sandbox`` of ``tradeassay.agent_runners``)."""


def agent_runner() -> AgentRunner:
    """Return the runner of agents from files.

    Raises :class:`UserError` if no sandbox is installed.
    """
    if "sandbox" not in agent_runners:
        raise UserError(
            "an agent from a file runs in the sandbox, which is not installed",
            hint="install it, or use files=open (the verdict then states it)",
        )
    return agent_runners.get("sandbox")


NAME = "file"
WITH_FILES = (NAME, "python", "pipe")
"""Names of the agents whose code is in files of the user."""

Param = bool | int | float | str


def why_not_again(params: Mapping[str, Param]) -> str:
    """Return a sentence on why other people cannot repeat the decisions of a user's file.

    The sentence also states whether files were open to the agent, which only the person who ran the
    agent can know.
    """
    return f"{OWN_PROGRAM}; only its runner knows that files were {params.get('files', OPEN)} to it"


def is_own_file(text: str) -> bool:
    """Return whether a text names an agent in a file: ``path.py:Class``."""
    path, colon, _ = text.partition(".py:")
    return bool(path and colon)


def own_agent(text: str, params: Mapping[str, Param]) -> tuple[str, dict[str, Param]]:
    """Return the name and the parameters of the registered agent that runs ``path.py:Class``.

    A class with ``reply(request)`` is queried like a language model. A class with ``answer`` sees
    the observation, like every rule. It runs in isolation if this machine supports isolation,
    unless ``files=open`` is among the parameters. Raises :class:`UserError` for a file or class
    that is not an agent.
    """
    path, _, name = text.rpartition(":")
    own = dict(params)
    if "files" not in own:
        own["files"] = OPEN if agent_runner().refusal() else CLOSED
    files = str(own.pop("files"))
    if files == OPEN:
        cls = load_own(path, name)
        speaks = next((method for method in SPEAKS if callable(getattr(cls, method, None))), "")
    else:
        speaks = _speaks(Path(path).resolve(), path, name)
    if speaks == "reply":
        if params.get("files") == CLOSED:
            raise UserError(
                f"'{text}' cannot run with files=closed: reply(request) cannot be isolated",
                hint="drop files=closed (the verdict then states it), or define answer(request)",
            )
        return "python", {"class": f"{path}:{name}", **own}
    if not speaks:
        hint = "define reply(request), or begin(info, rng) and answer(request)"
        raise UserError(f"'{text}' is not an agent", hint=hint)
    config: dict[str, Param] = {
        "path": path,
        "name": name,
        "sha256": sha256_file(Path(path)),
        "files": files,
    }
    if own:
        config["settings"] = json.dumps(own, sort_keys=True)
    return "file", config


def _speaks(file: Path, label: str, name: str) -> str:
    """Return the method that a class defines, ``reply`` or ``answer``, or "" for neither.

    The file is not run outside isolation. There it could read data, store it, and use it later in
    isolation.
    """
    if not file.is_file():
        raise UserError(
            f"there is no file '{label}'", hint="give the path of a Python file: ./mine.py:Mine"
        )
    source = file.read_bytes()
    try:
        body = ast.parse(source, label).body
    except (SyntaxError, ValueError) as error:
        raise UserError(f"'{label}' is not Python: {error}", hint=f"try: python {label}") from error
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    if classes and name.encode() not in source and b"import *" not in source:
        raise UserError(
            f"'{label}' has no class '{name}'", hint=f"it has {', '.join(sorted(classes))}"
        )
    methods: set[str] = set()
    bases: list[ast.expr] = [ast.Name(name)]
    while bases:
        base = bases.pop()
        if not isinstance(base, ast.Name) or base.id not in classes:
            # A base class in another file: only an import in isolation can decide.
            agent = agent_runner().start(file, name, None, _imported(file, file.parent))
            agent.close()
            return agent.speaks
        node = classes.pop(base.id)
        bases += node.bases
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                methods.add(statement.name)
    return next((method for method in SPEAKS if method in methods), "")


def files_open(name: str, params: Mapping[str, Param]) -> bool:
    """Return whether an agent is user code that could read files, including the market data."""
    if name == NAME:
        return params.get("files") != CLOSED
    own = name not in agents or not is_ours(agents.get(name).__module__)
    return own or name in ("python", "pipe", "http")


def load_own(path: str, name: str) -> type[Any]:
    """Return a class from a Python file, which is imported.

    The module's name depends on the file's path and content. Raises :class:`UserError` if the file
    is missing, cannot be imported or lacks the class.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise UserError(
            f"there is no file '{path}'", hint="give the path of a Python file: ./mine.py:Mine"
        )
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
            raise UserError(
                f"'{path}' cannot be imported: {fault_in_user_code(error)}", hint=hint
            ) from error
    cls = getattr(module, name, None)
    if not isinstance(cls, type):
        classes = sorted(
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == label
        )
        raise UserError(
            f"'{path}' has no class '{name}'", hint=f"it has {', '.join(classes) or 'none'}"
        )
    return cls


def own_files(name: str, params: Mapping[str, Param]) -> dict[str, str]:
    """Return the hashes of the user's files that belong to an agent, by file name.

    These files are the file of a rule or class, the files named in a program's command, and the
    Python files that they import from their own folder. Call this function only for a run that is
    started here, because paths in a received run are never opened.
    """
    roots = named_files(name, params)
    if name == "python" and not roots:
        roots = [_module_file(str(params.get("class", "")).rpartition(":")[0])]
    elif name == "pipe":
        words = shlex.split(str(params.get("command", "")))
        roots += [_module_file(after) for word, after in itertools.pairwise(words) if word == "-m"]
    labels: dict[Path, str] = {}
    for root in filter(Path.is_file, roots):
        path = root.resolve()
        for file in _imported(path, path.parent):
            own = file == path
            labels[file] = root.name if own else file.relative_to(path.parent).as_posix()
    return {label: sha256_file(file) for file, label in labels.items()}


def named_files(name: str, params: Mapping[str, Param]) -> list[Path]:
    """Return the paths in an agent's parameters. The disk is not accessed."""
    if name == NAME:
        return [Path(str(params.get("path", "")))]
    if name == "python":
        module = str(params.get("class", "")).rpartition(":")[0]
        return [Path(module)] if module.endswith(".py") else []
    try:
        words = shlex.split(str(params.get("command", ""))) if name == "pipe" else []
    except ValueError:  # unbalanced quotes
        words = []
    return [Path(word) for word in words if word.count("/") or Path(word).suffix]


def _module_file(module: str) -> Path:
    """Return the file of a module.

    The current folder is searched first. A package's file is its ``__main__`` or ``__init__``.
    """
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
    """Return a Python file and all files below ``base`` that it imports, directly or indirectly."""
    files: set[Path] = set()
    pending = [file]
    while pending:
        path = pending.pop()
        if path in files:
            continue
        files.add(path)
        try:
            tree = ast.parse(path.read_bytes()) if path.suffix == ".py" else ast.Module([], [])
        except (SyntaxError, ValueError):  # running the file will report the error
            continue
        for node in ast.walk(tree):
            for name in filter(None, _imported_names(node)):
                for folder in (path.parent, base):
                    module = folder.joinpath(*name.split("."))
                    candidates = (module.with_suffix(".py"), module / "__init__.py")
                    pending += filter(Path.is_file, candidates)
    return files


def _imported_names(node: ast.AST) -> list[str]:
    """Return the dotted names that an import statement may load as modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    names = [alias.name for alias in node.names]
    if node.module:
        names = [f"{node.module}.{name}" for name in names]
    return [*names, node.module or ""]


class OwnFileConfig(AgentConfig, frozen=True, kw_only=True):
    """The file and class of the agent, and the file's hash at the start of the run."""

    path: Annotated[str, Meta(description="the Python file")] = ""
    name: Annotated[str, Meta(description="the class in the file")] = ""
    sha256: Annotated[
        str, Meta(description="the file's hash (empty: the hash of the current file)")
    ] = ""
    settings: Annotated[str, Meta(description="the parameters of the class, as JSON")] = ""
    files: Annotated[
        Literal["open", "closed"], Meta(description="whether the agent can read files")
    ] = "open"


def made_agent(cls: type[Any], name: str, settings: dict[str, Param]) -> Any:
    """Return an instance of an agent's class, with a ``Config`` if the class has one."""
    config = getattr(cls, "Config", None)
    if config is None and settings:
        raise UserError(
            f"'{name}' takes no parameters", hint="define a Config class, or drop the parameters"
        )
    return cls() if config is None else cls(make_config(name, config, settings))


@agents.register(NAME)
class OwnFile:
    """Runs a class from a user's file that sees the observation."""

    summary: ClassVar[str] = "a class from your own file: -a ./mine.py:Mine"
    Config: ClassVar[type[AgentConfig]] = OwnFileConfig
    plays_alone: ClassVar[bool] = False

    def __init__(self, config: OwnFileConfig) -> None:
        if not config.path or not config.name:
            raise UserError("agent 'file' needs a file and a class", hint="write ./mine.py:Mine")
        file = Path(config.path)
        # The hash is checked before any of the file's code runs.
        if config.sha256 and file.is_file() and sha256_file(file) != config.sha256:
            hint = "restore it, or start a new run"
            raise UserError(f"'{config.path}' has changed since the run began", hint=hint)
        self._config = config
        self._settings: dict[str, Param] = json.loads(config.settings) if config.settings else {}
        self._agent: Any = None
        if config.files == OPEN:
            self._agent = made_agent(
                load_own(config.path, config.name), config.name, self._settings
            )

    def prove(self) -> None:
        """Raise :class:`UserError` if the agent could not run.

        An isolated agent is started in a separate process for this check.
        """
        if self._agent is None:
            self._isolated().close()

    def _isolated(self) -> IsolatedAgent:
        file = Path(self._config.path).resolve()
        return agent_runner().start(
            file, self._config.name, self._settings, _imported(file, file.parent)
        )

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        if self._config.files == CLOSED:
            self._agent = self._isolated()
        if callable(getattr(self._agent, "begin", None)):
            self._agent.begin(info, rng)

    def answer(self, request: AskDecision) -> Decision:
        decided: Decision = self._agent.answer(request)
        return decided
