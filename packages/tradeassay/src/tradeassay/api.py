"""``assay``, the call that judges an account, and what it returns: a verdict that can show itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

import msgspec

from tradeassay.core.arguments import check_keys, instance_of, path_from, typed
from tradeassay.core.errors import UserError
from tradeassay.core.frames import Kind as FrameKind, make_frame
from tradeassay.core.registry import Registry
from tradeassay.tables.account import TableReading
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.own_returns import assay_own
from tradeassay.verdict.record import Assay, Share, Verdict, VerdictConfig

Judge = Callable[[VerdictConfig, Sequence[str]], Assay]
"""Judges one recorded run: all of its agents, or those that are named."""

run_judges: Registry[Callable[[object], Judge | None]] = Registry("run_judge")
"""Return what judges a recorded run, its folder or its name; None where they are given a table."""


class ShownAssay(Assay, frozen=True, kw_only=True):
    """An assay that can show itself: in a notebook, on a terminal, as a page, as a table."""

    def __repr__(self) -> str:
        """Return one line: what was judged, and how many accounts."""
        return f"<ShownAssay {self.title!r}: {len(self.agents)} judged>"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the one account that was judged; raises :class:`UserError` where there are several."""
        if len(self.agents) != 1:
            names = ", ".join(dict.fromkeys(one.agent for one in self.agents))
            raise UserError(
                "several accounts were judged", hint=f"choose one with .agent(NAME): {names}"
            )
        return self.agents[0].verdict

    def frame(self, kind: FrameKind = "pandas") -> Any:
        """Return one row per account: kind of verdict, sentence, return, its parts, and the yearly alpha with its
        interval at the level of the assay, as they are stated. ``kind`` may be polars.

        Of returns alone the part beyond market and style is *unexplained*, of holdings it is *selection*."""
        rows: list[tuple[object, ...]] = []
        for one in self.agents:
            verdict = one.verdict
            alpha = one.statement("alpha")
            row: list[object] = [
                one.setting,
                one.agent,
                verdict.kind,
                verdict.firm,
                verdict.sentence,
            ]
            for quantity in _FRAMED:
                statement = one.statement(quantity)
                row.append(None if statement is None else statement.value)
            row += [None, None] if alpha is None else [alpha.low, alpha.high]
            rows.append(tuple(row))
        schema = dict.fromkeys(("setting", "agent", "verdict"), "str")
        schema |= {"firm": "bool", "sentence": "str"}
        schema |= dict.fromkeys((*_FRAMED, "alpha_low", "alpha_high"), "float")
        return make_frame(kind, schema, rows)

    def report(self, path: Path | str) -> Path:
        """Write the self-contained HTML page and return its path."""
        from tradeassay.report.page import write_assay

        return write_assay(self, path_from("path", path))

    def show(self) -> None:
        """Print the verdicts."""
        from tradeassay.report.verdicts import print_verdicts

        print_verdicts(self)

    def _repr_html_(self) -> str:
        from tradeassay.report.notebook import assay_piece

        return assay_piece(self)


_FRAMED = ("return", "market", "style", "selection", "unexplained", "trading", "alpha")
"""Quantities of a frame, each the value of the statement of that name."""


class AssayFields(TypedDict, total=False):
    """How an account's own table is read and judged; see :class:`~tradeassay.verdict.OwnAccount`, and for
    ``dividends`` and ``interest`` :class:`~tradeassay.verdict.VerdictConfig`."""

    dividends: Share
    interest: Share
    weights: str | None
    dataset: str | None
    universe: str
    between: Literal["cash", "hold"] | None
    suite: str | None
    names: int | None
    turnover: float | None
    title: str | None
    prices: str | None
    cash_at_start: float | None
    until: str | None
    symbol: str | None


