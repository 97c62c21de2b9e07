"""Start or continue a run of programs: one event loop for the models, a sandbox and threads for the programs."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.files import write_atomic
from tradeassay.llm import Model, parse_name
from tradeassay.runs.code.layout import CodeFolder
from tradeassay.runs.code.manifest import (
    CodeManifest,
    build_code_manifest,
    read_code_manifest,
    refuse_code_changes,
    reopen,
    write_code_manifest,
)
from tradeassay.runs.code.outcome import ItemOutcome, outcome_sha256, read_item
from tradeassay.runs.code.play import play_item
from tradeassay.runs.code.protocol import CodeItem, CodeProtocol, Role, code_protocols
from tradeassay.runs.code.recorded import CodeRun, CodeScoresFile, read_record
from tradeassay.runs.executors.one_thread import one_thread
from tradeassay.runs.lock import RunLock
from tradeassay.runs.model_pool import OpenModels, all_or_first_error, run_async, take_over
from tradeassay.runs.models import Asking, refuse_bad_names
from tradeassay.runs.timing import add_timing
from tradeassay.sandbox import Executor


class ItemEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An item came to its end: the ``done``-th of ``total``."""

    item: CodeItem
    outcome: ItemOutcome
    done: int
    total: int


Tell = Callable[[ItemEnded], None]


def run_code(
    spec: msgspec.Struct,
    folder: Path | str,
    *,
    benchmark: str | None = None,
    asking: Asking | None = None,
    workers: int | None = None,
    retry_failed: bool = False,
    tell: Tell | None = None,
    executor: Executor | None = None,
) -> CodeRun:
    """Run a spec in ``folder``, or continue what was begun there; the result has the same bytes either way.

    ``benchmark`` is the spec's own unless given. ``asking`` says how models are asked and what they may cost.
    ``workers`` programs are examined at a time (default: the cores). ``retry_failed`` plays items without a result
    again. ``executor`` is a sandbox to use instead of opening one. Raises :class:`UserError` before anything is
    written for what is certain to fail, :class:`RunError` when the folder holds another run or something has
    changed since.
    """
    name = benchmark or str(getattr(spec, "benchmark", ""))
    protocol = code_protocols.get(name)(spec)
    manifest = build_code_manifest(name, protocol, spec)
    return _run(protocol, manifest, Path(folder), asking or Asking(), workers, retry_failed, tell, executor)


def resume_code(
    folder: Path | str,
    *,
    asking: Asking | None = None,
    workers: int | None = None,
    retry_failed: bool = False,
    tell: Tell | None = None,
    executor: Executor | None = None,
) -> CodeRun:
    """Continue a stopped run; raises :class:`RunError` when something is no longer what the manifest says."""
    path = Path(folder)
    then = read_code_manifest(CodeFolder(path).run.manifest)
    protocol, spec = reopen(then)
    manifest = build_code_manifest(then.benchmark, protocol, spec)
    return _run(protocol, manifest, path, asking or Asking(), workers, retry_failed, tell, executor)


def _run(
    protocol: CodeProtocol,
    manifest: CodeManifest,
    path: Path,
    asking: Asking,
    workers: int | None,
    retry_failed: bool,
    tell: Tell | None,
    executor: Executor | None,
) -> CodeRun:
    place = CodeFolder(path)
    if place.run.manifest.exists():
        refuse_code_changes(read_code_manifest(place.run.manifest), manifest, path)
    roles = [role for item in manifest.items for role in protocol.roles(item).values()]
    refuse_bad_names([role.model for role in roles], asking)
    path.mkdir(parents=True, exist_ok=True)
    with RunLock(place.run.lock):
        if not place.run.manifest.exists():
            write_atomic(place.run.manifest, write_code_manifest(manifest))
        left = [item for item in manifest.items if _open(place, item, retry_failed)]
        if left:
            place.run.scores.unlink(missing_ok=True)
            began = time.perf_counter()
            threads = workers or os.cpu_count() or 1
            with ExitStack() as stack:
                sandbox = _Sandbox(protocol, threads, executor, stack)
                loop = _Loop(protocol, place, asking, sandbox, threads, tell, len(manifest.items))
                loop.play(left, roles)
            add_timing(place.run.timing, loop.seconds, {"play": time.perf_counter() - began})
        if not place.run.scores.exists():
            write_code_scores(protocol, manifest, place)
    return CodeRun(path, manifest)


