import sys
from pathlib import Path

from model_isolation import only_loopback, stand_in_keys  # noqa: F401  # fixtures of every test

sys.path.insert(0, str(Path(__file__).parent))
