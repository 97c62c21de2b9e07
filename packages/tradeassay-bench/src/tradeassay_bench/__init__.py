"""Run trading agents and evaluate them: runs, benchmarks, data sets.

Importing this package is fast, because large modules are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradeassay_bench.api import (
        AgentInfo as AgentInfo,
        CodeRun as CodeRun,
        Run as Run,
        list_agents as list_agents,
        list_benchmarks as list_benchmarks,
        list_models as list_models,
        load_run as load_run,
        make_spec as make_spec,
        plan as plan,
        resume as resume,
        run as run,
    )
    from tradeassay_bench.data import (
        diagnose as diagnose,
        fetch_dataset as fetch_dataset,
        get_dataset as get_dataset,
        import_files as import_files,
        list_catalogue as list_catalogue,
        list_datasets as list_datasets,
        load_dataset as load_dataset,
    )
    from tradeassay_bench.runs import (
        AgentSpec as AgentSpec,
        Asking as Asking,
        Plan as Plan,
        RunComparison as RunComparison,
        RunSpec as RunSpec,
        VerifyReport as VerifyReport,
        compare as compare,
        load_spec as load_spec,
    )
    from tradeassay_bench.runs.spec.episode import (
        ModelInfo as ModelInfo,
    )
    from tradeassay_bench.runs.verify.report import (
        verify as verify,
    )
else:
    from tradeassay.core.lazy import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.api": [
                "AgentInfo",
                "CodeRun",
                "Run",
                "list_agents",
                "list_benchmarks",
                "list_models",
                "load_run",
                "make_spec",
                "plan",
                "resume",
                "run",
            ],
            "tradeassay_bench.data": [
                "diagnose",
                "fetch_dataset",
                "get_dataset",
                "import_files",
                "list_catalogue",
                "list_datasets",
                "load_dataset",
            ],
            "tradeassay_bench.runs": [
                "AgentSpec",
                "Asking",
                "Plan",
                "RunComparison",
                "RunSpec",
                "VerifyReport",
                "compare",
                "load_spec",
            ],
            "tradeassay_bench.runs.spec.episode": ["ModelInfo"],
            "tradeassay_bench.runs.verify.report": ["verify"],
        },
    )
