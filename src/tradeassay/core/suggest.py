"""Names as people give them: without a version, or nearly right."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable


def newest(name: str, known: Collection[str]) -> str:
    """Return the newest of the versions ``name-v1``, ``name-v2`` ... among ``known``, or ``name`` as it is."""
    if name in known:
        return name
    versions = {int(found[1]): one for one in known if (found := re.fullmatch(rf"{re.escape(name)}-v(\d+)", one))}
    return versions[max(versions)] if versions else name


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return ``did you mean a or b?`` for names like ``name`` among ``known``, else ``otherwise``."""
    import difflib

    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
