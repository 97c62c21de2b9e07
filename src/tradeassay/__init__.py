"""tradeassay: what is a trading model's result made of?

Importing this package is cheap; everything heavy is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core import __version__ as __version__
from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay import plot as plot
    from tradeassay import reward as reward
    from tradeassay.api import AgentInfo as AgentInfo
    from tradeassay.api import CodeRun as CodeRun
    from tradeassay.api import Run as Run
    from tradeassay.api import ShownAssay as ShownAssay
    from tradeassay.api import assay as assay
    from tradeassay.api import list_agents as list_agents
    from tradeassay.api import list_benchmarks as list_benchmarks
    from tradeassay.api import list_models as list_models
    from tradeassay.api import load_run as load_run
    from tradeassay.api import make_spec as make_spec
    from tradeassay.api import plan as plan
    from tradeassay.api import resume as resume
    from tradeassay.api import run as run
    from tradeassay.data import diagnose as diagnose
    from tradeassay.data import fetch_dataset as fetch_dataset
    from tradeassay.data import get_dataset as get_dataset
    from tradeassay.data import import_files as import_files
    from tradeassay.data import list_catalogue as list_catalogue
    from tradeassay.data import list_datasets as list_datasets
    from tradeassay.data import load_dataset as load_dataset
    from tradeassay.metrics import BootstrapConfig as BootstrapConfig
    from tradeassay.runs import AgentSpec as AgentSpec
    from tradeassay.runs import Asking as Asking
    from tradeassay.runs import Plan as Plan
    from tradeassay.runs import RunComparison as RunComparison
    from tradeassay.runs import RunSpec as RunSpec
    from tradeassay.runs import VerifyReport as VerifyReport
    from tradeassay.runs import compare as compare
    from tradeassay.runs import load_spec as load_spec
    from tradeassay.runs.spec.episode import ModelInfo as ModelInfo
    from tradeassay.runs.verify.report import verify as verify
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
    __all__ += ["__version__"]
