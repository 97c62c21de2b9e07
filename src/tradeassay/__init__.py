"""tradeassay: what is a trading model's result made of?

Importing this package is cheap; everything heavy is loaded on first use.
"""

from __future__ import annotations

from tradeassay.core import __version__ as __version__

# As in typing, which takes longer to load than all of this: a command that is stopped meanwhile shows a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tradeassay import plot as plot, reward as reward
    from tradeassay.api import (
        AgentInfo as AgentInfo,
        CodeRun as CodeRun,
        Run as Run,
        ShownAssay as ShownAssay,
        assay as assay,
        list_agents as list_agents,
        list_benchmarks as list_benchmarks,
        list_models as list_models,
        load_run as load_run,
        make_spec as make_spec,
        plan as plan,
        resume as resume,
        run as run,
    )
    from tradeassay.data import (
        diagnose as diagnose,
        fetch_dataset as fetch_dataset,
        get_dataset as get_dataset,
        import_files as import_files,
        list_catalogue as list_catalogue,
        list_datasets as list_datasets,
        load_dataset as load_dataset,
    )
    from tradeassay.metrics import BootstrapConfig as BootstrapConfig
    from tradeassay.runs import (
        AgentSpec as AgentSpec,
        Asking as Asking,
        Plan as Plan,
        RunComparison as RunComparison,
        RunSpec as RunSpec,
        VerifyReport as VerifyReport,
        compare as compare,
        load_spec as load_spec,
    )
    from tradeassay.runs.spec.episode import ModelInfo as ModelInfo
    from tradeassay.runs.verify.report import verify as verify
else:

    def __getattr__(name):
        _list_names()
        return __all__ if name == "__all__" else __getattr__(name)

    def __dir__():
        _list_names()
        return __dir__()

    def _list_names():
        global __getattr__, __dir__, __all__
        from tradeassay.core.lazy import lazily

        __getattr__, __dir__, __all__ = lazily(__name__)
        __all__ += ["__version__"]