def assay(
    what: Path | str | object,
    *,
    benchmark: object = None,
    reading: TableReading | Mapping[str, str] | None = None,
    tries: int | None = None,
    portfolios: int = 10_000,
    agents: Sequence[str] = (),
    watched: bool = False,
    **own: Unpack[AssayFields],
) -> ShownAssay:
    """Say what a result is made of: skill, luck, market, style, a leaked future, or memory.

    ``what`` is a recorded run, its folder or name, an account's own returns or value (a pandas or polars table, or
    a CSV or Parquet file), or a file with its trades. Of a run, ``agents`` chooses some.

    With a table go
    ``benchmark``: its market, as a table, a file, a column, or by name (``sp500``, ``nasdaq``, ``us-market``, until
    2018);
    ``reading``: what cannot be told from the table (:class:`TableReading`, or a dict of its unit, dates, column);
    ``weights``: a file of what was held; ``dataset``, ``universe``: prices of these names, which measure style;
    ``between``: what sessions without weights mean, ``cash`` or ``hold``;
    ``suite``, ``names``, ``turnover``: rules and trades of the random portfolios it is placed among;
    ``dividends``: the most that the market's returns leave out a year; ``interest``: the most that cash earned;
    ``prices``, ``cash_at_start``, ``until``, ``symbol``: for a log of trades (:class:`OwnAccount`);
    ``title``: what it is called.

    ``tries`` is how many strategies were tried to find this one (None: 20 are assumed),
    ``portfolios`` how many random ones are drawn, ``watched`` that it is looked
    at again and again while it grows. The answer has
    ``.verdict.sentence``, ``.show()``, ``.report(path)`` and ``.frame()``. Raises :class:`UserError` for what
    cannot be judged.
    """
    asked = {"tries": tries, "portfolios": portfolios, "watched": watched}
    config = VerdictConfig(**_typed_fields(asked, VerdictConfig))
    check_keys(own, [*inspect.signature(assay).parameters], "an assay", "keyword")
    keywords = _typed_fields(own, AssayFields)
    made = _assay_of_run(what, config, agents, {**keywords, "benchmark": benchmark})
    if made is None:
        table = str(what) if isinstance(what, Path) else what
        other = str(benchmark) if isinstance(benchmark, Path) else benchmark
        if not isinstance(reading, TableReading):
            described = instance_of(
                "reading", reading or {}, Mapping, "write e.g. reading={'unit': 'percent'}"
            )
            check_keys(described, [*TableReading.__annotations__], "a reading", "part")
            reading = TableReading(**_typed_fields(described, TableReading))
        left_out = {
            name: keywords.pop(name) for name in ("dividends", "interest") if name in keywords
        }
        config = msgspec.structs.replace(config, **left_out)
        made = assay_own(
            OwnAccount(returns=table, benchmark=other, reading=reading, **keywords), config
        )
    return ShownAssay(**{name: getattr(made, name) for name in made.__struct_fields__})


def _assay_of_run(
    what: object, config: VerdictConfig, agents: Sequence[str], own: Mapping[str, object]
) -> Assay | None:
    """Return the assay of a recorded run, or None where ``what`` is a table.

    Raises :class:`UserError` where a run is given keywords of a table, or where no package here reads runs."""
    if isinstance(what, str | Path) and Path(what).is_file():
        return None
    for _, judge_run in run_judges.items():
        judge = judge_run(what)
        if judge is not None:
            unused = [name for name, value in own.items() if value is not None]
            if unused:
                raise UserError(
                    f"'{unused[0]}' goes with a table, not with a run", hint="leave it out"
                )
            return judge(config, several_names("agents", agents))
    if isinstance(what, str | Path) and not run_judges.names():
        raise UserError(
            f"no table '{what}'",
            hint="give a file; runs are read with pip install 'tradeassay[bench]'",
        )
    return None


def _spelled_out() -> inspect.Signature:
    """Return the signature of :func:`assay` with every keyword in its own place, for ``help`` and notebooks."""
    written = inspect.signature(assay)
    fields = (*msgspec.structs.fields(VerdictConfig), *msgspec.structs.fields(OwnAccount))
    usual = {field.name: field.default for field in fields}
    own = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=usual[name], annotation=kind
        )
        for name, kind in get_type_hints(AssayFields).items()
    ]
    given = [
        one for one in written.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    return written.replace(parameters=[*given, *own])


assay.__signature__ = _spelled_out()  # type: ignore[attr-defined]  # inspect reads it of any function


def _typed_fields(given: Mapping[str, Any], described: type) -> dict[str, Any]:
    """Return keywords as :func:`typed` does; days and paths may be given as such."""
    texts = {
        name: str(value) if isinstance(value, date | Path) else value
        for name, value in given.items()
    }
    return typed(texts, described)


def several_names(what: str, given: object) -> list[str]:
    """Return one name or several as a list; None is none."""
    if given is None or isinstance(given, str):
        return [] if given is None else [given]
    listed: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    for one in listed:
        if not isinstance(one, str):
            raise UserError(
                f"{one!r:.60} among the {what} is no name", hint="give a name, or a list of names"
            )
    return listed
