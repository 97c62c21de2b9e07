"""Tokens: 256 random bits that are shown once. Only a salted hash is kept.

A slow hash protects words that people choose. These secrets cannot be guessed, so a fast one is as safe and lets
nobody keep the server busy by sending wrong tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

import msgspec

_FORM = re.compile(r"ta-([0-9a-f]{12})-([A-Za-z0-9_-]{43})")
_PERSON = b"tradeassay-door"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A new token: ``shown`` goes to its owner and nowhere else, the rest into the database."""

    id: str
    shown: str
    salt: bytes
    digest: bytes


def new_token() -> Token:
    """Draw a token."""
    id, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(16)
    return Token(id=id, shown=f"ta-{id}-{secret}", salt=salt, digest=digest(secret, salt))


def digest(secret: str, salt: bytes) -> bytes:
    """Return the salted hash of a secret."""
    return hashlib.blake2b(secret.encode(), salt=salt, person=_PERSON).digest()


def split(token: str) -> tuple[str, str] | None:
    """Return a token's id and secret, or None when it has not the form of one."""
    found = _FORM.fullmatch(token)
    return None if found is None else (found[1], found[2])


def matches(secret: str, salt: bytes, expected: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(digest(secret, salt), expected)
