"""Every number of the protocol. Values that the paper does not publish are ours, each a named field here."""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from tradeassay.benchmarks.protocol import ProtocolConfig
from tradeassay.core.measure import Convention
from tradeassay.masking import Level, MaskConfig

Mode = Literal["memory-only", "fixed-candidate", "open-research"]
MODES: tuple[Mode, ...] = get_args(Mode)

Count = Annotated[int, Meta(ge=1, le=10_000)]
Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]
Share = Annotated[float, Meta(gt=0, le=1)]


class KtdfinConfig(ProtocolConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model plays KTD-Fin.

    ``mode`` decides what it is shown, ``mask`` what is hidden in it; ``control`` is the arm in which nothing is
    hidden and the model is told not to use its memory. ``rebase_prices``, ``scale_volumes`` and ``scrub_news``
    harden a mask beyond the paper. ``news`` adds dated headlines (the paper is price-only).

    Published in words only, with values of ours: ``tool_calls`` per step, ``max_candidates`` (orders per step),
    ``max_positions``, ``max_weight``, ``min_reason`` (characters), ``temperature``, ``max_tokens``, ``timeout_s``,
    ``table_top`` (names per factor in the table of ``fixed-candidate``) and ``table_size`` (all of them).
    ``retries`` is the paper's. A reason need not be longer than ``min_reason`` characters, by default one: a name
    counts in it, and names are longer under a mask. The remaining fields bound what one tool call may ask for.

    A target that is already met is no mistake, sound orders are kept when others are refused (under ``sound``),
    and errors of the provider and cut-off answers use up no attempt."""

    convention: Convention = "sound"
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
        """The mask of an episode; raises :class:`UserError` for a nonsensical combination."""
        return MaskConfig(
            level=self.mask,
            control=self.control,
            rebase_prices=self.rebase_prices,
            scale_volumes=self.scale_volumes,
            scrub_news=self.scrub_news,
        )

    @property
    def refuses_at_limit(self) -> bool:
        """Whether an order against a price limit reached at the last close is refused before it is sent.

        The paper takes such names out of the candidates. Under ``sound`` the exchange judges the open itself: a
        name that closed at its limit may well open below it."""
        return self.convention == "paper"

    @property
    def keeps_sound_orders(self) -> bool:
        """Whether the sound orders of an action stand where others break a rule (which is not the paper's way)."""
        return self.convention == "sound"
