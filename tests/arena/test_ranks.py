"""Who has a rank, and why not: a season of entries that fail, come, go and stay silent, read on
every surface.
"""

import html
import json
import re
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "web"))

from arena_sample import FAST, Late, make_season, open_store, play
from tests.arena.conftest import seated

from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.amending import AmendmentRequest, amend
from tradeassay_arena.queries.seasons import read_season
from tradeassay_arena.queries.snapshot import SeasonSnapshot, board_of
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.season import BASELINE, Asset, Entry, Season
from tradeassay_arena.standings import Filter
from tradeassay_arena.web.pages import names_of
from tradeassay_arena.web.site import render
from tradeassay_arena.web.words import words
from tradeassay_bench.core.arena import AgentChoice, ChoiceFailure, Deliberation, Packet

FIRST = date(2022, 5, 3)
"""The first session that counts; 40 are settled."""
JOINED, LAST = "2022-05-17", "2022-06-13"


class Moody:
    """Buys and sells in turn, except on the days that ``silent`` says: then it fails in one of
    four ways.
    """

    def __init__(self, silent, way: str = "says so") -> None:
        self.silent, self.way = silent, way

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        yield from ()
        day = (date.fromisoformat(packet.date) - FIRST).days
        if self.silent(day):
            if self.way == "raises":
                raise RuntimeError("down")
            if self.way == "late":
                raise TimeoutError("too late")
            if self.way == "empty":
                return None  # type: ignore[return-value]  # what an agent must not do
            why = ChoiceFailure(kind="parse", text="no JSON")
            return AgentChoice(action="HOLD", status="failed", reasoning="", failures=(why,))
        return AgentChoice(action="BUY" if day % 3 else "SELL", reasoning="its turn")


NO, OWN = "so it has no rank", "of its rounds had no decision of its own"
PLAYERS = {  # by entry: how it plays, and why it has no rank in the whole season and before anybody joined
    "steady": (Moody(lambda day: False), None, None),
    "holds": (ConstantAction("HOLD"), None, None),  # to hold is a decision
    "starts-silent": (Moody(lambda day: day < 9), f"22% {OWN}", f"64% {OWN}"),
    "started-at-the-limit": (Moody(lambda day: day < 8, "late"), None, f"57% {OWN}"),
    "ends-silent": (
        Moody(lambda day: day >= 32, "raises"),
        "31% of the rounds since 2022-05-17, which ranks compare because 'comes' joined, "
        "had no decision of its own",
        None,
    ),
    "flips-at-the-limit": (Moody(lambda day: day % 5 == 0, "empty"), None, f"21% {OWN}"),
    "flips-over-it": (
        Moody(lambda day: day % 5 == 0 or day == 21, "empty"),
        f"22% {OWN}",
        f"21% {OWN}",
    ),
    "silent": (Moody(lambda day: True), "it never decided", "it never decided"),
    "leaves": (Moody(lambda day: False), f"withdrawn on 2022-05-16: 65% {OWN}", None),
    "comes": (Moody(lambda day: False), None, "absent"),
    "comes-silent": (Moody(lambda day: day % 2 == 0), f"50% {OWN}", "absent"),
}


def season_of(entries: Iterable[str]) -> Season:
    """A season on one coin, whose entries are called rules and play as the test says."""
    made = tuple(Entry(id=name, architecture="rule", params={"rule": "buy"}) for name in entries)
    coin = Asset(symbol="AHVQ", kind="crypto", dataset="synthetic/crypto:7")
    return make_season(title="Ranks", assets=(coin,), entries=made)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A database of that season."""
    folder = tmp_path_factory.mktemp("ranks")
    agents = seated(**{name: player for name, (player, _, _) in PLAYERS.items()})
    season = season_of(name for name in PLAYERS if not name.startswith("comes"))
    store, feed = open_store(folder / "arena.db"), SnapshotFeed.open(season)
    play(store, season, feed, "2022-05-17", agents=agents)

    def change(kind: str, name: str, **values: str) -> None:
        now = f"{JOINED}T00:00:00Z"
        amend(
            store,
            read_season(store, "small"),
            AmendmentRequest(change=kind, what=name, now=now, values=values),
        )

    change("withdraw", "leaves")
    for name in ("comes", "comes-silent"):
        change("join", name, architecture="rule", rule="buy")
    play(store, read_season(store, "small"), feed, LAST, agents=agents)
    yield store, str(folder / "arena.db")
    store.engine.dispose()


def pages(store) -> dict[str, str]:
    """The season's files but those of single rounds and news, under it by their path."""
    made = render(SeasonSnapshot(store, read_season(store, "small"), config=FAST), (), ())
    return {path.replace("seasons/small/", ""): content.decode() for path, content in made}


def told(board) -> dict[str, tuple[int | None, str | None]]:
    """By entry its rank, and why it has none."""
    return {
        row.entry: (row.rank, row.best.reason if row.rank is None else None) for row in board.rows
    }


