"""How long does it take to say what rules' results are made of, leak test included? The bar is 60 CPU-seconds.

    tradeassay run daily-us-v1 daily-ashare-v1 daily-crypto-v1 -a equal-weight -a cash -a min-variance \\
        -a momentum-12-1 -a momentum-weighted -a random -a reversal -a sector-equal -a vol-target --slug rules
    python perf/assay_speed.py runs/rules

Nine rules on three synthetic markets: 27 episodes, nine leak tests over every session, 10,000 portfolios of
chance each. Printed are seconds of CPU by stage, all threads counted; compiling is done before the clock starts.
The exit status is 1 when the bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from machine import conditions
from tradeassay.assay.judge import assay_run
from tradeassay.assay.leaks.examine import leak_tests
from tradeassay.assay.luck import LuckConfig, luck_of_episode
from tradeassay.assay.verdict import VerdictConfig
from tradeassay.runs import Run

BAR = 60.0


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--agent", action="append", default=[], help="only this one; there is no bar then")
    asked = parser.parse_args()
    run = Run.load(asked.run)
    for dataset in dict.fromkeys(episode.dataset for episode in run.episodes):
        key = next(
            one.key for one in run.episodes if one.dataset == dataset and run.series(one.key).failure is None
        )
        luck_of_episode(run, key, LuckConfig(portfolios=100))
    began = time.process_time()
    leaks = leak_tests(run, agents=asked.agent)
    tested = time.process_time()
    made = assay_run(run, VerdictConfig(), agents=asked.agent, leaks=leaks)
    done = time.process_time()
    print(f"leak tests of {len(leaks)} agents: {tested - began:.1f} s of CPU")
    print(f"verdicts on {len(made.agents)} rows: {done - tested:.1f} s of CPU")
    print(f"together {done - began:.1f} s of CPU; the bar is {BAR:.0f}; {conditions()}")
    return 0 if asked.agent or done - began <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
