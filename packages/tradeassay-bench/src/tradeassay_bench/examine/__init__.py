"""Examine recorded results and explain the sources of a return.

The package combines runs with attribution, luck baselines, leak tests, memory studies and the
verdict. ``assay`` runs the whole examination. ``attribute_run`` splits returns into market, style,
selection and trading. Names are imported on first use because some modules are slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay.verdict.attribution import (
        Attribution as Attribution,
        BrinsonTotals as BrinsonTotals,
        DailyAttribution as DailyAttribution,
    )
    from tradeassay.verdict.own_account import OwnAccount as OwnAccount
    from tradeassay.verdict.record import (
        AgentAssay as AgentAssay,
        Assay as Assay,
        Verdict as Verdict,
        VerdictConfig as VerdictConfig,
    )
    from tradeassay_bench.examine.attribute import (
        AgentAttribution as AgentAttribution,
        RunAttribution as RunAttribution,
        attribute_episode as attribute_episode,
        attribute_run as attribute_run,
        check_identity as check_identity,
    )
    from tradeassay_bench.examine.holdings import (
        attribute_tables as attribute_tables,
        luck_of_file as luck_of_file,
    )
    from tradeassay_bench.examine.judge import assay as assay
    from tradeassay_bench.examine.leaks.examine import leak_test as leak_test
    from tradeassay_bench.examine.leaks.leak_result import (
        LeakFinding as LeakFinding,
        LeakTestConfig as LeakTestConfig,
        LeakTestReport as LeakTestReport,
    )
    from tradeassay_bench.examine.luck.luck import (
        Luck as Luck,
        LuckConfig as LuckConfig,
        StatedTrades as StatedTrades,
        luck_of_episode as luck_of_episode,
        luck_of_returns as luck_of_returns,
        luck_of_run as luck_of_run,
    )
    from tradeassay_bench.examine.market_window import (
        MarketInputs as MarketInputs,
        MarketQuery as MarketQuery,
        market_inputs as market_inputs,
    )
    from tradeassay_bench.examine.memory.contrast import (
        DirectProbe as DirectProbe,
        Fade as Fade,
        MemoryArm as MemoryArm,
        MemoryConfig as MemoryConfig,
        MemoryContrast as MemoryContrast,
        MemoryGap as MemoryGap,
        memory_contrast as memory_contrast,
    )
    from tradeassay_bench.examine.planted import (
        Confusion as Confusion,
        planted_trial as planted_trial,
    )
    from tradeassay_bench.examine.power import (
        AgentPower as AgentPower,
        power_of_run as power_of_run,
    )
    from tradeassay_bench.examine.probe.payloads import (
        ProbeConfig as ProbeConfig,
        ProbeReport as ProbeReport,
        ProbeRow as ProbeRow,
    )
    from tradeassay_bench.examine.probe.probe import probe_mask as probe_mask
    from tradeassay_bench.examine.regimes import (
        IndexRegime as IndexRegime,
        RegimePanel as RegimePanel,
        RegimeRules as RegimeRules,
        regime_panels as regime_panels,
        tag_regimes as tag_regimes,
    )
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.examine.attribute": [
                "AgentAttribution",
                "RunAttribution",
                "attribute_episode",
                "attribute_run",
                "check_identity",
            ],
            "tradeassay_bench.examine.holdings": ["attribute_tables", "luck_of_file"],
            "tradeassay_bench.examine.judge": ["assay"],
            "tradeassay_bench.examine.leaks.examine": ["leak_test"],
            "tradeassay_bench.examine.leaks.leak_result": [
                "LeakFinding",
                "LeakTestConfig",
                "LeakTestReport",
            ],
            "tradeassay_bench.examine.luck.luck": [
                "Luck",
                "LuckConfig",
                "StatedTrades",
                "luck_of_episode",
                "luck_of_returns",
                "luck_of_run",
            ],
            "tradeassay_bench.examine.market_window": [
                "MarketInputs",
                "MarketQuery",
                "market_inputs",
            ],
            "tradeassay_bench.examine.memory.contrast": [
                "DirectProbe",
                "Fade",
                "MemoryArm",
                "MemoryConfig",
                "MemoryContrast",
                "MemoryGap",
                "memory_contrast",
            ],
            "tradeassay_bench.examine.planted": ["Confusion", "planted_trial"],
            "tradeassay_bench.examine.power": ["AgentPower", "power_of_run"],
            "tradeassay_bench.examine.probe.payloads": ["ProbeConfig", "ProbeReport", "ProbeRow"],
            "tradeassay_bench.examine.probe.probe": ["probe_mask"],
            "tradeassay_bench.examine.regimes": [
                "IndexRegime",
                "RegimePanel",
                "RegimeRules",
                "regime_panels",
                "tag_regimes",
            ],
            "tradeassay.verdict.attribution": ["Attribution", "BrinsonTotals", "DailyAttribution"],
            "tradeassay.verdict.own_account": ["OwnAccount"],
            "tradeassay.verdict.record": ["AgentAssay", "Assay", "Verdict", "VerdictConfig"],
        },
    )
