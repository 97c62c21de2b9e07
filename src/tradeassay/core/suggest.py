"""Near names: what the user may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return ``did you mean a or b?`` for names like ``name`` among ``known``, else ``otherwise``."""
    import difflib

    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
