"""What a verification said, bound to the bytes that it was made of: the root over scores and all evidence.

No verdict is kept. A run may have been sent by anybody, a kept verdict may have been planted, and what contradicts
a run may lie outside it (its data, an agent's file, this version). So a run is verified each time it is shown."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core import __version__
from tradeassay.core.errors import RunError
from tradeassay.core.files import data_home
from tradeassay.core.hashing import sha256_bytes
from tradeassay.runs.play.progress import CountListener
from tradeassay.runs.verify.report import VerifyReport, verify
from tradeassay.runs.verify.seal import open_seal, run_root

VerdictWord = Literal["verified", "named", "unverified", "contradicted"]
_MADE_AGAIN = frozenset(("data", "rules", "account", "programs", "conversation", "scores"))
"""Claims that a number stands on: where one of them is not made again, the number is not shown."""


class Attestation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a run. ``verified``: everything was made again. ``named``: every number was, and ``why``
    names what nobody can make again, such as a live model's replies. ``unverified``: a number was not made again.
    ``root`` is over scores and evidence, ``version`` that of the verifier."""

    root: str
    word: VerdictWord
    why: tuple[str, ...] = ()
    version: str = __version__


def attest(
    folder: Path, *, home: Path | None = None, workers: int | None = None, progress: CountListener | None = None
) -> Attestation:
    """Verify a finished run and return the verdict, for exactly its bytes.

    Raises :class:`RunError` for a run that has not ended, cannot be read, or was changed meanwhile."""
    root = run_root(folder)
    found = verify(folder, home=home, workers=workers, progress=progress)
    if run_root(folder) != root:
        raise RunError(f"{folder} was changed while it was verified", hint="verify it again")
    return attestation(found, root)


def attestation(found: VerifyReport, root: str) -> Attestation:
    """Return a verification in a word, with what stands against it."""
    if found.contradicted:
        return Attestation(root=root, word="contradicted", why=tuple(map(str, found.violations[:3])))
    if found.ok:
        return Attestation(root=root, word="verified")
    missing = any(one.claim in _MADE_AGAIN for one in found.claims if one.outcome != "re-derived")
    return Attestation(root=root, word="unverified" if missing else "named", why=found.unchecked)


def seal_beside(folder: Path, root: str) -> Path | None:
    """Return the seal that lies beside a run; raises :class:`RunError` for one that is not of exactly this run."""
    file = folder.with_name(f"{folder.name}.seal")
    if not file.is_file():
        return None
    with open_seal(file) as (_, sealed):
        if (sealed.kind, sealed.root) != ("run", root):
            what = f"{file.name} seals other files than those of {folder.name}"
            raise RunError(what, hint="one of them was edited: restore the sealed run, or take the seal away")
    return file


def vouch(content: bytes) -> None:
    """Keep that a file of these bytes was made here, from a run that lay here."""
    path = data_home() / "verified" / f"{sha256_bytes(content)}.made"
    with suppress(OSError):  # where nothing can be kept, it will be taken for somebody else's
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def vouched(content: bytes) -> bool:
    """Return whether a file of exactly these bytes was made here."""
    return (data_home() / "verified" / f"{sha256_bytes(content)}.made").is_file()
