"""Provide ``assay``, the call that judges an account, and the assay object that it returns."""

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

Judge = Callable[[VerdictConfig, Sequence[str], object], Assay]
"""Judges one recorded run: all of its agents, or those that are named.

The last argument is the ``mask_price`` of :func:`assay`.
"""

run_judges: Registry[Callable[[object], Judge | None]] = Registry("run_judge")
"""Function that finds the judge of a recorded run by folder or name. Returns None for a table."""


class ShownAssay(Assay, frozen=True, kw_only=True):
    """An assay that can be displayed in a notebook, on a terminal, as a page or as a table."""

    def __repr__(self) -> str:
        """Return one line with the title and the number of judged accounts."""
        return f"<ShownAssay {self.title!r}: {len(self.agents)} judged>"

    @property
    def verdict(self) -> Verdict:
        """Return the verdict if one account was judged.

        Raises :class:`UserError` if several accounts were judged.
        """
        if len(self.agents) != 1:
            names = ", ".join(dict.fromkeys(one.agent for one in self.agents))
            raise UserError(
                "several accounts were judged", hint=f"choose one with .agent(NAME): {names}"
            )
        return self.agents[0].verdict

    def frame(self, kind: FrameKind = "pandas") -> Any:
        """Return a data frame with one row per account.

        The columns are the kind of verdict, the sentence, the return, the parts of the return and
        the annual alpha. Alpha has its interval at the level of the assay. ``kind`` may be
        "polars".

        For a table of returns, the part beyond market and style is called *unexplained*. For
        holdings it is called *selection*.
        """
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
        """Print the verdicts to the terminal."""
        from tradeassay.report.verdicts import print_verdicts

        print_verdicts(self)

    def _repr_html_(self) -> str:
        from tradeassay.report.notebook import assay_piece

        return assay_piece(self)


_FRAMED = ("return", "market", "style", "selection", "unexplained", "trading", "alpha")
"""Columns of a frame. Each column has the value of the statement with the same name."""


class AssayFields(TypedDict, total=False):
    """Keywords that say how to read and judge a user's own account.

    See :class:`~tradeassay.verdict.OwnAccount`. For ``dividends`` and ``interest`` see
    :class:`~tradeassay.verdict.VerdictConfig`.
    """

    dividends: Share
    interest: Share
    cash: object
    factors: object
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
    mask_price: object = None,
    **own: Unpack[AssayFields],
) -> ShownAssay:
    """Judge a track record: how much of it is skill, luck, market, style, look-ahead or memory.

    ``what`` is one of:

    - a recorded run: its folder, its name or a ``Run``;
    - a table of returns, prices or account values: a pandas or polars table, or a CSV or Parquet
      file;
    - a log of trades.

    Options for a run:

    - ``agents`` selects agents by name. The default is all.
    - ``mask_price`` is another run, or several runs, of the same models with the same masks on a
      synthetic world. The gap between masked and unmasked play there is lost information, and is
      subtracted from the gap of this run.

    Options for a table:

    - ``benchmark``: the market's returns or prices as a table, a file, the name of a column, or the
      name of a known series (``sp500``, ``nasdaq`` or ``us-market``, which end in 2018).
    - ``reading``: the unit, the format of dates and the column, if the table leaves them open
      (:class:`TableReading` or a dict).
    - ``cash``: the returns of cash as a table or a file, or ``none`` if the returns are in excess
      of cash.
    - ``factors``: the returns of style factors, one per column, as a table or a file, or
      ``french``. The column ``RF`` is cash and ``Mkt-RF`` the market.
    - ``dividends`` and ``interest``: the highest annual rates that the benchmark's returns may
      leave out and that cash may have earned.
    - ``weights``: a file of the holdings. ``between`` is the holding of sessions without a row:
      ``cash``, or ``hold`` for no change.
    - ``dataset`` and ``universe``: the prices that measure style and selection.
    - ``suite``, ``names`` and ``turnover``: the rules, number of names and trades of the random
      portfolios.
    - ``prices``, ``cash_at_start``, ``until`` and ``symbol``: the missing facts of a log of trades
      (:class:`OwnAccount`).
    - ``title``: the name of the account.

    ``tries`` is the number of strategies that were tried to find this one. The default assumes 20.
    ``portfolios`` is the number of random portfolios. Set ``watched`` if the result is judged
    repeatedly while it grows.

    Returns an assay with ``.verdict.sentence``, ``.show()``, ``.report(path)`` and ``.frame()``.
    Raises :class:`UserError` if the input cannot be judged.
    """
    asked = {"tries": tries, "portfolios": portfolios, "watched": watched}
    config = VerdictConfig(**_typed_fields(asked, VerdictConfig))
    check_keys(own, [*inspect.signature(assay).parameters], "an assay", "keyword")
    keywords = _typed_fields(own, AssayFields)
    made = _assay_of_run(what, config, agents, mask_price, {**keywords, "benchmark": benchmark})
    if made is None:
        if mask_price is not None:
            raise UserError(
                "'mask_price' is valid only with a run, not with a table", hint="leave it out"
            )
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
    what: object,
    config: VerdictConfig,
    agents: Sequence[str],
    mask_price: object,
    own: Mapping[str, object],
) -> Assay | None:
    """Return the assay of a recorded run, or None if ``what`` is a table.

    Raises :class:`UserError` if a keyword for tables is used with a run, or if no installed package
    can read runs.
    """
    if isinstance(what, str | Path) and Path(what).is_file():
        return None
    for _, judge_run in run_judges.items():
        judge = judge_run(what)
        if judge is not None:
            unused = [name for name, value in own.items() if value is not None]
            if unused:
                raise UserError(
                    f"'{unused[0]}' is valid only with a table, not with a run", hint="leave it out"
                )
            return judge(config, several_names("agents", agents), mask_price)
    if isinstance(what, str | Path) and not run_judges.names():
        raise UserError(
            f"no table '{what}'",
            hint="give a file; runs are read with pip install 'tradeassay[bench]'",
        )
    return None


def _spelled_out() -> inspect.Signature:
    """Return the signature of :func:`assay` with all keywords, for ``help`` and notebooks."""
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
    """Return keywords converted as in :func:`typed`.

    Date and path objects are accepted unchanged.
    """
    texts = {
        name: str(value) if isinstance(value, date | Path) else value
        for name, value in given.items()
    }
    return typed(texts, described)


def several_names(what: str, given: object) -> list[str]:
    """Return one name or several names as a list. None gives an empty list."""
    if given is None or isinstance(given, str):
        return [] if given is None else [given]
    listed: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    for one in listed:
        if not isinstance(one, str):
            raise UserError(
                f"{one!r:.60} in {what} is not a name", hint="give a name, or a list of names"
            )
    return listed
