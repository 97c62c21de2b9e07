"""Seal a run or a plan in one file, with a hash that can be printed in a paper or registered.

The hash is the root of a Merkle tree (SHA-256) over the files, sorted by path. Leaves and inner
nodes are hashed with different first bytes, so that they cannot be confused. A published root
proves that the sealed files have not changed since the publication. It does not prove their author
or their truth. ``verify`` checks their truth.
"""

from __future__ import annotations

import errno
import hashlib
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import Manifest, RunManifest, read_manifest

SEAL = "seal.json"
MOST_FILES = 200_000
MOST_BYTES = 8 * 1024**3
"""The maximum size of an archive's content, in bytes. Larger archives are not unpacked."""
SMALL = 256 * 1024**2
"""The size of content, in bytes, up to which any ratio of compression is accepted."""
DENSEST = 200
"""The maximum ratio of compression of larger content. Only a zip bomb compresses better."""
_PATH = re.compile(
    r"[A-Za-z0-9_+=.,@-][A-Za-z0-9_+=.,@ -]*(/[A-Za-z0-9_+=.,@-][A-Za-z0-9_+=.,@ -]*)*"
)


class SealHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``seal.json``: the root, and the hash of every file by its path."""

    format: Literal[1] = 1
    kind: Literal["run", "plan"]
    root: str
    files: dict[str, str]


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about an intact seal: its kind, its root, and the number of sealed files."""

    kind: Literal["run", "plan"]
    root: str
    files: int


def merkle_root(files: Mapping[str, str]) -> str:
    """Return the Merkle root of files. ``files`` maps paths to the SHA-256 of their content."""
    if not files:
        raise RunError("the folder has no files to seal", hint="give the folder of a run")
    level = [
        hashlib.sha256(b"\x00" + canonical_json([path, digest])).digest()
        for path, digest in sorted(files.items())
    ]
    while len(level) > 1:
        pairs = [level[index : index + 2] for index in range(0, len(level), 2)]
        # The last node of an odd level moves up unchanged. It is never paired with itself.
        level = [
            hashlib.sha256(b"\x01" + b"".join(pair)).digest() if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    return level[0].hex()


def seal_run(folder: Path | str, file: Path | str) -> Sealed:
    """Write the seal of a finished run to ``file`` and return the facts about the seal.

    Raises :class:`RunError` for an unfinished run.
    """
    return write_seal(Path(file), "run", _content(Path(folder)))


def _content(path: Path) -> dict[str, bytes]:
    """Return the files of a finished run's record: their content by path.

    Raises :class:`RunError` for an unfinished run.
    """
    manifest = read_manifest(path / "manifest.json")
    place = RunFolder(path)
    if not place.scores.is_file() or not all(
        place.outcome(episode.key).is_file() for episode in manifest.episodes
    ):
        raise RunError(f"{path} has not ended", hint=f"tradeassay resume {path}, or seal its plan")
    content = {
        "manifest.json": place.manifest.read_bytes(),
        "scores.json": place.scores.read_bytes(),
    }
    for episode in manifest.episodes:
        key = episode.key
        recording = place.models / f"{key}.jsonl"
        for file in (place.events(key), place.outcome(key), place.dialogue(key), recording):
            if file.is_file():
                content[file.relative_to(path).as_posix()] = file.read_bytes()
    return content | _summaries(manifest)


def run_root(folder: Path) -> str:
    """Return the root of a finished run's seal, without writing the seal."""
    return merkle_root({path: sha256_bytes(body) for path, body in _content(folder).items()})


def _summaries(manifest: Manifest) -> dict[str, bytes]:
    """Return two files of a seal for human readers: the hashes of the data, and the versions."""
    data: dict[str, str] = {}
    if isinstance(manifest, RunManifest):
        data = {name: record.sha256 for name, record in manifest.datasets.items()}
    return {
        "data.json": canonical_json(data),
        "environment.json": canonical_json(manifest.versions),
    }


def write_seal(file: Path, kind: Literal["run", "plan"], content: dict[str, bytes]) -> Sealed:
    """Write files and the root of their hashes into an archive. Return the facts about the seal."""
    hashes = {path: sha256_bytes(body) for path, body in content.items()}
    for path in hashes:
        if not _PATH.fullmatch(path):
            raise RunError(f"'{path}' is not a valid name in a seal", hint="rename it")
    head = SealHead(kind=kind, root=merkle_root(hashes), files=hashes)
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "made.zip"
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, body in ((SEAL, canonical_json(head)), *sorted(content.items())):
                # With a constant time, the same files give the same archive.
                entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, body)
        try:
            write_atomic(file, made.read_bytes())
        except OSError as error:
            raise UserError(
                f"{file} cannot be written: {error.strerror}", hint="choose a different file"
            ) from error
    return Sealed(kind=kind, root=head.root, files=len(hashes))


