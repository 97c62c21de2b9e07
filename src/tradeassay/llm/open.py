"""From a model's name to a model that can be asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec

from tradeassay.core.errors import UserError, require
from tradeassay.core.secrets import remember_settings
from tradeassay.llm.budget import Budget, BudgetedProvider
from tradeassay.llm.cassette import CassetteStore, RecordingModel, ReplayingModel
from tradeassay.llm.local import LocalSettings, find_local_model, local_models, open_local
from tradeassay.llm.model import (
    AskingModel,
    Model,
    ModelName,
    ModelParams,
    Provider,
    RetryPolicy,
    Sleep,
    parse_name,
)
from tradeassay.llm.scripted.model import ScriptedProvider
from tradeassay.llm.tables import Price, PriceTable, load_prices


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is reached, where that is not the default. ``base_url`` is another server's address (a local
    model is asked there and no engine is started), ``prices`` a custom table, ``home`` where local models are
    kept, ``local`` what they may use of this machine, ``sleep`` what waits between attempts."""

    base_url: str | None = None
    retry: RetryPolicy = RetryPolicy()
    prices: PriceTable | None = None
    home: Path | None = None
    local: LocalSettings | None = None
    sleep: Sleep = asyncio.sleep


@asynccontextmanager
async def open_model(
    name: str,
    params: ModelParams | None = None,
    *,
    cassette: CassetteStore | None = None,
    replay: bool = False,
    budget: Budget | None = None,
    connections: int = 10,
    access: Access | None = None,
) -> AsyncIterator[Model]:
    """Open a model; leaving the block closes its connections.

    With a ``cassette`` every answer is recorded, and what it holds is not asked again. With ``replay`` it is the
    only source: no network, no key and no provider package is needed. Callers share ``connections`` and
    ``budget``.

    Raises :class:`UserError` for an unknown name, a replay without a cassette, or a cap on a model without a known
    price; :class:`MissingExtra` when the provider's packages are not installed."""
    params = params or ModelParams()
    access = access or Access()
    parsed = parse_name(name)
    if replay:
        if cassette is None:
            hint = "give cassettes= with a folder or a run that has them"
            raise UserError(f"{name} cannot be replayed without recorded answers", hint=hint)
        yield ReplayingModel(name, params, cassette)
        return
    price = (access.prices or load_prices()).of(name)
    async with _open_provider(parsed, params, price, access) as provider:
        paid = provider if budget is None else BudgetedProvider(provider, params, budget, price)
        # A scripted model's time-outs cost no time: they are played to the end.
        scripted = parsed.route == "scripted"
        retry = msgspec.structs.replace(access.retry, silences=None) if scripted else access.retry
        model = AskingModel(paid, connections=connections, retry=retry, sleep=access.sleep)
        # A provider's packages take another address from the environment too.
        named = access.base_url or os.environ.get(f"{parsed.provider.upper().replace('-', '_')}_BASE_URL")
        elsewhere = parsed.route == "inspect" and bool(named)
        if cassette is None:
            yield model
            return
        # A script answers at once: its times would be the machine's.
        took = None if scripted else model.took
        lost = paid.lost if isinstance(paid, BudgetedProvider) else None
        yield RecordingModel(model, params, cassette, elsewhere=elsewhere, took=took, lost=lost)


@asynccontextmanager
async def _open_provider(
    name: ModelName, params: ModelParams, price: Price | None, access: Access
) -> AsyncIterator[Provider]:
    match name.route:
        case "scripted":
            yield ScriptedProvider(name.full, name.rest, params, price, sleep=access.sleep)
        case "local":
            settings = _local_settings(name, access)
            async with open_local(name, params, price, home=access.home, settings=settings) as local:
                yield local
        case "inspect":
            require("inspect_ai", "models")
            read_env_file()
            from tradeassay.llm.via_inspect.provider import open_provider

            async with aclosing(open_provider(name.full, params, price, base_url=access.base_url)) as provider:
                yield provider


def check_model(name: str, access: Access | None = None) -> None:
    """Raise what opening a model would raise, and :class:`UserError` when its key is missing. Nothing is asked."""
    parsed = parse_name(name)
    access = access or Access()
    match parsed.route:
        case "scripted":
            ScriptedProvider(name, parsed.rest, ModelParams(), None)
        case "local":
            if _local_settings(parsed, access).server is None:
                find_local_model(parsed, access.home)
        case "inspect":
            require("inspect_ai", "models")
            read_env_file()
            from tradeassay.llm.via_inspect.provider import KeylessProvider, open_provider

            opened = open_provider(name, ModelParams(), None, base_url=access.base_url)
            if isinstance(opened, KeylessProvider):
                raise UserError(f"{name}: {opened.reason}", hint="set it, or choose another model")


def read_env_file() -> None:
    """Put into the environment what the nearest ``.env`` file says and the environment does not, as Inspect's own
    commands do. What tradeassay itself reads there is left out: it must not change while a command runs.

    Raises :class:`UserError` for a file that cannot be read."""
    from dotenv import dotenv_values, find_dotenv

    file = find_dotenv(usecwd=True)
    if not file:
        return
    try:
        said = {name: value for name, value in dotenv_values(file).items() if value is not None}
        remember_settings(said)
        ours = {name for name in said if name.startswith("TRADEASSAY_")}
        os.environ.update({name: said[name] for name in said.keys() - os.environ.keys() - ours})
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(
            f"{file} cannot be read: {why}", hint="keys are looked for there; mend or move it"
        ) from None


def _local_settings(name: ModelName, access: Access) -> LocalSettings:
    """Return a local model's settings: a server named for all models is meant for this one too. Refuses an
    unknown name before it asks for an extra: installing that would not help."""
    settings = access.local or LocalSettings()
    if access.base_url is not None:
        settings = msgspec.structs.replace(settings, server=access.base_url)
    if settings.server is None:
        if name.gguf is None:
            local_models.get(name.rest)
        require("xllamacpp", "local")
    require("inspect_ai", "models")
    return settings
