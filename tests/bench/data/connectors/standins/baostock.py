"""baostock's own protocol on a loopback socket, over numbers of our own.

A message is ``version \\1 type \\1 length(10)``, a body of fields joined by ``\\1``, then ``\\1``
and a checksum. Requests end with a newline, answers with ``<![CDATA[]]>`` and a newline; bars
travel compressed.
"""

import json
import socketserver
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from .http import Serving

SPLIT = "\1"
END = b"<![CDATA[]]>\n"
PAGE = 2000

DIVIDEND_FIELDS = tuple(
    (
        "code dividPreNoticeDate dividAgmPumDate dividPlanAnnounceDate dividPlanDate "
        "dividRegistDate "
        "dividOperateDate dividPayDate dividStockMarketDate dividCashPsBeforeTax "
        "dividCashPsAfterTax "
        "dividStocksPs dividCashStock dividReserveToStockPs"
    ).split()
)


@dataclass
class Share:
    """Bars as traded: day -> (open, high, low, close, volume, amount), None on a day of suspension.

    ``dividends``: ex-date -> (cash, bonus shares, shares from reserves), each per old share.
    """

    bars: dict[str, tuple[float, float, float, float, float, float] | None]
    dividends: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    precloses: dict[str, float] = field(default_factory=dict)
    special: tuple[str, ...] = ()
    listed: str = "1999-11-10"
    delisted: str = ""
    industry: str = "J66货币金融服务"
    kind: str = "1"
    circulating: float = 1e9

    def rows(self, begin: str, end: str, wanted: list[str]) -> list[list[str]]:
        found, before = [], 10.0
        for day in sorted(self.bars):
            bar, before = self.bars[day], self.precloses.get(day, before)
            o, h, low, c, v, a = bar if bar else (before, before, before, before, 0.0, 0.0)
            values = {
                "date": day,
                "open": f"{o:.4f}",
                "high": f"{h:.4f}",
                "low": f"{low:.4f}",
                "close": f"{c:.4f}",
                "preclose": f"{before:.4f}",
                "volume": f"{v:.0f}" if bar else "",
                "amount": f"{a:.4f}" if bar else "",
                "turn": f"{100 * v / self.circulating:.6f}" if bar else "",
                "tradestatus": "1" if bar else "0",
                "isST": "1" if day in self.special else "0",
            }
            if begin <= day <= end:
                found.append([values[name] for name in wanted])
            before = c
        return found


Mishap = bytes | Literal["stall", "hang up", "half"] | tuple[str, str]
"""Instead of an answer: raw bytes, nothing, a closed connection, half the answer, or an error
(code, message).
"""


@dataclass
class Baostock:
    """The service; keys are its codes (``sh.600000``).

    ``before`` may put a mishap in the answer's place.
    """

    shares: dict[str, Share]
    levels: dict[str, Share] = field(default_factory=dict)
    members: Callable[[str, str], list[str]] = lambda index, day: []
    before: Callable[[str, list[str]], Mishap | None] = lambda method, args: None
    rename: dict[str, str] = field(default_factory=dict)

    def reply(self, method: str, args: list[str]) -> tuple[list[list[str]], list[str], list[str]]:
        """Return rows, the arguments echoed after them, and the names of the fields."""
        if method == "query_history_k_data_plus":
            code, fields, start, end, *_ = args
            share = (self.shares | self.levels).get(code)
            wanted = fields.split(",")
            return share.rows(start, end, wanted) if share else [], [code], wanted
        if method == "query_stock_basic":
            chosen = {code: s for code, s in self.shares.items() if args[0] in ("", code)}
            rows = [
                [code, "name", s.listed, s.delisted, s.kind, "0" if s.delisted else "1"]
                for code, s in chosen.items()
            ]
            return rows, args, ["code", "code_name", "ipoDate", "outDate", "type", "status"]
        if method == "query_stock_industry":
            chosen = {
                c: s for c, s in self.shares.items() if args[0] in ("", c) and s.listed <= args[1]
            }
            rows = [
                [args[1], code, "name", s.industry, "证监会行业分类"] for code, s in chosen.items()
            ]
            return (
                rows,
                args,
                ["updateDate", "code", "code_name", "industry", "industryClassification"],
            )
        if method == "query_dividend_data":
            code, year, kind = args
            assert kind == "operate"
            rows = []
            for day, (cash, bonus, reserve) in self.shares[code].dividends.items():
                if day.startswith(year):
                    row = dict.fromkeys(DIVIDEND_FIELDS, "")
                    row |= {
                        "code": code,
                        "dividOperateDate": day,
                        "dividCashPsBeforeTax": f"{cash:g}",
                    }
                    row |= {
                        "dividStocksPs": f"{bonus:f}",
                        "dividReserveToStockPs": f"{reserve:f}" if reserve else "",
                    }
                    rows.append([row[name] for name in DIVIDEND_FIELDS])
            return rows, args, list(DIVIDEND_FIELDS)
        index = method.removeprefix("query_").removesuffix("_stocks")
        rows = [[args[0], code, "name"] for code in self.members(index, args[0])]
        return rows, args, ["updateDate", "code", "code_name"]


class BaostockStandIn(Serving):
    """Serves a :class:`Baostock`; ``asked`` holds (method, arguments) of every request."""

    def __init__(self, service: Baostock) -> None:
        self.service = service
        super().__init__(socketserver.ThreadingTCPServer, _Handler)


def message(kind: str, fields: list[str], *, compressed: bool = False) -> bytes:
    body = SPLIT.join(fields).encode()
    if compressed:
        body = zlib.compress(body + b"\n")
    head = f"00.9.40{SPLIT}{kind}{SPLIT}{len(body):010d}".encode()
    return head + body + SPLIT.encode() + str(zlib.crc32(head + body)).encode() + END


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        stand_in = self.server.stand_in
        for line in self.rfile:
            head, rest = line[:21].decode(), line[21:].decode().rstrip("\n")
            body, _, checksum = rest.rpartition(SPLIT)
            assert int(checksum) == zlib.crc32((head + body).encode())
            kind = head.split(SPLIT)[1]
            method, user, *args = body.split(SPLIT)
            stand_in.asked.append((method, args))
            mishap = stand_in.service.before(method, args)
            if mishap == "stall":
                stand_in.released.wait(20)
                return
            if mishap == "hang up":
                return
            if isinstance(mishap, bytes):
                self.wfile.write(mishap)
                continue
            answer_kind = f"{int(kind) + 1:02d}"
            if isinstance(mishap, tuple):
                answer = message(answer_kind, list(mishap), compressed=answer_kind == "96")
            elif method in ("login", "logout"):
                answer = message(answer_kind, ["0", "success", method, user, "20240201120000"])
            else:
                answer = self.page(answer_kind, method, user, args)
            if mishap == "half":
                self.wfile.write(answer[: len(answer) // 2])
                return
            self.wfile.write(answer)

    def page(self, kind: str, method: str, user: str, args: list[str]) -> bytes:
        page, size, *rest = args
        service = self.server.stand_in.service
        rows, echoed, fields = service.reply(method, rest)
        fields = [service.rename.get(name, name) for name in fields]
        begin = (int(page) - 1) * int(size)
        data = json.dumps({"record": rows[begin : begin + int(size)]}, ensure_ascii=False)
        parts = ["0", "success", method, user, page, size, data, *echoed, ", ".join(fields)]
        if method == "query_history_k_data_plus":
            parts += rest[2:]
        return message(kind, parts, compressed=kind == "96")
