"""Measure memory: the part of a result that disappears if names and dates are masked.

Names are imported on first use, because a verdict on a table of returns needs no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay.verdict.recalled import AlphaSplit as AlphaSplit, RecallSplit as RecallSplit
    from tradeassay_bench.examine.memory.counterfactual import (
        CounterfactualConfig as CounterfactualConfig,
        CounterfactualReport as CounterfactualReport,
        counterfactual_study as counterfactual_study,
        score_counterfactual as score_counterfactual,
    )
    from tradeassay_bench.examine.memory.edge import (
        split_edge as split_edge,
        split_run as split_run,
    )
    from tradeassay_bench.examine.memory.questions import RecallConfig as RecallConfig
    from tradeassay_bench.examine.memory.recall import (
        RecallReport as RecallReport,
        plan_recall as plan_recall,
        recall_audit as recall_audit,
        score_recall as score_recall,
    )
    from tradeassay_bench.examine.memory.records import (
        MemoryRecord as MemoryRecord,
        ask_models as ask_models,
        read_record as read_record,
    )
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.examine.memory.counterfactual": [
                "CounterfactualConfig",
                "CounterfactualReport",
                "counterfactual_study",
                "score_counterfactual",
            ],
            "tradeassay_bench.examine.memory.edge": ["split_edge", "split_run"],
            "tradeassay_bench.examine.memory.questions": ["RecallConfig"],
            "tradeassay_bench.examine.memory.recall": [
                "RecallReport",
                "plan_recall",
                "recall_audit",
                "score_recall",
            ],
            "tradeassay_bench.examine.memory.records": [
                "MemoryRecord",
                "ask_models",
                "read_record",
            ],
            "tradeassay.verdict.recalled": ["AlphaSplit", "RecallSplit"],
        },
    )
