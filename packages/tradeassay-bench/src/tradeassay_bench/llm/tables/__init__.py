"""Read dated tables of providers' models: prices, knowledge cutoffs, kinds.

A user's files override the packaged tables: first ``models.toml`` in tradeassay's data folder, then
a file given by the caller.

The price of a model that is not in the table is unknown, never 0. Without a stated cutoff, no data
can be claimed to be unseen by a model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay.core.files import data_home

T = TypeVar("T")

Rate = Annotated[float, Meta(ge=0.0, le=1e9)]
"""A type: dollars per million tokens. The upper bound excludes infinity."""

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


def read_table(
    kind: type[T], section: str, packaged: str, override: Path | None, *, required: bool = False
) -> dict[str, T]:
    """Return a packaged table, overridden by the entries of :func:`own_file` and of ``override``.

    Raises :class:`UserError` if ``override`` is missing or lacks a ``required`` section, and if a
    file is not TOML or has invalid entries.
    """
    contents: list[tuple[object, Mapping[str, Any]]] = [(packaged, _packaged(packaged))]
    own = own_file()
    for path in ((own,) if own.is_file() else ()) + (() if override is None else (override,)):
        try:
            contents.append((path, tomllib.loads(path.read_text(encoding="utf-8"))))
        except OSError as error:
            raise UserError(
                f"cannot read {path}: {error.strerror}", hint="check the path"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            hint = "see the reference of model prices"
            raise UserError(f"{path} is not a TOML file: {error}", hint=hint) from error
    found: dict[str, T] = {}
    for source, content in contents:
        if required and source is override and section not in content:
            hint = f'write [{section}."provider/model"] (see the reference of model prices)'
            raise UserError(f"{source} has no table '{section}'", hint=hint)
        table = content.get(section, {})
        if not isinstance(table, dict):
            raise UserError(
                f"'{section}' in {source} is not a table",
                hint=f'write [{section}."provider/model"]',
            )
        for name, entry in table.items():
            try:
                found[name] = msgspec.convert(entry, kind)
            except msgspec.ValidationError as error:
                hint = "see the reference of model prices"
                raise UserError(f'{source}, {section}."{name}": {error}', hint=hint) from None
    return found


@cache
def _packaged(name: str) -> dict[str, Any]:
    """Return a packaged file. It is cached, because every opened model needs it."""
    return tomllib.loads(
        resources.files("tradeassay_bench.llm.tables").joinpath(name).read_text(encoding="utf-8")
    )


def own_file() -> Path:
    return data_home() / "models.toml"


def price_line(name: str) -> str:
    """Return a line for :func:`own_file` that states a model's price."""
    today = date.today().isoformat()  # noqa: DTZ011 (the user's own day)
    return (
        f'prices."{name}" = {{input = DOLLARS_PER_MILLION, output = DOLLARS_PER_MILLION, source = '
        '"WHERE", '
        f"as_of = {today}}}"
    )


def cutoff_line(name: str) -> str:
    """Return a line for :func:`own_file` that states a model's cutoff."""
    today = date.today().isoformat()  # noqa: DTZ011 (the user's own day)
    return f'cutoffs."{name}" = {{last_day = YYYY-MM-DD, source = "WHERE", as_of = {today}}}'


def find_model(table: Mapping[str, T], name: str) -> T | None:
    """Return a model's entry, or None.

    The full name is looked up first, then the name without the date of a snapshot:
    ``openai/gpt-4o-2024-11-20`` finds ``openai/gpt-4o`` unless the snapshot has a separate entry.
    An entry that ends in ``/*`` is for every model of a provider.
    """
    for candidate in (name, _SNAPSHOT.sub("", name), f"{name.partition('/')[0]}/*"):
        if candidate in table:
            return table[candidate]
    return None


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of tokens by price class.

    ``plain`` input was neither read from a provider's cache nor written to it.
    """

    plain: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        return self.plain + self.cache_read + self.cache_write


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens, their source, and the day of the last check.

    ``cache_read`` and ``cache_write`` default to the plain input price. Reasoning tokens are billed
    as output. The price applies to requests of up to ``input_limit`` tokens. Beyond the limit it is
    unknown.
    """

    input: Rate
    output: Rate
    source: str
    as_of: date
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    input_limit: int | None = None

    def usd(self, tokens: Tokens) -> float | None:
        """Return the cost of these tokens in dollars, or None beyond the input limit."""
        if self.input_limit is not None and tokens.input > self.input_limit:
            return None
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = tokens.plain * self.input + tokens.cache_read * read + tokens.cache_write * write
        return (total + tokens.output * self.output) / 1e6

    def worst_usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the highest cost of a request: all input at the highest rate."""
        dearest = max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)
        return (input_tokens * dearest + output_tokens * self.output) / 1e6


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by model name."""

    prices: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        return find_model(self.prices, model)


def load_prices(override: Path | None = None) -> PriceTable:
    """Return the packaged prices, overridden by a user's TOML file.

    Raises :class:`UserError` for an invalid file, and for a file without prices, because the budget
    would then use prices that the user did not intend.
    """
    return PriceTable(read_table(Price, "prices", "prices.toml", override, required=True))


class Cutoff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last day that the training data may contain, its source, and the day of the last check.

    If a provider states a month, the day is the last of the month. If it states both a "reliable
    knowledge" date and the end of the training data, the later day counts. A contrast must not
    treat seen data as unseen data.
    """

    last_day: date
    source: str
    as_of: date


class CutoffTable(msgspec.Struct, frozen=True):
    """Knowledge cutoffs by model name."""

    cutoffs: Mapping[str, Cutoff]

    def of(self, model: str) -> Cutoff | None:
        """Return a model's cutoff, or None if it is unknown.

        A model behind a router (``openrouter/openai/gpt-4o``) is also looked up by its maker's
        name, because its training data is the same.
        """
        while "/" in model:
            cutoff = find_model(self.cutoffs, model)
            if cutoff is not None:
                return cutoff
            model = model.partition("/")[2]
        return None


def load_cutoffs(override: Path | None = None) -> CutoffTable:
    """Return the packaged cutoffs, overridden by a user's TOML file.

    Raises :class:`UserError` for an invalid file.
    """
    return CutoffTable(read_table(Cutoff, "cutoffs", "cutoffs.toml", override))


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maker's description of a model: whether it reasons before it answers, and its purpose."""

    thinking: bool
    made_for: Literal["general", "code", "finance"]
    source: str
    as_of: date

    @property
    def groups(self) -> tuple[str, str]:
        made_for = "general" if self.made_for == "general" else "specialised"
        return "thinking" if self.thinking else "instruct", made_for


def load_kinds() -> Mapping[str, Kind]:
    """Return the packaged kinds of models, overridden by the user's table.

    Raises :class:`UserError` for an invalid file.
    """
    return read_table(Kind, "kinds", "kinds.toml", None)