@contextmanager
def open_seal(file: Path) -> Iterator[tuple[Path, Sealed]]:
    """Check a seal and unpack it for the duration of the block.

    Yields the folder with the sealed files, and the facts about the seal. Every file is hashed, and
    the root is checked, before any sealed file is read. Raises :class:`RunError` if the seal is
    broken.
    """
    if file.suffix.lower() == ".html":
        raise RunError(
            f"{file} is an HTML page, which cannot be verified",
            hint="verify the folder or the seal of its run",
        )
    with tempfile.TemporaryDirectory(prefix="tradeassay-seal-") as place:
        folder = Path(place) / "run"
        folder.mkdir()
        try:
            with zipfile.ZipFile(file) as archive:
                hashes = _unpack(archive, folder, file)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise RunError(
                    f"{file} is not a whole archive: {error}",
                    hint="request the file again from its author",
                ) from error
            raise RunError(
                f"{file} cannot be unpacked: the disk is full",
                hint="set TMPDIR to a different disk",
            ) from error
        except (
            zipfile.BadZipFile,
            EOFError,
            RuntimeError,
            ValueError,
            zlib.error,
            struct.error,
        ) as error:
            raise RunError(
                f"{file} is not a whole archive: {error}",
                hint="request the file again from its author",
            ) from error
        try:
            head = msgspec.json.decode((folder / SEAL).read_bytes(), type=SealHead)
        except (FileNotFoundError, *UNDECODABLE) as error:
            raise RunError(
                f"{file} is not a seal: {error}", hint="make one with: tradeassay seal RUN"
            ) from error
        hashes.pop(SEAL)
        if hashes != head.files or merkle_root(hashes) != head.root:
            wrong = sorted(
                path for path in {*hashes, *head.files} if hashes.get(path) != head.files.get(path)
            )
            what = (
                f"{wrong[0]} differs from the sealed file"
                if wrong
                else "its root does not match its files"
            )
            raise RunError(
                f"{file}: the seal is broken: {what}", hint="request the file again from its author"
            )
        if head.kind == "run":
            for name, body in _summaries(read_manifest(folder / "manifest.json")).items():
                if hashes.get(name) != sha256_bytes(body):
                    raise RunError(
                        f"{file}: {name} does not match the manifest",
                        hint="do not trust the seal",
                    )
                (folder / name).unlink()
        (folder / SEAL).unlink()
        yield folder, Sealed(kind=head.kind, root=head.root, files=len(hashes))


def seal_beside(folder: Path, root: str) -> Path | None:
    """Return the path of the seal next to a run's folder, or None if there is no seal.

    Raises :class:`RunError` if the seal does not have the kind "run" and the given ``root``.
    """
    file = folder.with_name(f"{folder.name}.seal")
    if not file.is_file():
        return None
    with open_seal(file) as (_, sealed):
        if (sealed.kind, sealed.root) != ("run", root):
            what = f"{file.name} seals files that differ from {folder.name}"
            raise RunError(
                what, hint="one of them was edited: restore the sealed run, or remove the seal"
            )
    return file


def _unpack(archive: zipfile.ZipFile, folder: Path, file: Path) -> dict[str, str]:
    """Unpack an archive into a folder, and return the hashes of its files by path."""
    entries = archive.infolist()
    packed = sum(entry.compress_size for entry in entries)
    size = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_FILES or size > MOST_BYTES or (size > SMALL and size > DENSEST * packed):
        raise RunError(
            f"{file} is too large to be unpacked", hint="verify the run's folder instead"
        )
    hashes: dict[str, str] = {}
    for entry in entries:
        name = entry.filename
        if not _PATH.fullmatch(name) or ".." in name or name in hashes:
            raise RunError(
                f"{file} contains '{name[:80]!a}', which does not belong in a seal",
                hint="do not unpack it",
            )
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, left = hashlib.sha256(), entry.file_size
        with archive.open(entry) as source, target.open("xb") as sink:
            while chunk := source.read(1 << 20):
                left -= len(chunk)
                if left < 0:
                    raise RunError(
                        f"{file}: '{name}' is larger than its header states",
                        hint="do not unpack it",
                    )
                digest.update(chunk)
                sink.write(chunk)
        hashes[name] = digest.hexdigest()
    return hashes
