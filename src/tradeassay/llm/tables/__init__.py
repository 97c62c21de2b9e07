"""Dated tables about other people's models: prices, knowledge cutoffs, kinds. A user's files override them.

``models.toml`` in the folder where tradeassay keeps things is laid over the packaged tables, and a file that is
named over both.

A model that is not in the price table has no price: it is "unknown", never 0. Where nobody states how far a
model's training data reaches, nothing can be claimed to be unseen by it.
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
"""Dollars per million tokens, up to a thousand dollars a token: infinity is no price."""

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


def read_table(
    kind: type[T], section: str, packaged: str, override: Path | None, *, required: bool = False
) -> dict[str, T]:
    """Return a packaged table, overridden entry by entry by :func:`own_file`, and that by a named file.

    Raises :class:`UserError` when the named file is missing or lacks a ``required`` section, and when a file is
    not TOML or has entries of another form."""
    contents: list[tuple[object, Mapping[str, Any]]] = [(packaged, _packaged(packaged))]
    own = own_file()
    for path in ((own,) if own.is_file() else ()) + (() if override is None else (override,)):
        try:
            contents.append((path, tomllib.loads(path.read_text(encoding="utf-8"))))
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}", hint="check the path") from error
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
            raise UserError(f"'{section}' in {source} is not a table", hint=f'write [{section}."provider/model"]')
        for name, entry in table.items():
            try:
                found[name] = msgspec.convert(entry, kind)
            except msgspec.ValidationError as error:
                hint = "see the reference of model prices"
                raise UserError(f'{source}, {section}."{name}": {error}', hint=hint) from None
    return found


@cache
def _packaged(name: str) -> dict[str, Any]:
    """Return a packaged file; it is read once, since every model that is opened asks for it."""
    return tomllib.loads(resources.files("tradeassay.llm.tables").joinpath(name).read_text(encoding="utf-8"))


def own_file() -> Path:
    return data_home() / "models.toml"


def price_line(name: str) -> str:
    """Return what to write into :func:`own_file` for a model without a price."""
    today = date.today().isoformat()  # noqa: DTZ011 (the user's own day)
    return (
        f'prices."{name}" = {{input = DOLLARS_PER_MILLION, output = DOLLARS_PER_MILLION, source = "WHERE", '
        f"as_of = {today}}}"
    )


def cutoff_line(name: str) -> str:
    """Return what to write into :func:`own_file` for a model whose cutoff is not known."""
    today = date.today().isoformat()  # noqa: DTZ011 (the user's own day)
    return f'cutoffs."{name}" = {{last_day = YYYY-MM-DD, source = "WHERE", as_of = {today}}}'


def find_model(table: Mapping[str, T], name: str) -> T | None:
    """Return a model's entry: by its whole name, then without the date of a snapshot; None when there is none.
    ``openai/gpt-4o-2024-11-20`` finds ``openai/gpt-4o`` unless the snapshot has an entry of its own. An entry that
    ends in ``/*`` stands for every model of a provider."""
    for candidate in (name, _SNAPSHOT.sub("", name), f"{name.partition('/')[0]}/*"):
        if candidate in table:
            return table[candidate]
    return None


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens by what they cost. ``plain`` input was neither read from a provider's cache nor written to it."""

    plain: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        return self.plain + self.cache_read + self.cache_write


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens, where to check them, and the day they were last believed correct.
    ``cache_read`` and ``cache_write`` default to the plain input price. Reasoning tokens are billed as output. The
    price holds for requests of up to ``input_limit`` tokens; beyond it nothing is claimed."""

    input: Rate
    output: Rate
    source: str
    as_of: date
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    input_limit: int | None = None

    def usd(self, tokens: Tokens) -> float | None:
        """Return what these tokens cost, or None beyond the input limit."""
        if self.input_limit is not None and tokens.input > self.input_limit:
            return None
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = tokens.plain * self.input + tokens.cache_read * read + tokens.cache_write * write
        return (total + tokens.output * self.output) / 1e6

    def worst_usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a request can cost, all input at the highest rate."""
        dearest = max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)
        return (input_tokens * dearest + output_tokens * self.output) / 1e6


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by model name."""

    prices: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        return find_model(self.prices, model)


def load_prices(override: Path | None = None) -> PriceTable:
    """Return the packaged prices, overridden by a user's TOML file.

    Raises :class:`UserError` for a bad file, and for one without prices: a budget would be kept with other prices
    than those that were meant."""
    return PriceTable(read_table(Price, "prices", "prices.toml", override, required=True))


class Cutoff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last day that the training data may contain, where to check it, and when it was last believed correct.
    Where a provider names a month, the day is the month's last. Where it names a "reliable knowledge" date and the
    end of the training data, the later one counts: a contrast must not mistake seen data for unseen."""

    last_day: date
    source: str
    as_of: date


class CutoffTable(msgspec.Struct, frozen=True):
    """Knowledge cutoffs by model name."""

    cutoffs: Mapping[str, Cutoff]

    def of(self, model: str) -> Cutoff | None:
        """Return a model's cutoff, or None when it is unknown. A model reached through somebody else
        (``openrouter/openai/gpt-4o``) is looked up by its maker's name too: serving the weights elsewhere does not
        change what they have read."""
        while "/" in model:
            found = find_model(self.cutoffs, model)
            if found is not None:
                return found
            model = model.partition("/")[2]
        return None


def load_cutoffs(override: Path | None = None) -> CutoffTable:
    """Return the packaged cutoffs, overridden by a user's TOML file. Raises :class:`UserError` for a bad file."""
    return CutoffTable(read_table(Cutoff, "cutoffs", "cutoffs.toml", override))


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model's maker says of it: whether it reasons at length before it answers, what it was made for."""

    thinking: bool
    made_for: Literal["general", "code", "finance"]
    source: str
    as_of: date

    @property
    def groups(self) -> tuple[str, str]:
        made_for = "general" if self.made_for == "general" else "specialised"
        return "thinking" if self.thinking else "instruct", made_for


def load_kinds() -> Mapping[str, Kind]:
    """Return the packaged kinds of models, overridden by the user's; raises :class:`UserError` for a bad file."""
    return read_table(Kind, "kinds", "kinds.toml", None)
