"""An agent in a file of one's own: ``-a ./trend.py:Mine``, without a package, a plugin or an import path.

The file's hash is one of the agent's parameters. A run that is continued or verified with another file of that
name would not be the same run, so it is refused.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig, agents, make_config
from tradeassay.agents.walled import CLOSED, OPEN, WalledAgent, serve, walls_missing
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.drive import own_fault
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_file
from tradeassay.core.orders import Decision

NAME = "file"

Param = bool | int | float | str


def is_own_file(text: str) -> bool:
    """Return whether an agent is named by a file: ``path.py:Class``."""
    path, colon, _ = text.partition(".py:")
    return bool(path and colon)


def own_agent(text: str, params: Mapping[str, Param]) -> tuple[str, dict[str, Param]]:
    """Return the registered agent that plays ``path.py:Class``, and its parameters; raises :class:`UserError`.

    A class with ``reply(request)`` has the conversation of a language model; one with ``answer`` sees the
    observation, as every rule does, behind walls (:mod:`tradeassay.agents.walled`) where this machine has them
    unless ``files=open`` is among the parameters.
    """
    path, _, name = text.rpartition(":")
    cls = load_own(path, name)
    if callable(getattr(cls, "reply", None)):
        return "python", {"class": f"{path}:{name}", **params}
    if not callable(getattr(cls, "answer", None)):
        raise UserError(
            f"'{text}' is not an agent", hint="give it reply(request), or begin(info, rng) and answer(request)"
        )
    own = dict(params)
    files = str(own.pop("files", OPEN if walls_missing() else CLOSED))
    settings = json.dumps(own, sort_keys=True) if own else ""
    found: dict[str, Param] = {"path": path, "name": name, "sha256": sha256_file(Path(path)), "files": files}
    return "file", {**found, **({"settings": settings} if settings else {})}


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
        raise UserError(f"there is no file '{path}'", hint="write the path of a Python file: -a ./mine.py:Mine")
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
            raise UserError(
                f"'{path}' cannot be imported: {own_fault(error)}", hint=f"try: python {path}"
            ) from error
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
    roots: list[Path] = []
    if name == NAME:
        roots = [Path(str(params.get("path", "")))]
    elif name == "python":
        module = str(params.get("class", "")).rpartition(":")[0]
        roots = [Path(module)] if module.endswith(".py") else [_module_file(module)]
    elif name == "pipe":
        words = shlex.split(str(params.get("command", "")))
        roots = [Path(word) for word in words if word.count("/") or Path(word).suffix]
        roots += [_module_file(after) for word, after in itertools.pairwise(words) if word == "-m"]
    found: dict[Path, str] = {}
    for root in roots:
        if root.is_file():
            base = root.resolve().parent
            for file in _imported(root.resolve(), base):
                found[file] = file.relative_to(base).as_posix()
    return {label: sha256_file(file) for file, label in found.items()}


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
    """Return an agent of a class, with its own parameters."""
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
            raise UserError("agent 'file' needs a file and a class", hint="write -a ./mine.py:Mine")
        file = Path(config.path)
        if config.sha256 and file.is_file() and sha256_file(file) != config.sha256:  # before any of it is run
            raise UserError(
                f"'{config.path}' is not the file this run began with", hint="restore it, or start a new run"
            )
        self._config = config
        self._agent: Any = None
        if config.files == OPEN:
            self._agent = made_agent(load_own(config.path, config.name), config.name, self._settings())

    def _settings(self) -> dict[str, Param]:
        found: dict[str, Param] = json.loads(self._config.settings) if self._config.settings else {}
        return found

    def prove(self) -> None:
        """Raise :class:`UserError` where it could not play; behind walls this takes a process of its own."""
        if self._agent is None:
            self._walled().close()

    def _walled(self) -> WalledAgent:
        file = Path(self._config.path).resolve()
        return WalledAgent(file, self._config.name, self._settings(), _imported(file, file.parent))

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Begin an episode."""
        if self._config.files == CLOSED:
            self._agent = self._walled()
        if callable(getattr(self._agent, "begin", None)):
            self._agent.begin(info, rng)

    def answer(self, request: AskDecision) -> Decision:
        """Return what the class decides."""
        decided: Decision = self._agent.answer(request)
        return decided


def main() -> None:
    """Be the process behind the walls in which a class of a file plays."""
    serve(lambda path, name, settings: made_agent(load_own(path, name), name, settings))
