"""Many episodes with models at once: one event loop, shared connections, one purse, one folder of cassettes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from tradeassay.agents import ModelAgent, Opening, make_conversing
from tradeassay.core.errors import UserError
from tradeassay.core.executors import one_thread
from tradeassay.llm import Access, Budget, CassetteStore, Model, ModelParams, load_prices, open_model
from tradeassay.runs.play.episodes import PlayTask, play_with_model
from tradeassay.runs.play.progress import Listener
from tradeassay.runs.spec.episode import protocol_config
from tradeassay.runs.spec.models import Asking, params_for
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.outcome import Answers, Played

T = TypeVar("T")
Ended = Callable[[str, Played], None]
"""Called for every episode that has ended."""


def play_models(
    tasks: Sequence[PlayTask], place: RunFolder, asking: Asking, listen: Listener, ended: Ended
) -> None:
    """Play episodes with models, ``asking.concurrency`` at a time, and record how each ended.

    Raises what stops a run; the other episodes then stop too, and everything written stays. Raises
    :class:`UserError` when a model cannot be opened at all.
    """
    take_over([task.episode.key for task in tasks], place, asking)
    with one_thread():
        run_async(_play_all(tasks, place, asking, listen, ended))


def play_model_there(place: RunFolder, asking: Asking, task: PlayTask) -> Played:
    """Play one episode with a model in a worker's process; what it was answered is in the run's folder."""
    ended: list[Played] = []
    play_models([task], place, asking, lambda event: None, lambda key, played: ended.append(played))
    return ended[0]


async def _play_all(
    tasks: Sequence[PlayTask], place: RunFolder, asking: Asking, listen: Listener, ended: Ended
) -> None:
    slots = asyncio.Semaphore(asking.concurrency)
    async with AsyncExitStack() as stack:
        # Answers that cost money or time must survive a power cut; a scripted model gives the same ones again.
        paid = any(not task.episode.model.startswith("scripted/") for task in tasks)
        models = OpenModels(place, asking, stack, home=tasks[0].home, durable=paid)

        async def one(task: PlayTask) -> None:
            async with slots:
                async with models.agent(task) as model:
                    played = await play_with_model(task, model, models.answers(model.name), listen)
                ended(task.episode.key, played)

        await all_or_first_error([asyncio.ensure_future(one(task)) for task in tasks])


async def all_or_first_error(running: list[asyncio.Future[None]]) -> None:
    """Wait for all; when one raises, cancel the others before re-raising."""
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class OpenModels:
    """The open models of a run, each opened once per set of parameters."""

    def __init__(
        self, place: RunFolder, asking: Asking, stack: AsyncExitStack, *, home: str | None, durable: bool
    ) -> None:
        self._asking = asking
        self._stack = stack
        self._store = CassetteStore(place.models, durable=durable)
        stack.callback(self._store.close)
        # A replay costs nothing, and the recordings of a large run take long to read.
        self._budget = Budget(asking.max_usd, spent_usd=0.0 if asking.replay else self._store.spent_usd())
        self._access = Access(
            base_url=asking.base_url, prices=load_prices(asking.prices), home=None if home is None else Path(home)
        )
        self._open: dict[tuple[str, ModelParams], Model] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def agent(self, task: PlayTask) -> AsyncIterator[Model]:
        """Open an episode's agent: models are shared, a foreign agent has a connection for every episode."""
        episode = task.episode
        agent = make_conversing(episode.agent.name, episode.agent.params)
        if isinstance(agent, ModelAgent):
            yield await self.open(agent.config.model, params_for(episode, task.benchmark))
            return
        settings = protocol_config(task.benchmark)
        masked = getattr(settings, "mask", "bright") != "bright"
        opening = Opening(
            benchmark=task.benchmark.protocol if masked else task.benchmark.id,
            label=episode.label,
            salt=task.secret or "",
            settings=settings,
            cassette=self._store,
            replay=self._asking.replay,
        )
        async with agent.open(opening) as model:
            yield model

    async def open(self, name: str, params: ModelParams) -> Model:
        """Return a model, opening it on first use."""
        async with self._opening:
            model = self._open.get((name, params))
            if model is None:
                model = await self._stack.enter_async_context(
                    open_model(
                        name,
                        params,
                        cassette=self._store,
                        replay=self._asking.replay,
                        budget=None if self._asking.replay else self._budget,
                        connections=self._asking.concurrency,
                        access=self._access,
                    )
                )
                self._open[name, params] = model
            return model

    def answers(self, name: str) -> Answers:
        """Return whose answers a model gives in this run."""
        if name.startswith("scripted/"):
            return "scripted"
        return "replayed" if self._asking.replay else "live"


def take_over(keys: Sequence[str], place: RunFolder, asking: Asking) -> None:
    """Copy another run's recorded answers into this one, where it has none of its own.

    Raises :class:`UserError` when the other one has none.
    """
    if asking.cassettes is None:
        return
    source = RunFolder(asking.cassettes).models
    if not source.is_dir():
        raise UserError(f"{asking.cassettes} holds no recorded answers", hint="name a run that models played")
    place.models.mkdir(exist_ok=True)
    for key in keys:
        name = f"{key}.jsonl"
        if (source / name).is_file() and not (place.models / name).exists():
            shutil.copyfile(source / name, place.models / name)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion, even where an event loop is already running (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="tradeassay-models") as thread:
        future = thread.submit(asyncio.run, main())
        try:
            return future.result()
        except KeyboardInterrupt:
            if not future.done():  # it came to this thread: end the other, which leaving the block waits for
                for loop, task in started:
                    loop.call_soon_threadsafe(task.cancel)
            raise
