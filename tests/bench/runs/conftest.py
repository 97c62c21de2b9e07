import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import runs_agents  # noqa: F401  # registers the agents
from runs_fixtures import finished, home, play  # noqa: F401  # fixtures
