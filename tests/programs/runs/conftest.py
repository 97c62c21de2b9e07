import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "runs"))
sys.path.insert(0, str(Path(__file__).parent))

import runs_agents  # noqa: F401  # registers the agents
import runs_code_toy  # noqa: F401  # registers the toy benchmark
from runs_fixtures import finished, home, play  # noqa: F401  # fixtures
