"""The assay: what a recorded result is made of. Joins runs with attribution and statistics.

``attribute_run`` takes returns apart into market, style, selection and trading. The names are imported on first
use, because some of them are heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily, make_callable

if TYPE_CHECKING:
    from tradeassay.assay.attribute import AgentAttribution as AgentAttribution
    from tradeassay.assay.attribute import RunAttribution as RunAttribution
    from tradeassay.assay.attribute import attribute_episode as attribute_episode
    from tradeassay.assay.attribute import attribute_run as attribute_run
    from tradeassay.assay.attribute import check_identity as check_identity
    from tradeassay.assay.attribution import Attribution as Attribution
    from tradeassay.assay.attribution import BrinsonTotals as BrinsonTotals
    from tradeassay.assay.attribution import DailyAttribution as DailyAttribution
    from tradeassay.assay.inputs import MarketInputs as MarketInputs
    from tradeassay.assay.inputs import MarketQuery as MarketQuery
    from tradeassay.assay.inputs import market_inputs as market_inputs
    from tradeassay.assay.leaks.examine import leak_test as leak_test
    from tradeassay.assay.leaks.leak_result import LeakFinding as LeakFinding
    from tradeassay.assay.leaks.leak_result import LeakTestConfig as LeakTestConfig
    from tradeassay.assay.leaks.leak_result import LeakTestReport as LeakTestReport
    from tradeassay.assay.luck.luck import Luck as Luck
    from tradeassay.assay.luck.luck import LuckConfig as LuckConfig
    from tradeassay.assay.luck.luck import StatedTrades as StatedTrades
    from tradeassay.assay.luck.luck import luck_of_episode as luck_of_episode
    from tradeassay.assay.luck.luck import luck_of_returns as luck_of_returns
    from tradeassay.assay.luck.luck import luck_of_run as luck_of_run
    from tradeassay.assay.memory.contrast import DirectProbe as DirectProbe
    from tradeassay.assay.memory.contrast import Fade as Fade
    from tradeassay.assay.memory.contrast import MemoryArm as MemoryArm
    from tradeassay.assay.memory.contrast import MemoryConfig as MemoryConfig
    from tradeassay.assay.memory.contrast import MemoryContrast as MemoryContrast
    from tradeassay.assay.memory.contrast import MemoryGap as MemoryGap
    from tradeassay.assay.memory.contrast import memory_contrast as memory_contrast
    from tradeassay.assay.memory.rationale import NamedThing as NamedThing
    from tradeassay.assay.memory.rationale import RationaleReport as RationaleReport
    from tradeassay.assay.memory.rationale import RationaleRow as RationaleRow
    from tradeassay.assay.memory.rationale import rationale_analysis as rationale_analysis
    from tradeassay.assay.own import OwnAccount as OwnAccount
    from tradeassay.assay.own import attribute_tables as attribute_tables
    from tradeassay.assay.own import luck_of_file as luck_of_file
    from tradeassay.assay.planted import Confusion as Confusion
    from tradeassay.assay.planted import planted_trial as planted_trial
    from tradeassay.assay.power import AgentPower as AgentPower
    from tradeassay.assay.power import power_of_run as power_of_run
    from tradeassay.assay.probe.payloads import ProbeConfig as ProbeConfig
    from tradeassay.assay.probe.payloads import ProbeReport as ProbeReport
    from tradeassay.assay.probe.payloads import ProbeRow as ProbeRow
    from tradeassay.assay.probe.probe import probe_mask as probe_mask
    from tradeassay.assay.regimes import IndexRegime as IndexRegime
    from tradeassay.assay.regimes import RegimePanel as RegimePanel
    from tradeassay.assay.regimes import RegimeRules as RegimeRules
    from tradeassay.assay.regimes import regime_panels as regime_panels
    from tradeassay.assay.regimes import tag_regimes as tag_regimes
    from tradeassay.assay.robustness.study import RobustnessConfig as RobustnessConfig
    from tradeassay.assay.robustness.study import RobustnessReport as RobustnessReport
    from tradeassay.assay.robustness.study import RobustnessScore as RobustnessScore
    from tradeassay.assay.robustness.study import robustness_of_run as robustness_of_run
    from tradeassay.assay.studies import Studies as Studies
    from tradeassay.assay.studies import study_run as study_run
    from tradeassay.assay.verdict.build import assay as assay
    from tradeassay.assay.verdict.record import AgentAssay as AgentAssay
    from tradeassay.assay.verdict.record import Assay as Assay
    from tradeassay.assay.verdict.record import Verdict as Verdict
    from tradeassay.assay.verdict.record import VerdictConfig as VerdictConfig
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
    make_callable(__name__, "tradeassay.api:assay")
