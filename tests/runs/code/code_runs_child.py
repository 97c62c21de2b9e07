"""A process of its own that runs the toy benchmark and kills itself in the middle of an item."""

import sys
from pathlib import Path

from code_runs_toy import ToySpec

from tradeassay.runs.code import run_code
from tradeassay.runs.models import Asking

if __name__ == "__main__":
    folder, log = Path(sys.argv[1]), sys.argv[2]
    run_code(ToySpec(log=log, kill_at=int(sys.argv[3])), folder, asking=Asking(concurrency=2), workers=1)
