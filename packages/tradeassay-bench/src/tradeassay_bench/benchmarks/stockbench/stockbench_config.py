"""Define the settings of StockBench's protocol.

Cash, costs and prices are part of the market, see ``specs`` and ``venues``.
"""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from tradeassay.core.measure import Convention
from tradeassay_bench.benchmarks.protocol import ProtocolConfig

Inputs = Literal["all", "no-news", "no-fundamentals", "neither"]
INPUTS: tuple[Inputs, ...] = get_args(Inputs)
Prompt = Literal["minimal", "reasoned", "hybrid"]
SIZES = (5, 10, 20, 30)
"""Universe sizes of the scaling study."""

Count = Annotated[int, Meta(ge=1, le=10_000)]
Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class StockbenchConfig(ProtocolConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of StockBench's protocol.

    - ``inputs``: the data that the model sees. It can exclude news, fundamentals or both.
    - ``prompt``: the wording. ``minimal`` has the task alone. ``reasoned`` asks for reasoning in
      prose first. ``hybrid`` asks for short reasons inside the answer and has a list of checks.

    The paper specifies ``closes`` and ``history_days`` (7 sessions each), ``news_items`` per name
    from the ``news_days`` calendar days before the session, and ``context_tokens``. Its protocol
    specifies ``attempts`` and ``tolerance``.

    The other values are ours:

    - ``max_names``: the maximum number of names in the analysis.
    - ``max_tokens``: the length of an answer, reserved within the context limit.
    - ``news_characters``: the length of an item's text.
    - ``year_sessions`` and ``year_days``: the period of the 52-week figures.
    - ``year_coverage``: the share of these sessions that must have a bar.
    - ``temperature`` and ``timeout_s``: settings of the model.

    A target that is already met is not a mistake. Under ``corrected``, valid decisions are kept if
    others are refused. A provider's error and a truncated answer do not use up an attempt.
    """

    convention: Convention = "corrected"
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
    def keeps_valid_decisions(self) -> bool:
        """Return whether valid decisions are kept if others break a rule, unlike in the paper."""
        return self.convention == "corrected"

    @property
    def spends_cash_only(self) -> bool:
        """Return whether each purchase must fit the cash before any sale, as in the paper's
        reference.
        """
        return self.convention == "paper"

    @property
    def room(self) -> int:
        """Return the maximum number of tokens in a request, which leaves room for the answer."""
        return max(1, self.context_tokens - self.max_tokens)
