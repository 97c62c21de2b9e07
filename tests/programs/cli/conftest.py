import sys
from pathlib import Path

from command_line import data_home, done, given, place, pressed, told  # noqa: F401  # fixtures

sys.path.insert(0, str(Path(__file__).parent))
