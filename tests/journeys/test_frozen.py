"""What the product says in numbers stays while its code is moved: see ``frozen``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import frozen  # beside this file, which is no package


@pytest.mark.journey
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", frozen.SETS)
def test_what_is_said_stays(name):
    found = list(
        frozen.differences(
            frozen.played(name), frozen.expected(name), frozen.Renames(allowed=False)
        )
    )
    assert not found, "\n".join(found[:20])


def test_a_moved_number_is_found_and_a_renamed_word_is_told_apart():
    then = {"kind": "luck", "alpha": 0.1, "parts": [1.0, 2.0], "again": "luck"}
    renamed = {"kind": "chance", "alpha": 0.1 * (1 + 1e-12), "parts": [1.0, 2.0], "again": "chance"}

    def differing(now, *, renaming):
        return list(frozen.differences(now, then, frozen.Renames(allowed=renaming)))

    assert differing(renamed, renaming=True) == []
    assert len(differing(renamed, renaming=False)) == 2
    assert differing({**renamed, "again": "chance", "kind": "fate"}, renaming=True)
    assert differing({**then, "alpha": 0.1 + 1e-8}, renaming=True)
    assert differing({**then, "parts": [1.0]}, renaming=True)
    assert differing({**then, "kind": None}, renaming=False)
    assert differing({**then, "alpha": True}, renaming=False)


def test_sentences_and_hashes_are_hidden_and_long_lists_summed():
    said = {
        "seconds": 3,
        "kind": "luck",
        "sentence": "It is luck.",
        "id": "fff8f1df",
        "path": [0.5] * 30,
    }
    assert frozen.reduced(said) == {
        "kind": "luck",
        "sentence": frozen.HIDDEN,
        "id": frozen.HIDDEN,
        "path": {"count": 30, "first": 0.5, "last": 0.5, "sum": 15.0, "squares": 7.5},
    }
