"""Open models by name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec

from tradeassay.core.errors import UserError, require
from tradeassay.core.secrets import remember_settings
from tradeassay_bench.llm.budget import Budget, BudgetedProvider
from tradeassay_bench.llm.local import LocalSettings, find_local_model, local_models, open_local
from tradeassay_bench.llm.model import (
    AskingModel,
    Model,
    ModelName,
    ModelParams,
    Provider,
    RetryPolicy,
    Sleep,
    parse_name,
)
from tradeassay_bench.llm.recording import RecordingModel, RecordingStore, ReplayingModel
from tradeassay_bench.llm.scripted.model import ScriptedProvider
from tradeassay_bench.llm.tables import Price, PriceTable, load_prices


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the connection to a model.

    ``base_url`` is the address of a different server. A local model is then queried there and no
    engine is started. ``prices`` replaces the price table. ``home`` is the folder of local models.
    ``local`` limits their use of this machine. ``sleep`` waits between attempts.
    """

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
    recording: RecordingStore | None = None,
    replay: bool = False,
    budget: Budget | None = None,
    connections: int = 10,
    access: Access | None = None,
) -> AsyncIterator[Model]:
    """Open a model. Leaving the block closes its connections.

    With a ``recording`` every answer is recorded, and recorded questions are not sent again. With
    ``replay`` the recording is the only source: no network, no key and no provider package is
    needed. All callers share ``connections`` and ``budget``.

    Raises :class:`UserError` for an unknown name, a replay without a recording, or a spending cap
    on a model without a known price. Raises :class:`MissingExtra` if the provider's packages are
    not installed.
    """
    params = params or ModelParams()
    access = access or Access()
    parsed = parse_name(name)
    if replay:
        if recording is None:
            hint = "give recordings= with a folder or a run with recorded answers"
            raise UserError(f"{name} cannot be replayed without recorded answers", hint=hint)
        yield ReplayingModel(name, params, recording)
        return
    price = (access.prices or load_prices()).of(name)
    async with _open_provider(parsed, params, price, access) as provider:
        paid = provider if budget is None else BudgetedProvider(provider, params, budget, price)
        # The time-outs of a scripted model cost no time, so any number of them is allowed.
        scripted = parsed.route == "scripted"
        retry = msgspec.structs.replace(access.retry, silences=None) if scripted else access.retry
        model = AskingModel(paid, connections=connections, retry=retry, sleep=access.sleep)
        # A provider's packages also read an address from the environment.
        address = access.base_url or os.environ.get(
            f"{parsed.provider.upper().replace('-', '_')}_BASE_URL"
        )
        elsewhere = parsed.route == "inspect" and bool(address)
        if recording is None:
            yield model
            return
        # A script answers immediately. Its times would only measure this machine.
        seconds_of = None if scripted else model.seconds_of
        unbilled = paid.unbilled_usd if isinstance(paid, BudgetedProvider) else None
        yield RecordingModel(
            model,
            params,
            recording,
            elsewhere=elsewhere,
            seconds_of=seconds_of,
            unbilled_usd=unbilled,
        )


@asynccontextmanager
async def _open_provider(
    name: ModelName, params: ModelParams, price: Price | None, access: Access
) -> AsyncIterator[Provider]:
    match name.route:
        case "scripted":
            yield ScriptedProvider(name.full, name.rest, params, price, sleep=access.sleep)
        case "local":
            settings = _local_settings(name, access)
            async with open_local(
                name, params, price, home=access.home, settings=settings
            ) as local:
                yield local
        case "inspect":
            require("inspect_ai", "models")
            read_env_file()
            from tradeassay_bench.llm.via_inspect.provider import open_provider

            async with aclosing(
                open_provider(name.full, params, price, base_url=access.base_url)
            ) as provider:
                yield provider


def check_model(name: str, access: Access | None = None) -> None:
    """Check that a model can be opened. No request is sent.

    Raises the errors of opening it, and :class:`UserError` if its key is missing.
    """
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
            from tradeassay_bench.llm.via_inspect.provider import KeylessProvider, open_provider

            opened = open_provider(name, ModelParams(), None, base_url=access.base_url)
            if isinstance(opened, KeylessProvider):
                raise UserError(
                    f"{name}: {opened.reason}", hint="set it, or choose a different model"
                )


def read_env_file() -> None:
    """Add the settings of the nearest ``.env`` file to the environment, as Inspect's commands do.

    Variables that are set already keep their values. Variables of tradeassay itself are left out,
    because they must not change while a command runs. Raises :class:`UserError` for a file that
    cannot be read.
    """
    from dotenv import dotenv_values, find_dotenv

    file = find_dotenv(usecwd=True)
    if not file:
        return
    try:
        settings = {name: value for name, value in dotenv_values(file).items() if value is not None}
        remember_settings(settings)
        for name in settings.keys() - os.environ.keys():
            if not name.startswith("TRADEASSAY_"):
                os.environ[name] = settings[name]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise UserError(
            f"{file} cannot be read: {reason}", hint="keys are read from this file; fix or move it"
        ) from None


def _local_settings(name: ModelName, access: Access) -> LocalSettings:
    """Return a local model's settings.

    A ``base_url`` for all models is also the model's server. An unknown name is reported before a
    missing extra, because installing the extra would not help.
    """
    settings = access.local or LocalSettings()
    if access.base_url is not None:
        settings = msgspec.structs.replace(settings, server=access.base_url)
    if settings.server is None:
        if name.gguf is None:
            local_models.get(name.rest)
        require("xllamacpp", "local")
    require("inspect_ai", "models")
    return settings
