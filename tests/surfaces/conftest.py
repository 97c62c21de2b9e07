import sys
from pathlib import Path

# Samples of runs and seasons are those of the rooms that show them.
HERE = Path(__file__).parent
ROOMS = ("bench/report", "programs/report", "bench/runs", "arena/web")
sys.path[:0] = map(str, (HERE, *(HERE.parent / room for room in ROOMS)))
