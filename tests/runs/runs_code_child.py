"""A process of its own that runs the toy benchmark and kills itself in the middle of an item."""

import sys
from pathlib import Path

from runs_code_toy import ToySpec

from tradeassay.runs import run as run_spec
from tradeassay.runs.spec.episode import Asking

if __name__ == "__main__":
    folder, log = Path(sys.argv[1]), sys.argv[2]
    run_spec(ToySpec(log=log, kill_at=int(sys.argv[3])), folder, asking=Asking(concurrency=2), workers=1)
