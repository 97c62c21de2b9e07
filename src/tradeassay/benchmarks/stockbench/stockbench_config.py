"""Every number of the protocol. Cash, costs and prices are part of the market (see ``specs`` and ``venues``)."""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from tradeassay.benchmarks.protocol import ProtocolConfig
from tradeassay.core.measure import Convention

Inputs = Literal["all", "no-news", "no-fundamentals", "neither"]
INPUTS: tuple[Inputs, ...] = get_args(Inputs)
Prompt = Literal["minimal", "reasoned", "hybrid"]
SIZES = (5, 10, 20, 30)
"""Universe sizes of the scaling study."""

Count = Annotated[int, Meta(ge=1, le=10_000)]
Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class StockbenchConfig(ProtocolConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model plays StockBench.

    ``inputs`` leaves news or fundamentals (or both) out of what is shown, ``prompt`` chooses the wording: the task
    alone (``minimal``), reasoning in prose first (``reasoned``), or short reasons inside the answer and a list to
    check it against (``hybrid``).

    The paper's: ``closes`` and ``history_days`` (7 sessions each), ``news_items`` per name from the ``news_days``
    calendar days before the session, ``context_tokens``. Of the protocol: ``attempts`` and ``tolerance``. Ours:
    ``max_names`` (for the analysis), ``max_tokens`` of an answer, which are reserved within the context limit,
    ``news_characters`` of an item's text, ``year_sessions`` and ``year_days`` behind the 52-week figures,
    ``year_coverage`` (the share of these sessions that must have a bar), ``temperature`` and ``timeout_s``.

    A target that is already met is no mistake, sound decisions are kept when others are refused (under ``sound``),
    and errors of the provider and cut-off answers use up no attempt."""

    convention: Convention = "sound"
    inputs: Inputs = "all"
    prompt: Prompt = "hybrid"
    closes: Count = 7
    history_days: Annotated[int, Meta(ge=0, le=10_000)] = 7
    news_items: Count = 5
    news_days: Count = 2
    news_characters: Count = 400
    max_names: Count = 10
    attempts: Count = 3
    tolerance: Share = 0.01
    context_tokens: Tokens = 32_768
    max_tokens: Tokens = 4_096
    year_sessions: Count = 252
    year_days: Count = 365
    year_coverage: Annotated[float, Meta(gt=0, le=1)] = 0.8
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    timeout_s: Annotated[float, Meta(gt=0, le=604_800)] = 120.0

    @property
    def shows_news(self) -> bool:
        return self.inputs in ("all", "no-fundamentals")

    @property
    def shows_fundamentals(self) -> bool:
        return self.inputs in ("all", "no-news")

    @property
    def keeps_sound_decisions(self) -> bool:
        """Whether the sound decisions of an answer stand where others break a rule (not the paper's way)."""
        return self.convention == "sound"

    @property
    def spends_cash_only(self) -> bool:
        """Whether each purchase must fit the cash before any sale, as the paper's reference judges it."""
        return self.convention == "paper"

    @property
    def room(self) -> int:
        """Tokens a request may have, so that the answer still fits the context."""
        return max(1, self.context_tokens - self.max_tokens)
