"""Derive random draws from the secret of a run.

Each run has a *secret*, a hexadecimal text that is drawn at its start and stored in its manifest.
It determines the aliases of a mask and the seeds of the markets that judge programs. Training on an
old run, or reading this package, therefore does not reveal the draws of the next run. Verification
derives the draws again from the recorded secret. The secret protects no data once the run is
published, and it is never used as a key.
"""

from __future__ import annotations

import re
import secrets

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of

_SECRET = re.compile(r"[0-9a-f]{16,128}")
_BYTES = 16


def draw_secret() -> str:
    """Return a new random secret."""
    return secrets.token_hex(_BYTES)


def seed_from(secret: str, *names: str | int) -> int:
    """Return the seed for ``names`` under a secret: the SHA-256 of the secret and all names.

    The parts are delimited: ``("ab", "c")`` and ``("a", "bc")`` have different seeds.
    """
    return int(sha256_of([secret, *names]), 16)


def refuse_bad_secret(secret: str) -> None:
    """Raise :class:`UserError` for a text that is not a secret."""
    if not (isinstance(secret, str) and _SECRET.fullmatch(secret)):
        hint = "copy it from the manifest of the run to be repeated, or omit it to draw a new one"
        raise UserError(
            f"the secret '{secret!s:.40}' is not 16 to 128 lower-case hexadecimal digits", hint=hint
        )
