"""Up to when a model's training data reaches. Where that is unknown, nothing can be claimed to be unseen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import msgspec

from tradeassay.llm.tables.lookup import find_model, read_table


class Cutoff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last day that the training data may hold, where to check it, and when it was last believed right.

    Where a provider names a month, the day is the month's last. Where it names a "reliable knowledge" date and the
    end of the training data, the later one counts: a contrast must not mistake seen data for unseen.
    """

    last_day: date
    source: str
    as_of: date


class CutoffTable(msgspec.Struct, frozen=True):
    """Knowledge cutoffs by model name."""

    cutoffs: Mapping[str, Cutoff]

    def of(self, model: str) -> Cutoff | None:
        """Return a model's cutoff, or None when it is unknown.

        A model reached through somebody else (``openrouter/openai/gpt-4o``) is looked up by its maker's name too:
        who serves the weights does not change what they have read.
        """
        while "/" in model:
            found = find_model(self.cutoffs, model)
            if found is not None:
                return found
            model = model.partition("/")[2]
        return None


def load_cutoffs(override: Path | None = None) -> CutoffTable:
    """Return the packaged cutoffs, with a user's TOML file laid over them.

    Raises :class:`UserError` for a bad file.
    """
    return CutoffTable(read_table(Cutoff, "cutoffs", "cutoffs.toml", override))