def write_code_scores(protocol: CodeProtocol, manifest: CodeManifest, place: CodeFolder) -> None:
    """Sum up a run all of whose items have ended."""
    write_atomic(place.run.scores, code_scores(protocol, manifest, place))


def code_scores(protocol: CodeProtocol, manifest: CodeManifest, place: CodeFolder) -> bytes:
    """Return the content of ``scores.json``."""
    records: dict[str, Any] = {}
    hashes: dict[str, str] = {}
    for item in manifest.items:
        found = read_item(place.outcome(item.key))
        assert found is not None
        hashes[item.key] = outcome_sha256(place.outcome(item.key))
        record = read_record(type(protocol), found)
        if record is not None:
            records[item.key] = record
    scores = msgspec.json.encode(protocol.score(records), order="deterministic")
    content = msgspec.json.encode(CodeScoresFile(outcomes=hashes, scores=msgspec.Raw(scores)))
    return msgspec.json.format(content, indent=1) + b"\n"


def _open(place: CodeFolder, item: CodeItem, retry_failed: bool) -> bool:
    found = read_item(place.outcome(item.key))
    if found is not None and not (retry_failed and found.status == "failed"):
        place.work(item.key).unlink(missing_ok=True)  # left by a kill right after the outcome was written
        return False
    return True


class _Sandbox:
    """Opened when the first program has to be run: not every conversation comes to that."""

    def __init__(self, protocol: CodeProtocol, workers: int, given: Executor | None, stack: ExitStack) -> None:
        self._protocol = protocol
        self._workers = workers
        self._executor = given
        self._stack = stack
        self._opening = threading.Lock()

    def work(self, item: CodeItem, request: Any) -> Any:
        """Work something out."""
        with self._opening:
            if self._executor is None:
                self._executor = self._stack.enter_context(self._protocol.open_executor(self._workers))
        return self._protocol.compute(item, request, self._executor)


class _Loop:
    def __init__(
        self,
        protocol: CodeProtocol,
        place: CodeFolder,
        asking: Asking,
        sandbox: _Sandbox,
        threads: int,
        tell: Tell | None,
        total: int,
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._protocol = protocol
        self._place = place
        self._asking = asking
        self._sandbox = sandbox
        self._threads = threads
        self._tell = tell
        self._total = total

    def play(self, items: Sequence[CodeItem], roles: Sequence[Role]) -> None:
        """Play items, ``asking.concurrency`` at a time; what stops a run is raised, and everything written
        stays.
        """
        take_over([item.key for item in items], self._place.run, self._asking)
        with one_thread():
            run_async(self._all(items, roles))

    async def _all(self, items: Sequence[CodeItem], roles: Sequence[Role]) -> None:
        slots = asyncio.Semaphore(self._asking.concurrency)
        done = self._total - len(items)
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(self._threads, thread_name_prefix="tradeassay-code")
        )
        async with AsyncExitStack() as stack:
            paid = any(parse_name(role.model).route != "scripted" for role in roles)
            models = OpenModels(self._place.run, self._asking, stack, home=None, durable=paid)

            async def open_role(role: Role) -> Model:
                return await models.open(role.model, role.params)

            async def one(item: CodeItem) -> None:
                nonlocal done
                async with slots:
                    began = time.perf_counter()
                    outcome = await play_item(
                        self._protocol, item, self._place,
                        open_role=open_role, work=self._sandbox.work, replay=self._asking.replay,
                    )  # fmt: skip
                    self.seconds[item.key] = time.perf_counter() - began
                    done += 1
                    if self._tell is not None:
                        self._tell(ItemEnded(item=item, outcome=outcome, done=done, total=self._total))

            await all_or_first_error([asyncio.ensure_future(one(item)) for item in items])
