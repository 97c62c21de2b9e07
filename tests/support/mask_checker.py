"""Search every byte shown to a model under a mask, with a finder that does not use the masks'
tables.

A cell is a KTD-Fin benchmark, its data set or another, a mask, a mode, and hardening or none.
Scripted models that behave or misbehave play it. The search covers messages, tools, schemas, and
the observation as data. It looks for codes and names of the raw data set, for well-known companies,
products and people listed here, and for days in any usual spelling, years, quarters and festivals.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.benchmark import AFTER
from tradeassay_bench.core.dialogue import AskModel, Given, ModelReply
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.data import Snapshot
from tradeassay_bench.frontends.prepared import plots_of, spec_for
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.play import AddressedQuestion
from tradeassay_bench.runs.play.episodes import model_episode
from tradeassay_bench.runs.spec.run_spec import ParamValue

MASKS = ("stock-blind", "date-blind", "blinded")
MODES = ("memory-only", "fixed-candidate", "open-research")
HARD = {"rebase_prices": True, "scale_volumes": True, "scrub_news": True}
PLAYERS = ("sensible", "future-asker", "overspender", "injector", "broken-json")
WITH_HISTORY = f"{AFTER}1900-01-01"
COMPANIES, _BENIGN = (
    (Path(__file__).parent / "mask_words.txt").read_text(encoding="utf-8").strip().split("\n\n")
)
"""Well-known companies, products and people, and codes that are everyday words in capitals."""
BENIGN = frozenset(_BENIGN.split())
DAYS = re.compile(
    r"\b(?:19|20)\d\d[-/.年](?:0?[1-9]|1[0-2])(?:[-/.月](?:0?[1-9]|[12]\d|3[01])日?)?(?!\d)|\b[0-3]?\d[./][01]?\d[./]"
    r"(?:19|20)?\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? "
    r"\d{1,2}(?:st|nd|rd|th)?\b(?!\s*%)|"
    r"\b\d{1,2} (?:January|February|March|April|June|July|August|September|October|November|December)\b|"
    r"\bQ[1-4][ ']?(?:19|20)?\d\d\b|\b(?:19|20)?\d\d ?Q[1-4]\b|\b(?:in|since|of|for|by|FY|fiscal) "
    r"?(?:19|20)\d\d\b|"
    r"[一二三四五六七八九十]{1,3}月[一二三四五六七八九十]{1,3}[日号]|二[〇零]二[〇零一二三四五六]年|"
    r"春节|国庆|中秋|端午|清明|元旦|Thanksgiving|Christmas|Black Friday|Memorial Day|Labor Day|Super Bowl"
)
NUMBERS = re.compile(
    r"(?<=\| )[-\d.,%]+(?= \||$)|(?<=[:\[, ])-?\d+(?:\.\d+)?(?=[,\]}\s])", re.MULTILINE
)


def finder(snapshot: Snapshot, mask: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the patterns that must not occur under a mask, from the raw data set and from this
    file.
    """
    wanted: list[tuple[str, re.Pattern[str]]] = []
    if mask != "date-blind":
        instruments = snapshot.at(len(snapshot.sessions) - 1, "close").instruments
        codes = {one.symbol for one in instruments} | {
            one.symbol.split(".")[0] for one in instruments
        }
        plain = {code for code in codes if len(code) > 2 and code not in BENIGN}
        names = {one.name for one in instruments if len(one.name) > 3}
        names |= {" ".join(name.split()).strip() for name in COMPANIES.split(",")}
        wanted.append(("code", words_finder(plain)))
        wanted.append(("code", words_finder(codes - plain, quoted=True)))
        wanted.append(("name", words_finder(names, re.IGNORECASE)))
    if mask != "stock-blind":
        wanted.append(("day", DAYS))
    return wanted


def words_finder(words: set[str], flags: int = 0, *, quoted: bool = False) -> re.Pattern[str]:
    """Return a pattern for any of some words.

    ``quoted``: they are everyday words when used alone.
    """
    if not words:
        return re.compile("(?!)")
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(
        f'"(?:{either})"' if quoted else f"(?<![A-Za-z0-9_])(?:{either})(?![A-Za-z0-9])", flags
    )


class MaskCell(msgspec.Struct, frozen=True, kw_only=True):
    """A case to play. With ``dataset`` None it uses the benchmark's own data set and window.

    Another data set is played from its first session with a year of history. In the benchmark's
    window it may have no session or no history, and then nothing would be shown that could reveal a
    name.
    """

    benchmark: str
    dataset: str | None = None
    mask: str = "blinded"
    mode: str = "open-research"
    hard: bool = False

    @property
    def title(self) -> str:
        data = self.dataset or benchmarks.get(self.benchmark).dataset
        return f"{self.benchmark} {data} {self.mask} {self.mode}{' hard' if self.hard else ''}"


