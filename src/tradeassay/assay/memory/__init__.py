"""Memory: which part of a result disappears when a model cannot recognise the stocks and the dates.

The names are imported on first use: a verdict on a table of returns needs none of the models behind them. What
masks and reasons say of recorded runs is exported by :mod:`tradeassay.assay`, beside what else is said of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.assay.memory.counterfactual import (
        CounterfactualConfig as CounterfactualConfig,
        CounterfactualReport as CounterfactualReport,
        counterfactual_study as counterfactual_study,
        score_counterfactual as score_counterfactual,
    )
    from tradeassay.assay.memory.edge import split_edge as split_edge, split_run as split_run
    from tradeassay.assay.memory.questions import RecallConfig as RecallConfig
    from tradeassay.assay.memory.recall import (
        RecallReport as RecallReport,
        plan_recall as plan_recall,
        recall_audit as recall_audit,
        score_recall as score_recall,
    )
    from tradeassay.assay.memory.records import (
        MemoryRecord as MemoryRecord,
        ask_models as ask_models,
        read_record as read_record,
    )
    from tradeassay.assay.verdict.recalled import EdgeSplit as EdgeSplit, RecallSplit as RecallSplit
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
