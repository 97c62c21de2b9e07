"""Records of what a model was asked about its memory, as files that a verdict can be given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.assay.memory.counterfactual import COUNTERFACTUAL, CounterfactualReport
from tradeassay.assay.memory.recall import FORMAT, RecallReport, recall_audit
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.runs.spec.episode import Asking

if TYPE_CHECKING:
    from tradeassay.runs import Run

MemoryRecord = RecallReport | CounterfactualReport


RECALL = "recall"
"""The folder beside a run in which answers about memory are kept."""


def ask_models(
    run: Run, asking: Asking | None = None, *, say: Callable[[str], None] | None = None
) -> list[MemoryRecord]:
    """Ask every model of a run what it remembers of the names and days it traded; answers are kept beside the run,
    and what is there is not asked again. Raises :class:`UserError` where no model played."""
    models = dict.fromkeys(one.model for one in run.episodes if one.by_model)
    if not models:
        raise UserError(
            f"no model played in {run.folder}: a rule has nothing to recall", hint="leave --recall out"
        )
    how = msgspec.structs.replace(asking or Asking(), cassettes=run.folder / RECALL)
    return [recall_audit(model, run=run, asking=how, say=say) for model in models]


class _Head(msgspec.Struct):
    format: str


def read_record(path: Path) -> MemoryRecord:
    """Read a recorded audit or study; raises :class:`UserError` for a file that is neither."""
    try:
        content = path.read_bytes()
        kind = msgspec.json.decode(content, type=_Head).format
        if kind == COUNTERFACTUAL:
            return msgspec.json.decode(content, type=CounterfactualReport)
        if kind == FORMAT:
            return msgspec.json.decode(content, type=RecallReport)
        raise ValueError(f"its format is {kind!r}")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", hint="check the path") from error
    except (*UNDECODABLE, ValueError) as error:
        hint = "make one with: tradeassay memory recall --run RUN --json > FILE"
        raise UserError(f"{path} is no record of a model's memory: {error}", hint=hint) from error