class MaskCapture(msgspec.Struct, frozen=True, kw_only=True):
    """The texts shown in a cell, and the real words among them. ``refused`` is why a cell cannot be
    played.
    """

    cell: MaskCell
    texts: int = 0
    bytes: int = 0
    hits: tuple[str, ...] = ()
    refused: str = ""


def mask_cells(
    datasets: Sequence[str] = (), masks: Sequence[str] = MASKS, modes: Sequence[str] = MODES
) -> list[MaskCell]:
    """Return every combination of masked benchmark, data set (default: its own), mask, mode and
    hardening.
    """
    listed = [name for name, benchmark in benchmarks.items() if benchmark.protocol == "ktdfin"]
    every = itertools.product(listed, datasets or (None,), masks, modes, (False, True))
    return [
        MaskCell(benchmark=name, dataset=data, mask=mask, mode=mode, hard=hard)
        for name, data, mask, mode, hard in every
    ]


def capture_masked(cell: MaskCell, days: int, players: Iterable[str]) -> MaskCapture:
    """Play a cell for some days with every player and search all shown texts."""
    settings: dict[str, ParamValue] = {
        "mask": cell.mask,
        "mode": cell.mode,
        **(HARD if cell.hard else {}),
    }
    secret = "c0ffee" * 10
    said: dict[str, set[str]] = {}
    try:
        window = None if cell.dataset is None else WITH_HISTORY
        plots = plots_of(
            spec_for(cell.benchmark, settings, window=window, dataset=cell.dataset, secret=secret)
        )
        for player in players:
            model, shown = scripted_models.get(player)(), said.setdefault(player, set())

            def answer(
                asked: AddressedQuestion[AskModel], model: Any = model, shown: set[str] = shown
            ) -> ModelReply:
                """Ask the scripted model, and record every text shown to it."""
                request = asked.request
                shown |= {
                    message.text for message in request.messages if message.role != "assistant"
                }
                shown |= {msgspec.json.encode(tool).decode() for tool in request.tools}
                if isinstance(request.given, Given):
                    given = (
                        request.given.session,
                        request.given.observation,
                        request.given.feedback,
                    )
                    shown |= {text for text in given if text is not None}
                reply: ModelReply = model.answer(request)
                return reply

            play = model_episode(
                plots[0].snapshot, plots[0].benchmark, plots[0].episode, plots[0].secret
            )
            if not play.open().universe:
                return MaskCapture(
                    cell=cell, refused="nothing can be bought on the first day: no name is shown"
                )
            for _ in itertools.islice(play.records(answer), days):
                pass
    except (UserError, DataError) as error:
        return MaskCapture(cell=cell, refused=str(error))
    wanted = finder(plots[0].snapshot, cell.mask)
    hits = {
        f"{cell.title}, {player}: {found}"
        for player, texts in said.items()
        for text in texts
        for found in _found(text, wanted)
    }
    every = [text for texts in said.values() for text in texts]
    return MaskCapture(
        cell=cell, texts=len(every), bytes=sum(map(len, every)), hits=tuple(sorted(hits))
    )


def _found(text: str, wanted: list[tuple[str, re.Pattern[str]]]) -> Iterator[str]:
    plain = NUMBERS.sub("", text)
    for kind, pattern in wanted:
        for hit in itertools.islice(pattern.finditer(plain), 3):
            around = plain[max(0, hit.start() - 40) : hit.end() + 30].replace("\n", " ")
            yield f"{kind} {hit[0]!r} in ...{around}..."


def check_masks(
    cells: Iterable[MaskCell], days: int = 6, players: Iterable[str] = PLAYERS
) -> list[MaskCapture]:
    """Raise :class:`CheckFailed` if a mask shows a real word, or if the finder itself is blind.

    A finder is blind if it finds nothing in the same conversation without a mask.
    """
    captured = []
    for cell in cells:
        found = capture_masked(cell, days, players)
        captured.append(found)
        if found.hits:
            raise CheckFailed(f"{len(found.hits)} real words under a mask, e.g. {found.hits[0]}")
        if not found.refused:
            bright = msgspec.structs.replace(cell, mask="bright", hard=False)
            shown = capture_masked(bright, 1, ("sensible",)).hits
            kinds = {kind for kind in ("code", "day") if any(f": {kind} " in hit for hit in shown)}
            if cell.mode != "memory-only" and kinds != {"code", "day"}:
                raise CheckFailed(
                    f"{bright.title}: the finder sees only {', '.join(kinds) or 'nothing'} without "
                    "a mask"
                )
    return captured
