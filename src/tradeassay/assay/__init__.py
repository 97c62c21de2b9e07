"""The assay: what a recorded result is made of. Joins runs with attribution and statistics.

``attribute_run`` takes returns apart into market, style, selection and trading. The names are imported on first
use, because some of them are heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily, make_callable

if TYPE_CHECKING:
    from tradeassay.assay.attribute import (
        AgentAttribution as AgentAttribution,
        RunAttribution as RunAttribution,
        attribute_episode as attribute_episode,
        attribute_run as attribute_run,
        check_identity as check_identity,
    )
    from tradeassay.assay.holdings import (
        attribute_tables as attribute_tables,
        luck_of_file as luck_of_file,
    )
    from tradeassay.assay.judge import assay as assay
    from tradeassay.assay.leaks.examine import leak_test as leak_test
    from tradeassay.assay.leaks.leak_result import (
        LeakFinding as LeakFinding,
        LeakTestConfig as LeakTestConfig,
        LeakTestReport as LeakTestReport,
    )
    from tradeassay.assay.luck.luck import (
        Luck as Luck,
        LuckConfig as LuckConfig,
        StatedTrades as StatedTrades,
        luck_of_episode as luck_of_episode,
        luck_of_returns as luck_of_returns,
        luck_of_run as luck_of_run,
    )
    from tradeassay.assay.market_window import (
        MarketInputs as MarketInputs,
        MarketQuery as MarketQuery,
        market_inputs as market_inputs,
    )
    from tradeassay.assay.memory.contrast import (
        DirectProbe as DirectProbe,
        Fade as Fade,
        MemoryArm as MemoryArm,
        MemoryConfig as MemoryConfig,
        MemoryContrast as MemoryContrast,
        MemoryGap as MemoryGap,
        memory_contrast as memory_contrast,
    )
    from tradeassay.assay.planted import Confusion as Confusion, planted_trial as planted_trial
    from tradeassay.assay.power import AgentPower as AgentPower, power_of_run as power_of_run
    from tradeassay.assay.probe.payloads import (
        ProbeConfig as ProbeConfig,
        ProbeReport as ProbeReport,
        ProbeRow as ProbeRow,
    )
    from tradeassay.assay.probe.probe import probe_mask as probe_mask
    from tradeassay.assay.robustness import (
        RobustnessConfig as RobustnessConfig,
        RobustnessReport as RobustnessReport,
        RobustnessScore as RobustnessScore,
        robustness_of_run as robustness_of_run,
    )
    from tradeassay.assay.studies import (
        IndexRegime as IndexRegime,
        RegimePanel as RegimePanel,
        RegimeRules as RegimeRules,
        Studies as Studies,
        regime_panels as regime_panels,
        study_run as study_run,
        tag_regimes as tag_regimes,
    )
    from tradeassay.assay.verdict.attribution import (
        Attribution as Attribution,
        BrinsonTotals as BrinsonTotals,
        DailyAttribution as DailyAttribution,
    )
    from tradeassay.assay.verdict.own_account import OwnAccount as OwnAccount
    from tradeassay.assay.verdict.record import (
        AgentAssay as AgentAssay,
        Assay as Assay,
        Verdict as Verdict,
        VerdictConfig as VerdictConfig,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
    make_callable(__name__, "tradeassay.api:assay")
