"""The named offline embedding ``hashed-words-256-v1``: words and word pairs hashed into 256 signed counts.

Nothing to download, the same numbers on every machine. It finds texts that share words, not texts that share a
meaning: enough to retrieve what was noted about the same product, person or figure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

NAME = "hashed-words-256-v1"
SIZE = 256
_WORD = re.compile(r"[^\W_]+", re.UNICODE)


@lru_cache(maxsize=8192)
def embed(text: str) -> NDArray[np.float64]:
    """Return a vector of length one (of zeros for a text without words), read-only."""
    words = [word.lower() for word in _WORD.findall(text)]
    vector = np.zeros(SIZE)
    for piece in (*words, *map(" ".join, pairwise(words))):
        place, sign = _place(piece)
        vector[place] += sign
    length = float(np.linalg.norm(vector))
    vector = vector / length if length > 0 else vector
    vector.flags.writeable = False
    return vector


@lru_cache(maxsize=65536)
def _place(piece: str) -> tuple[int, float]:
    digest = blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    return digest[0], 1.0 if digest[1] & 1 else -1.0
