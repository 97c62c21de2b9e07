"""The stages of an evaluation, each one question: does it compile, run, trade, look ahead?"""

from __future__ import annotations

from tradeassay.code.stages.compiling import Framework, compile_stage, strategy_classes
from tradeassay.code.stages.result import StageResult, Status

__all__ = ["Framework", "StageResult", "Status", "compile_stage", "strategy_classes"]
