from tradeassay.api import AgentInfo as AgentInfo
from tradeassay.api import AgentSpec as AgentSpec
from tradeassay.api import BootstrapConfig as BootstrapConfig
from tradeassay.api import Plan as Plan
from tradeassay.api import Run as Run
from tradeassay.api import RunComparison as RunComparison
from tradeassay.api import RunSpec as RunSpec
from tradeassay.api import VerifyReport as VerifyReport
from tradeassay.api import compare as compare
from tradeassay.api import list_agents as list_agents
from tradeassay.api import list_benchmarks as list_benchmarks
from tradeassay.api import load_run as load_run
from tradeassay.api import load_spec as load_spec
from tradeassay.api import make_spec as make_spec
from tradeassay.api import plan as plan
from tradeassay.api import resume as resume
from tradeassay.api import run as run
from tradeassay.api import verify as verify
from tradeassay.data import diagnose as diagnose
from tradeassay.data import fetch_dataset as fetch_dataset
from tradeassay.data import get_dataset as get_dataset
from tradeassay.data import import_files as import_files
from tradeassay.data import list_catalogue as list_catalogue
from tradeassay.data import list_datasets as list_datasets
from tradeassay.data import load_dataset as load_dataset

__version__: str
