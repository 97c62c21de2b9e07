"""Programs written from the Strategy Docs alone, in two hands: right ones, and ones that are
wrong in one word.
"""

import tomllib
from pathlib import Path

from tradeassay_programs.benchmarks.systrade.loading import bookkeeping, load_reference
from tradeassay_programs.code.submission import Submission

WRITTEN = tomllib.loads((Path(__file__).parent / "written.toml").read_text())
FRAMES: dict[str, str] = WRITTEN["frames"]


def submission(strategy: str, body: str) -> Submission:
    source = f"{bookkeeping()}\n{WRITTEN['head']}{body}"
    return Submission(source=source, card=load_reference(strategy).card, name=strategy)


def changed(*kinds: str) -> list[tuple[str, str, Submission]]:
    """Return strategy, what is written instead, and the program, of lines ``STRATEGY:

    OLD -> NEW``.
    """
    made = []
    for line in filter(None, "\n".join(WRITTEN[kind] for kind in kinds).splitlines()):
        strategy, _, words = line.replace("\\n", "\n").partition(": ")
        old, new = words.split(" -> ")
        assert old in FRAMES[strategy], (strategy, old)
        made.append((strategy, new, submission(strategy, FRAMES[strategy].replace(old, new))))
    return made


def right_ones() -> list[tuple[str, Submission]]:
    own = [(strategy, submission(strategy, body)) for strategy, body in FRAMES.items()]
    return own + [(strategy, made) for strategy, _, made in changed("loops", "same")]


def wrong_ones() -> list[tuple[str, str, Submission]]:
    return changed("wrong")
