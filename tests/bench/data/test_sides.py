"""The files beside the bars."""

from pathlib import Path

import msgspec
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.time import parse_iso
from tradeassay_bench.core.view import Board
from tradeassay_bench.data import import_files
from tradeassay_bench.data.doctor import DROPS
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import Imported, read_files

FIGURES = "symbol,field,period_end,known_at,value\n"
DAYS = ["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"]
BARS = "symbol,date,open,high,low,close,volume,amount\n" + "".join(
    f"{symbol},{day},10,11,9,10,100,1000\n" for symbol in ("600000.SH", "000001.SZ") for day in DAYS
)


def load(folder: Path, **files: str) -> Imported:
    (folder / "panel.csv").write_text(BARS)
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content)
    return read_files(FilesConfig(path=str(folder)))


def test_actions_as_kind_and_value_or_as_two_columns(tmp_path):
    text = "symbol,kind,ex_date,value\nSH600000,split,2024-01-04,2\n600000.XSHG,dividend,20240105,0.5\n"
    text += "ZZZ,split,20240105,2\n"
    imported = load(tmp_path, actions=text)
    assert [(a.symbol, a.kind, a.ex_date, a.value) for a in imported.panel.actions] == [
        ("600000.SH", "split", "2024-01-04", 2.0),
        ("600000.SH", "dividend", "2024-01-05", 0.5),
    ]
    assert imported.panel.actions[0].known_at == parse_iso("2024-01-04T00:30:00Z"), (
        "an hour before the open"
    )
    assert "unknown symbol or day: 1 row of actions.csv, e.g. actions.csv:4: ZZZ" in str(
        imported.report
    )
    both = load(
        tmp_path, actions="code,date,split,dividend\n600000,20240104,2,\n600000,20240105,1,0.5\n"
    )
    assert [(a.kind, a.value) for a in both.panel.actions] == [("split", 2.0), ("dividend", 0.5)]


def test_an_announcement_may_come_earlier_but_never_after_the_ex_date(tmp_path):
    text = "symbol,kind,ex_date,value,known_at\n600000,split,2024-01-04,2,{}\n"
    early = load(tmp_path, actions=text.format("2024-01-02T08:00:00Z")).panel.actions[0]
    assert early.known_at == parse_iso("2024-01-02T08:00:00Z")
    late = load(tmp_path, actions=text.format("2024-01-09T08:00:00Z"))
    assert late.panel.actions[0].known_at == parse_iso("2024-01-04T00:30:00Z")
    assert "late action: 1 row of actions.csv, e.g. actions.csv:2: 600000.SH is announced" in str(
        late.report
    )


def test_news(tmp_path):
    text = (
        "published_at,title,symbols,text,site\n"
        "2024-01-03T02:00:00Z,First,600000.SH;000001.SZ,body,wire\n"
        "2024-01-03,Dated only,600000,,\n"
        "2024-01-03T02:00:00Z,First,600000.SH;000001.SZ,body,wire\n"
    )
    imported = load(tmp_path, news=text)
    first, second = imported.panel.news
    assert (first.title, first.body, first.source) == ("First", "body", "wire")
    assert first.symbols == ("600000.SH", "000001.SZ")
    assert second.published_at == parse_iso("2024-01-04T00:00:00Z"), (
        "a bare date counts from its end"
    )
    assert "repeated" in str(imported.report)


def test_memberships_instruments_levels_and_figures(tmp_path):
    panel = load(
        tmp_path,
        membership="index,symbol,start,end\nCSI300,sz000001,2024-01-02,2024-01-03\nCSI300,600000,20240101,\n",
        instruments="symbol,name,sector,board,listed,delisted,lot\n600000,Bank,finance,star,1999-11-10,,200\n",
        indices="date,index,close\n2024-01-02,CSI300,3400\n2024-01-04,CSI300,3410\n2024-02-04,CSI300,3410\n",
        fundamentals=FIGURES
        + "600000,eps,2023-12-31,2024-01-04,1.25\n600000,pe,2023-12-31,2024-01-04,\n",
    ).panel
    assert [(m.index, m.symbol, m.start, m.end) for m in panel.memberships] == [
        ("CSI300", "000001.SZ", "2024-01-02", "2024-01-03"),
        ("CSI300", "600000.SH", "2024-01-01", None),
    ]
    assert not any("membership" in bias for bias in panel.facts.biases)
    known = next(entry for entry in panel.listings if entry.instrument.symbol == "600000.SH")
    told = {"name": "Bank", "sector": "finance", "board": Board.STAR, "lot": 200, "currency": "CNY"}
    assert {name: getattr(known.instrument, name) for name in told} == told
    assert known.listed == "1999-11-10"
    assert panel.indices["CSI300"][[0, 2]].tolist() == [3400, 3410]
    (figure,) = panel.fundamentals
    assert (figure.field, figure.value, figure.known_at) == (
        "eps",
        1.25,
        parse_iso("2024-01-05T00:00:00Z"),
    )


