"""``python -m tradeassay``."""

import sys

from tradeassay.cli import main

sys.exit(main())
