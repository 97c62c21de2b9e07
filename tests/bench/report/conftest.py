import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = map(
    str, (HERE, HERE.parent / "runs")
)  # agents that fail are those of the tests of runs
