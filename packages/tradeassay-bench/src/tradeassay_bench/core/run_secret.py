"""The secret of a run, and the draws that are made of it.

A run has a *secret*: a hexadecimal text drawn when it is started and kept in its manifest. The aliases of a mask
and the seeds of the markets on which programs are judged are derived from it. Whoever trains on an old run, or
reads this package, cannot foresee those of the next; whoever verifies a run derives the recorded ones. It hides
nothing once the run is published, and is never a key to anything.
"""

from __future__ import annotations

import re
import secrets

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of

_SECRET = re.compile(r"[0-9a-f]{16,128}")
_BYTES = 16


def draw_secret() -> str:
    return secrets.token_hex(_BYTES)


def seed_from(secret: str, *names: str | int) -> int:
    """Return the seed that belongs to ``names`` under a secret: the SHA-256 of all of them as an integer. Parts
    cannot run into each other: ``("ab", "c")`` and ``("a", "bc")`` give different seeds."""
    return int(sha256_of([secret, *names]), 16)


def refuse_bad_secret(secret: str) -> None:
    """Raise :class:`UserError` for a text that is not a secret."""
    if not (isinstance(secret, str) and _SECRET.fullmatch(secret)):
        hint = "take it from the manifest of the run to be repeated, or leave it out: one is drawn"
        raise UserError(
            f"the secret '{secret!s:.40}' is not 16 to 128 lower-case hexadecimal digits", hint=hint
        )