def test_side_files_may_lie_elsewhere(tmp_path):
    (tmp_path / "bars").mkdir()
    (tmp_path / "side").mkdir()
    (tmp_path / "bars" / "panel.csv").write_text(BARS)
    (tmp_path / "side" / "membership.csv").write_text("index,symbol,start\nX,600000,2024-01-02\n")
    config = FilesConfig(path=str(tmp_path / "bars"), beside=str(tmp_path / "side"))
    assert len(read_files(config).panel.memberships) == 1
    (tmp_path / "side" / "membership.csv").rename(tmp_path / "side" / "other.csv")
    with pytest.raises(UserError, match="has no side file"):
        read_files(config)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "actions",
            "symbol,kind,ex_date,value\n600000,merger,2024-01-04,2\n",
            "actions.csv:2: expected split or dividend, got kind 'merger'",
        ),
        (
            "actions",
            "symbol,kind,ex_date,value\n600000,split,soon,2\n",
            "actions.csv:2: ex_date 'soon'",
        ),
        ("actions", "symbol,ex_date\n600000,2024-01-04\n", "no column value, split or dividend"),
        ("membership", "symbol,end\n600000,2024-01-04\n", "membership.csv: no column start"),
        (
            "fundamentals",
            "symbol,field,period_end,value\n600000,eps,2023-12-31,1\n",
            "no column known_at among",
        ),
        (
            "news",
            "published_at,title\n2024-01-03 10:00:00,x\n",
            "news.csv:2: published_at has a time but no zone",
        ),
        ("instruments", "symbol,board\n600000,roof\n", "instruments.csv:2: board 'roof'"),
        ("news", "published_at,title\n2024-01-03\n", "news.csv:2: 1 columns instead of 2"),
    ],
)
def test_wrong_side_files_name_file_line_and_column(tmp_path, name, text, problem):
    with pytest.raises(UserError) as caught:
        load(tmp_path, **{name: text})
    assert problem in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "check", "row"),
    [
        ("actions", "symbol,kind,ex_date,value\n600000,split,2024-01-04,two\n", "bad action", 2),
        (
            "actions",
            "symbol,ex_date,dividend\n600000,2024-01-04,0\n600000,2024-01-05,-0.5\n",
            "bad action",
            3,
        ),
        ("actions", "symbol,ex_date,dividend\n600000,2024-01-04,nan\n", "bad action", 2),
        *(
            ("actions", f"symbol,ex_date,split\n600000,2024-01-04,{value}\n", "bad action", 2)
            for value in ("0", "-2", "inf", "1e-300")
        ),
        (
            "actions",
            "symbol,ex_date,split,known_at\n600000,2024-01-04,2,soon\n",
            "undated record",
            2,
        ),
        ("news", "published_at,title\nlately,x\n", "undated record", 2),
        ("news", "published_at,title\n2024-01-03,x\n,y\n", "undated record", 3),
        ("fundamentals", FIGURES + "600000,eps,2023-12-31,2024-01-04,x\n", "bad figure", 2),
        ("fundamentals", FIGURES + "600000,eps,2023-12-31,2024-01-04,inf\n", "bad figure", 2),
        (
            "fundamentals",
            FIGURES + "600000,a,2023-12-31,2024-01-04,1\n600000,b,2023-12-31,,1\n",
            "undated record",
            3,
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_an_error_of_its_line(tmp_path, name, text, check, row):
    imported = load(tmp_path, **{name: text})
    (fault,) = (fault for fault in imported.faults if fault.severity == "error")
    assert (fault.check, fault.file, fault.row) == (check, f"{name}.csv", row)
    assert f"{check}: 1 row of {name}.csv, e.g. {name}.csv:{row}: " in str(imported.report)


def test_errors_refuse_the_import_until_they_are_dropped_by_name(tmp_path):
    load(
        tmp_path,
        actions="symbol,ex_date,split\n600000,2024-01-04,0\n",
        news="published_at,title\nlately,x\n",
        fundamentals=FIGURES + "600000,eps,2023-12-31,2024-01-04,x\n",
    )
    config = FilesConfig(path=str(tmp_path), name="mine")
    for word, check in DROPS.items():
        with pytest.raises(DataRefused, match=f"1 {check}"):
            rest = tuple(other for other in DROPS if other != word)
            import_files(msgspec.structs.replace(config, drop=rest), home=tmp_path / "home")
    kept = import_files(
        msgspec.structs.replace(config, drop=tuple(DROPS)), home=tmp_path / "home"
    ).manifest
    assert kept.faults.counts == dict.fromkeys(DROPS.values(), 1)
    (said,) = (bias for bias in kept.facts.biases if bias.startswith("data faults accepted"))
    assert all(f"1 {check}" in said for check in DROPS.values())
    with pytest.raises(UserError, match="one of bad-actions, undated, bad-figures"):
        import_files(FilesConfig(path=str(tmp_path), drop=("everything",)), home=tmp_path / "home")


def test_what_says_that_nothing_happens_is_counted(tmp_path):
    text = (
        "symbol,ex_date,split,dividend,known_at\n600000,2024-01-04,1,0,\n600000,2024-01-05,,0.5,\n"
    )
    imported = load(tmp_path, actions=text)
    assert [action.value for action in imported.panel.actions] == [0.5]
    assert "2 entries of actions.csv have no effect" in str(imported.report)
    assert "2 rows of actions.csv have no known_at" in str(imported.report)
