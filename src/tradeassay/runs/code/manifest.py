"""``manifest.json`` of a run of programs: what was run, with what, and what must still hold to resume it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from tradeassay.core.errors import RunError, UserError
from tradeassay.core.hashing import canonical_json, sha256_of
from tradeassay.runs.code.protocol import CodeItem, CodeProtocol, code_protocols
from tradeassay.runs.versions import Versions, present_versions, version_changes

CODE_FORMAT: Final = 1


class CodeManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a run.

    ``facts`` holds everything that decides a result, by name: hashes of tasks, prompts and configuration,
    versions of the packages that programs run on. ``notes`` says what was left out.
    """

    format: int = CODE_FORMAT
    kind: Literal["code"] = "code"
    benchmark: str
    spec: dict[str, Any]
    work_sha256: str
    facts: dict[str, str]
    items: tuple[CodeItem, ...]
    notes: tuple[str, ...]
    versions: Versions


def build_code_manifest(benchmark: str, protocol: CodeProtocol, spec: msgspec.Struct) -> CodeManifest:
    """Describe a run as it would be started now; raises :class:`UserError` when there is nothing to do."""
    items = protocol.items()
    if not items:
        why = "; ".join(protocol.notes)
        raise UserError("nothing is left to run" + (f": {why}" if why else ""), mend="drop a filter")
    return CodeManifest(
        benchmark=benchmark,
        spec=msgspec.json.decode(canonical_json(spec)),
        work_sha256=sha256_of(spec),
        facts=protocol.facts(),
        items=items,
        notes=protocol.notes,
        versions=present_versions(),
    )


def refuse_code_changes(then: CodeManifest, now: CodeManifest, folder: Path) -> None:
    """Raise :class:`RunError` naming the first thing that is no longer what the run was started with."""
    if then.benchmark != now.benchmark or then.work_sha256 != now.work_sha256:
        raise RunError(
            f"{folder} holds another run: {_difference(then, now)}",
            mend="choose another slug, or delete that folder",
        )
    again = "bring it back as it was, or start a new run under another slug"
    for name in sorted({*then.facts, *now.facts}):
        if then.facts.get(name) != now.facts.get(name):
            raise RunError(f"{name} has changed since {folder} was started", mend=again)
    changes = version_changes(then.versions, now.versions)
    if changes:
        raise RunError(f"{folder} was made with other versions: {'; '.join(changes)}", mend=again)


def write_code_manifest(manifest: CodeManifest) -> bytes:
    """Return the content of ``manifest.json``."""
    return msgspec.json.format(canonical_json(manifest), indent=1) + b"\n"


def read_code_manifest(path: Path) -> CodeManifest:
    """Read ``manifest.json``; raises :class:`RunError` when it is missing, damaged, or of another kind of run."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"{path.parent} holds no run (no manifest.json)", mend="give the folder of a run") from None
    if not is_code_manifest(content):
        raise RunError(f"{path.parent} holds no run of programs", mend="tradeassay report shows other runs")
    try:
        return msgspec.json.decode(content, type=CodeManifest)
    except msgspec.DecodeError as error:
        raise RunError(f"{path} is damaged: {error}", mend="start the run again") from error


def is_code_run(folder: Path) -> bool:
    """Tell whether a folder holds a run of programs."""
    try:
        return is_code_manifest((folder / "manifest.json").read_bytes())
    except OSError:
        return False


def is_code_manifest(content: bytes) -> bool:
    """Tell whether a manifest is that of a run of programs."""
    try:
        return msgspec.json.decode(content, type=_Head).kind == "code"
    except msgspec.DecodeError:
        return False


def reopen(manifest: CodeManifest) -> tuple[CodeProtocol, msgspec.Struct]:
    """Open the benchmark of a recorded run with its spec; raises :class:`UserError` when it is not known here."""
    kind = code_protocols.get(manifest.benchmark)
    try:
        spec = msgspec.convert(manifest.spec, kind.Spec)
    except msgspec.ValidationError as error:
        raise RunError(f"the spec in the manifest cannot be read: {error}", mend="start the run again") from error
    return kind(spec), spec


class _Head(msgspec.Struct):
    kind: str = ""


def _difference(then: CodeManifest, now: CodeManifest) -> str:
    for name in dict.fromkeys(("benchmark", *then.spec, *now.spec)):
        if name == "benchmark" and then.benchmark != now.benchmark:
            return f"it runs {then.benchmark}"
        if then.spec.get(name) != now.spec.get(name):
            return f"its {name} differ"
    return "the specs differ"
