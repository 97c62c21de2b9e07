import sys
from pathlib import Path

# Samples of runs and seasons are those of the rooms that show them.
HERE = Path(__file__).parent
sys.path[:0] = map(str, (HERE, *(HERE.parent / room for room in ("report", "runs", "arena/web"))))
