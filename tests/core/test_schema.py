"""Schemas that go to models: the same bytes whatever a process imported or declared before."""

import subprocess
import sys

import pytest

_DECLARED = """
from typing import Annotated
import msgspec

{before}
from tradeassay.core.dialogue import schema_text

class Answer(msgspec.Struct):
    weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    size: Annotated[float, msgspec.Meta(gt=0.5)] = 1.0

print(schema_text(Answer))
"""


@pytest.mark.parametrize(
    "before",
    ["", "Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]", "Annotated[float, msgspec.Meta(ge=0, le=1.0)]"],
)
def test_bounds_are_written_one_way(before: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", _DECLARED.format(before=before)], capture_output=True, text=True, check=True
    ).stdout
    assert '"minimum":0,' in said
    assert '"maximum":1}' in said
    assert '"exclusiveMinimum":0.5' in said
    assert '"default":1.0' in said, "a default is a value, not a bound"


def test_the_arena_asks_the_same_whatever_was_imported_before() -> None:
    asks = (
        "from tradeassay.agents.ama.desk import Opinion, Verdict\n"
        "from tradeassay.core.dialogue import schema_text\n"
        "print(schema_text(Opinion), schema_text(Verdict))"
    )
    plain, after = (
        subprocess.run([sys.executable, "-c", first + asks], capture_output=True, text=True, check=True).stdout
        for first in ("", "import tradeassay.assay.verdict.record; ")
    )
    assert plain == after
