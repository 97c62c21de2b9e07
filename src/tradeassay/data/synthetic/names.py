"""Made-up companies, coins, codes and sectors.

Codes keep the shape that a market's codes have, in ranges no exchange gives out: four letters ending in a pair
such as ``QX`` or ``ZQ``; six digits whose prefix lies beside the ones in use on the board.
"""

from __future__ import annotations

from tradeassay.core.instruments import Board
from tradeassay.data.synthetic.config import Market
from tradeassay.data.synthetic.draws import Draws

_FIRST = ("Ab", "Bel", "Cor", "Dun", "El", "Far", "Gal", "Hol", "Ir", "Jun", "Kel", "Lom", "Mor", "Nel", "Or",
          "Pel", "Quil", "Ros", "Sel", "Tor", "Ul", "Ver", "Wen", "Xan", "Yor", "Zel")  # fmt: skip
_MIDDLE = ("va", "di", "mo", "ru", "shi", "ko", "le", "ny", "po", "zu", "fe", "gra", "thi", "bo", "quo")
_LAST = (
    "dyne",
    "rix",
    "vund",
    "moth",
    "quist",
    "zell",
    "bask",
    "torn",
    "phel",
    "wick",
    "lume",
    "grove",
    "zar",
    "nox",
)
_SECTORS: dict[Market, tuple[tuple[str, str], ...]] = {
    "us": (
        ("Technology", "Systems"), ("Health", "Therapeutics"), ("Financials", "Bancorp"), ("Industry", "Machines"),
        ("Consumer", "Brands"), ("Staples", "Foods"), ("Energy", "Petroleum"), ("Utilities", "Power"),
        ("Materials", "Chemicals"), ("Property", "Estates"),
    ),
    "ashare": (
        ("Technology", "Electronics"), ("Health", "Pharma"), ("Financials", "Securities"),
        ("Industry", "Equipment"), ("Consumer", "Appliances"), ("Staples", "Liquor"), ("Energy", "Coal"),
        ("Utilities", "Hydropower"), ("Materials", "New Materials"), ("Property", "Land"),
    ),
    "crypto": (("Settlement", "Coin"), ("Platform", "Network"), ("Finance", "Swap"), ("Storage", "Vault")),
    "futures": (("Basket", "Component"),),
}  # fmt: skip
_ENDINGS = ("QX", "ZQ", "XQ", "QZ", "JQ", "QJ", "QK", "VQ", "XJ", "JX")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PREFIXES: dict[Board, tuple[str, ...]] = {
    Board.MAIN: ("609", "009"),
    Board.CHINEXT: ("309",),
    Board.STAR: ("6895",),
    Board.BSE: ("929",),
}


def sectors(market: Market) -> tuple[str, ...]:
    """Return a market's sectors."""
    return tuple(sector for sector, _ in _SECTORS[market])


def make_names(draws: Draws, market: Market, sector: list[int]) -> list[str]:
    """Return one name per entry of ``sector``, all different."""
    taken: set[str] = set()
    stems: list[str] = []
    while len(stems) < len(sector):
        a, b, c = (int(draws.below(len(words), 1)[0]) for words in (_FIRST, _MIDDLE, _LAST))
        stem = f"{_FIRST[a]}{_MIDDLE[b]}{_LAST[c]}"
        if stem not in taken:
            taken.add(stem)
            stems.append(stem)
    return [f"{stem} {_SECTORS[market][g][1]}" for stem, g in zip(stems, sector, strict=True)]


def make_symbols(draws: Draws, market: Market, names: list[str], boards: list[Board]) -> list[str]:
    """Return one code per name, all different."""
    taken: set[str] = set()
    symbols: list[str] = []
    for name, board in zip(names, boards, strict=True):
        symbol = ""
        while not symbol or symbol in taken:
            symbol = _digits(draws, board) if market == "ashare" else _word(draws, name)
        taken.add(symbol)
        symbols.append(symbol)
    return symbols


def _digits(draws: Draws, board: Board) -> str:
    prefixes = _PREFIXES[board]
    prefix = prefixes[int(draws.below(len(prefixes), 1)[0])]
    rest = 6 - len(prefix)
    return f"{prefix}{draws.integer(1, 10**rest - 1):0{rest}d}"


def _word(draws: Draws, name: str) -> str:
    second = _LETTERS[int(draws.below(26, 1)[0])]
    return name[0].upper() + second + _ENDINGS[int(draws.below(len(_ENDINGS), 1)[0])]
