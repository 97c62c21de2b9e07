"""The versions of the benchmark: which strategies, which texts, which rules of scoring."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from tradeassay.benchmarks.systrade.loading import STRATEGIES, SYSTB_STRATEGIES
from tradeassay.benchmarks.systrade.prompts import PROMPTS, PROMPTS_V2
from tradeassay.llm.prompting import PromptFolder

SYSTRADE_V1: Final = "systrade-v1"
SYSTRADE: Final = "systrade-v2"
SYSTRADE_SYSTB: Final = "systrade-systb-v1"


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version. ``strict``: scores know validity, and leaks are looked for over the whole series."""

    id: str
    strategies: tuple[str, ...]
    wording: Literal["v1", "v2"]
    strict: bool

    @property
    def prompts(self) -> PromptFolder:
        """The files of its texts."""
        return PROMPTS if self.wording == "v1" else PROMPTS_V2


VERSIONS: Final = {
    version.id: version
    for version in (
        Version(id=SYSTRADE_V1, strategies=STRATEGIES, wording="v1", strict=False),
        Version(id=SYSTRADE, strategies=STRATEGIES, wording="v2", strict=True),
        Version(id=SYSTRADE_SYSTB, strategies=SYSTB_STRATEGIES, wording="v2", strict=True),
    )
}
