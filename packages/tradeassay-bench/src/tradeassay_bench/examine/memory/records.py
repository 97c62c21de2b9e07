"""Read, write and verify records of models' memory, as files for a verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.measure import NOT_REDERIVABLE
from tradeassay_bench.examine.memory.counterfactual import (
    COUNTERFACTUAL,
    CounterfactualConfig,
    CounterfactualReport,
    study_again,
)
from tradeassay_bench.examine.memory.questions import RecallConfig
from tradeassay_bench.examine.memory.recall import (
    FORMAT,
    RecallReport,
    episodes_of,
    recall_again,
    recall_audit,
)
from tradeassay_bench.llm import RecordingStore
from tradeassay_bench.runs.spec.episode import Asking, asking_or_default
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.outcome import ClaimOutcome, ClaimStatus
from tradeassay_bench.runs.verify.replay import can_be_queried, differences

if TYPE_CHECKING:
    from tradeassay_bench.runs import EpisodeSpec, Run

MemoryRecord = RecallReport | CounterfactualReport


RECALL = "recall"
"""The name of the folder in a run's folder with the models' answers about their memory."""


def ask_models(
    run: Run, asking: Asking | None = None, *, say: Callable[[str], None] | None
) -> list[MemoryRecord]:
    """Query every model of a run about the names and days that it traded. Return the records.

    Answers are stored next to the run and are not requested again. A cap on dollars applies to the
    run and these questions together. Raises :class:`UserError` if the run has no model.
    """
    models = dict.fromkeys(one.model for one in run.episodes if one.by_model)
    if not models:
        raise UserError(
            f"no model ran in {run.folder}: a rule has nothing to recall",
            hint="leave recall= out",
        )
    how = asking_or_default(asking)
    if not how.replay:
        # The spending of the run itself counts under the same cap. The folder has the cost of
        # earlier questions.
        played = RecordingStore(RunFolder(run.folder).models).spent_usd()
        how = msgspec.structs.replace(how, spent_usd=how.spent_usd + played)
    how = msgspec.structs.replace(how, recordings=run.folder / RECALL)
    return [recall_audit(model, run=run, asking=how, say=say) for model in models]


def is_about(run: Run, episode: EpisodeSpec, record: MemoryRecord) -> bool:
    """Return whether a record covers the market and the decisions of an episode.

    A record about different prices or decisions is no evidence on the episode.
    """
    if isinstance(record, RecallReport):
        return record.dataset == run.snapshot(episode.key).name
    return record.run == run.spec.name


def check_about(run: Run, record: MemoryRecord) -> None:
    """Check that a record matches a run.

    Raises :class:`UserError` for an agent that did not run, and for different data or decisions.
    """
    if not any(is_about(run, one, record) for one in episodes_of(run, record.model)):
        about = record.dataset if isinstance(record, RecallReport) else record.run
        raise UserError(
            f"{record.model} has a record about {about}, which {run.folder} did not trade",
            hint="ask about this run: tradeassay memory recall --run RUN",
        )


class _Head(msgspec.Struct):
    format: str


def parse_record(content: bytes) -> MemoryRecord:
    """Decode a recorded audit or study. Raises :class:`ValueError` for any other content."""
    kind = msgspec.json.decode(content, type=_Head).format
    if kind == COUNTERFACTUAL:
        return msgspec.json.decode(content, type=CounterfactualReport)
    if kind == FORMAT:
        return msgspec.json.decode(content, type=RecallReport)
    raise ValueError(f"its format is {kind!r}")


def check_record(run: Run, record: MemoryRecord, unsure: bool) -> tuple[ClaimOutcome, list[str]]:
    """Recompute a memory record.

    Return the result and the differences from the usual configuration.

    Programs are queried again. A model's answers are a claim of the runner, and are parsed and
    scored again. ``unsure`` is true if the run's data or its venue's rules are missing here. A
    failure is then not a contradiction.
    """
    claim, plain = "changed input", msgspec.to_builtins(CounterfactualConfig())
    if isinstance(record, RecallReport):
        claim, plain = "recall", msgspec.to_builtins(RecallConfig())
    if record.run not in (None, run.spec.name):
        why = f"the record is about a different run, {record.run}"
        return ClaimOutcome(claim=claim, outcome="cannot be checked", why=why), []
    chosen = differences(plain, msgspec.to_builtins(record.config))
    notes = [f"{claim} was made with {name} {new} instead of {old}" for name, old, new in chosen]
    try:
        played = episodes_of(run, record.model)
        asked = all(not one.by_model or can_be_queried([one.model]) for one in played)
        again: MemoryRecord
        if isinstance(record, RecallReport):
            again = recall_again(run, record, asked)
        else:
            again = study_again(run, record, asked)
        then, now = (msgspec.json.decode(canonical_json(one)) for one in (record, again))
        changes = differences(then, now, near=True)
        changed = next(
            (f"{where} is {old!r:.60}, but here {new!r:.60}" for where, old, new in changes), ""
        )
    except TradeassayError as error:
        changed, asked = f"the record cannot be recomputed: {error}", False
        if unsure:
            return ClaimOutcome(claim=claim, outcome="cannot be checked", why=changed), notes
    outcome: ClaimStatus = "re-derived" if asked else "cannot be checked"
    if changed:
        outcome = "contradicted"
    return ClaimOutcome(
        claim=claim, outcome=outcome, why=changed or ("" if asked else NOT_REDERIVABLE)
    ), notes


def read_record(path: Path) -> MemoryRecord:
    """Read a recorded audit or study. Raises :class:`UserError` for any other file."""
    try:
        return parse_record(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", hint="check the path") from error
    except (*UNDECODABLE, ValueError) as error:
        hint = "make one with: tradeassay memory recall --run RUN --json > FILE"
        raise UserError(
            f"{path} is not a record of a model's memory: {error}", hint=hint
        ) from error
