"""Eastmoney's quote and data services in their wire formats, over numbers of our own."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .http import Ask, Reply

BONUS_COLUMNS = tuple(
    (
        "SECUCODE SECURITY_NAME_ABBR SECURITY_CODE SECURITY_INNER_CODE TRADE_MARKET BONUS_IT_RATIO "
        "BONUS_RATIO IT_RATIO PRETAX_BONUS_RMB PUBLISH_DATE EQUITY_RECORD_DATE EX_DIVIDEND_DATE REPORT_DATE "
        "ASSIGN_PROGRESS IMPL_PLAN_PROFILE NOTICE_DATE ORG_CODE MARKET MARKET_TYPE BASIC_EPS BVPS "
        "PER_CAPITAL_RESERVE PER_UNASSIGN_PROFIT PNP_YOY_RATIO TOTAL_SHARES PLAN_NOTICE_DATE DIVIDENT_RATIO "
        "EX_DIVIDEND_DAYS D10_CLOSE_ADJCHRATE BD10_CLOSE_ADJCHRATE"
    ).split()
)


@dataclass
class Share:
    """Bars as traded: day -> (open, high, low, close, volume in shares, amount).

    ``dividends``: ex-date -> (cash, new shares), each per *ten* old shares; an empty ex-date is a plan.
    """

    bars: dict[str, tuple[float, float, float, float, float, float]]
    dividends: dict[str, tuple[float, float]] = field(default_factory=dict)
    references: dict[str, float] = field(default_factory=dict)
    listed: int | str = 19991110
    industry: str = "银行"
    lot: float = 100.0

    def klines(self, begin: str, end: str) -> list[str]:
        lines, before = [], None
        for day in sorted(self.bars):
            o, h, low, c, volume, amount = self.bars[day]
            reference = self.references.get(day, o if before is None else before)
            before = c
            if begin <= day.replace("-", "") <= end:
                lines.append(
                    f"{day},{o:.2f},{c:.2f},{h:.2f},{low:.2f},{volume / self.lot:.0f},{amount:.2f},"
                    f"0.00,0.00,{c - reference:.2f},0.10"
                )
        return lines


@dataclass
class Eastmoney:
    """The services, by six-digit code. ``before`` may answer in their place, ``edit`` change an answer."""

    shares: dict[str, Share]
    before: Callable[[Ask], Reply | None] = lambda ask: None
    edit: Callable[[str, dict], dict] = lambda path, answer: answer

    def __call__(self, ask: Ask) -> Reply:
        early = self.before(ask)
        if early is not None:
            return early
        if ask.path == "/api/qt/stock/kline/get":
            answer = self.kline(ask)
        elif ask.path == "/api/qt/stock/get":
            answer = self.info(ask)
        elif ask.path == "/api/data/v1/get":
            answer = self.bonus(ask)
        else:
            return Reply(b"", 404)
        return Reply.of(self.edit(ask.path, answer))

    def kline(self, ask: Ask) -> dict:
        assert ask.query["klt"] == "101" and ask.query["fqt"] == "0"
        market, code = ask.query["secid"].split(".")
        share = self.shares.get(code)
        if share is None:
            return {"rc": 100, "rt": 17, "svr": 0, "lt": 1, "full": 0, "data": None}
        lines = share.klines(ask.query["beg"], ask.query["end"])
        data = {"code": code, "market": int(market), "name": "name", "decimal": 2, "dktotal": 9, "klines": lines}
        return {"rc": 0, "rt": 17, "svr": 0, "lt": 1, "full": 0, "data": data}

    def info(self, ask: Ask) -> dict:
        code = ask.query["secid"].split(".")[1]
        share = self.shares[code]
        data = {
            "f43": 10.0,
            "f57": code,
            "f58": "name",
            "f84": 1e9,
            "f85": 1e9,
            "f116": 1e10,
            "f117": 1e10,
            "f127": share.industry,
            "f189": share.listed,
        }
        return {"rc": 0, "rt": 4, "svr": 0, "lt": 1, "full": 1, "data": data}

    def bonus(self, ask: Ask) -> dict:
        assert ask.query["reportName"] == "RPT_SHAREBONUS_DET"
        match = re.search(r'SECURITY_CODE="(\d{6})"', ask.query["filter"])
        assert match
        dividends = self.shares[match[1]].dividends
        if not dividends:
            return {"version": None, "result": None, "success": False, "message": "返回数据为空", "code": 9201}
        rows = []
        for number, (day, (cash, shares)) in enumerate(dividends.items()):
            row = dict.fromkeys(BONUS_COLUMNS)
            row |= {"SECURITY_CODE": match[1], "REPORT_DATE": f"20{10 + number}-12-31 00:00:00"}
            row |= {"BONUS_IT_RATIO": shares or None, "PRETAX_BONUS_RMB": cash or None}
            row |= {"EX_DIVIDEND_DATE": f"{day} 00:00:00" if day else None}
            row |= {"ASSIGN_PROGRESS": "实施分配" if day else "董事会决议通过"}
            rows.append(row)
        result = {"pages": 1, "data": rows, "count": len(rows)}
        return {"version": "1", "result": result, "success": True, "message": "ok", "code": 0}