def test_who_has_a_rank_follows_from_the_rounds_it_decided_in(played):
    board = board_of(played[1])
    found = told(board)
    for name, (_, why, _) in PLAYERS.items():
        rank, said = found[name]
        assert (rank is None) == (why is not None), name
        assert why is None or said == f"{why}, {NO}", name
    ranks = [row.rank for row in board.rows if row.rank is not None]
    assert ranks == sorted(ranks) and ranks[0] == 1 and len(ranks) == 5
    chances = [row.best.value for row in board.rows if row.rank is not None]
    assert sum(chances) == pytest.approx(1.0)
    found = told(board_of(played[1], None, Filter(last="2022-05-16")))
    for name, (_, _, why) in PLAYERS.items():
        if why == "absent":
            assert name not in found
        else:
            assert found[name][1] == (None if why is None else f"{why}, {NO}"), name


def test_all_surfaces_say_the_same(played, tell):
    store, db = played
    made, season, wanted = pages(store), read_season(store, "small"), told(board_of(db))

    def of_file(rows):
        told = ((row["entry"], row["rank"], row["best"]["reason"]) for row in rows)
        return {entry: (rank, why if rank is None else None) for entry, rank, why in told}

    assert of_file(json.loads(made["standings.json"])["rows"]) == wanted
    assert (
        of_file(json.loads(tell(["arena", "standings", "--db", db, "--json"])[0])["rows"]) == wanted
    )
    out, err = tell(["arena", "standings", "--db", db])
    names = names_of(words("en"), season)
    for entry, (rank, why) in wanted.items():
        own = json.loads(made[f"entries/{entry}/index.json"])["standing"]
        assert of_file([own]) == {entry: (rank, why)}
        (line,) = (line for line in out.splitlines() if f" {names[entry]} " in f"{line} ")
        assert re.match(rf"\W*{'' if rank is None else rank}\W*{re.escape(names[entry])}", line), (
            line
        )
        assert (f"{names[entry]}: {why}" in err) == (rank is None and entry != BASELINE)
    for language, start in (("en", ""), ("zh", "zh/")):
        said = words(language)
        page = html.unescape(made[f"{start}index.html"])
        rows = re.findall(r'<td class="num rank">(.*?)</td>(.*?)</tr>', page, re.S)
        shown = {re.search(r"/entries/([\w-]+)/", rest)[1]: (rank, rest) for rank, rest in rows}
        assert shown.keys() == wanted.keys()
        for entry, (rank, why) in wanted.items():
            assert shown[entry][0] == ("–" if rank is None else str(rank))
            own = html.unescape(made[f"{start}entries/{entry}/index.html"])
            if why is not None and entry != BASELINE:
                assert said.reason(why) in shown[entry][1] and said.reason(why) in own
                assert language == "en" or said.reason(why) != why


def test_rounds_that_the_arena_missed_count_against_nobody(store, tell):
    steady = Moody(lambda day: False)
    agents = seated(steady=steady, fails=Moody(lambda day: day % 3 == 0), leaves=steady)
    season = season_of(("steady", "fails", "leaves"))
    feed, db = SnapshotFeed.open(season), str(store.engine.url.database)
    play(store, season, feed, "2022-05-17", agents=agents)
    play(
        store, season, feed, "2022-05-31", agents=agents, clock=Late()
    )  # nobody is asked for two weeks
    told_before = told(board_of(db))
    amend(
        store,
        read_season(store, "small"),
        AmendmentRequest(change="withdraw", what="leaves", now="2022-06-01T00:00:00Z"),
    )
    play(store, read_season(store, "small"), feed, LAST, agents=agents)
    made = pages(store)
    assert told_before["steady"][0] is not None and told_before["leaves"][0] is not None
    board = board_of(db)
    found = told(board)
    assert found["steady"][0] == 1
    assert found["fails"][1] == f"35% {OWN}, {NO}"  # 9 of the 26 rounds in which it was asked
    assert found["leaves"][1].startswith(
        "withdrawn on "
    )  # who was withdrawn is silent by its own account
    missed = "the arena itself missed 14 of 40 rounds, which count against nobody"
    assert (board.unasked, board.note) == (14, missed)
    assert [row.missed for row in board.rows if row.entry == "steady"] == [14]
    assert json.loads(made["standings.json"])["unasked"] == 14
    assert json.loads(tell(["arena", "standings", "--db", db, "--json"])[0])["unasked"] == 14
    assert missed in tell(["arena", "standings", "--db", db])[1]
    for page in ("index.html", "entries/steady/index.html"):
        # A caption begins it with a capital.
        assert missed[1:] in made[page] and words("zh").reason(missed) in made[f"zh/{page}"]


def test_who_was_never_asked_has_no_rank_and_is_not_blamed(store):
    season = make_season(title="Away")
    play(store, season, SnapshotFeed.open(season), "2022-05-20", clock=Late())
    found = told(board_of(str(store.engine.url.database)))
    why = "the arena asked nobody in its rounds, so it has no rank"
    assert len(found) > 3 and all(said == (None, why) for said in found.values())
    assert words("zh").reason(why) != why
