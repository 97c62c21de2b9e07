"""What the kill tests start: a run with a slow model. ``python runs_talk_child.py FOLDER HOME LOG``."""

import sys
from pathlib import Path

import runs_talk as talk

from tradeassay.runs import run

if __name__ == "__main__":
    talk.LOG.path = Path(sys.argv[3])
    run(talk.talk_spec("tiny-slow"), sys.argv[1], executor="inline", home=sys.argv[2])
