"""Define the settings of KTD-Fin's protocol, including those without a published value."""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from tradeassay.core.measure import Convention
from tradeassay_bench.benchmarks.protocol import ProtocolConfig
from tradeassay_bench.masking import Level, MaskConfig

Mode = Literal["memory-only", "fixed-candidate", "open-research"]
MODES: tuple[Mode, ...] = get_args(Mode)

Count = Annotated[int, Meta(ge=1, le=10_000)]
Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]
Share = Annotated[float, Meta(gt=0, le=1)]


class KtdfinConfig(ProtocolConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of KTD-Fin's protocol.

    - ``mode``: the data that the model sees.
    - ``mask``: the information hidden from the model.
    - ``control``: the arm without a mask, in which the prompt forbids the use of memory.
    - ``rebase_prices``, ``scale_volumes``, ``scrub_news``: harden a mask beyond the paper.
    - ``news``: add dated headlines. The paper has prices only.
    - ``retries``: the paper's number of retries.

    The paper describes the following settings without values. The values are ours:

    - ``tool_calls``: tool calls per step.
    - ``max_candidates``: orders per step.
    - ``max_positions``, ``max_weight``: limits of the portfolio.
    - ``min_reason``: the minimum length of a reason in characters. The default is 1, because names
      count as part of a reason and are longer under a mask.
    - ``temperature``, ``max_tokens``, ``timeout_s``: settings of the model.
    - ``table_top``, ``table_size``: names per factor and in total in the ``fixed-candidate`` table.
    - The remaining fields are limits of a single tool call.

    A target that is already met is not a mistake. Under ``corrected``, valid orders are kept if
    others are refused. A provider's error and a truncated answer do not use up an attempt.
    """

    convention: Convention = "corrected"
    mode: Mode = "open-research"
    mask: Level = "blinded"
    control: bool = False
    rebase_prices: bool = False
    scale_volumes: bool = False
    scrub_news: bool = False
    news: bool = False
    tool_calls: Count = 12
    retries: Annotated[int, Meta(ge=0, le=1_000)] = 3
    max_candidates: Count = 30
    max_positions: Count = 20
    max_weight: Share = 0.10
    min_reason: Annotated[int, Meta(ge=0, le=10_000)] = 1
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    max_tokens: Tokens = 4096
    timeout_s: Annotated[float, Meta(gt=0, le=604_800)] = 120.0
    table_top: Count = 5
    table_size: Count = 30
    most_screened: Count = 50
    most_compared: Count = 12
    longest_lookback: Count = 60
    news_days: Count = 5
    news_items: Count = 5

    @property
    def mask_config(self) -> MaskConfig:
        """Return the mask of an episode. Raises :class:`UserError` for an invalid combination."""
        return MaskConfig(
            level=self.mask,
            control=self.control,
            rebase_prices=self.rebase_prices,
            scale_volumes=self.scale_volumes,
            scrub_news=self.scrub_news,
        )

    @property
    def refuses_at_limit(self) -> bool:
        """Return whether orders are refused for names that closed at a price limit.

        The paper removes such names from the candidates. Under ``corrected`` the exchange decides
        at the open, because a name that closed at its limit may open below it.
        """
        return self.convention == "paper"

    @property
    def keeps_valid_orders(self) -> bool:
        """Return whether valid orders are kept if others of the action break a rule, unlike in the
        paper.
        """
        return self.convention == "corrected"
