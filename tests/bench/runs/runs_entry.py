"""A task function that knows nothing of episodes, for testing executors."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tradeassay.core.errors import DataError


def perform(payload: bytes, tick: Callable[[int], None], stopping: Callable[[], bool]) -> bytes:
    word, _, rest = payload.decode().partition(":")
    if word == "echo":
        tick(3)
        tick(4)
        return rest.encode()[::-1]
    if word == "pid":
        time.sleep(float(rest or 0.05))
        return str(os.getpid()).encode()
    if word == "env":
        return os.environ.get(rest, "").encode()
    if word == "product":
        rng = np.random.default_rng(0)
        table = rng.normal(size=(252, 500))
        return (table.T @ table).tobytes()
    if word == "raise":
        raise DataError("the data is gone", hint="bring it back")
    if word == "strange":
        raise _Strange(lambda: None)
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "print":
        print("an agent prints to stdout")
        return b""
    if word == "wait":
        Path(rest).write_text("started")
        while not stopping():
            time.sleep(0.01)
        Path(rest).write_text("stopped")
        return b""
    if word == "deaf":
        Path(rest).write_text(str(os.getpid()))
        time.sleep(60)
    raise ValueError(word)


def perform_on_node(
    payload: bytes, tick: Callable[[int], None], stopping: Callable[[], bool]
) -> bytes:
    folder, _, answer = payload.decode().rpartition(":")
    hold_first_of_node(Path(folder))
    return answer.encode()


def hold_first_of_node(folder: Path) -> None:
    """Say on which Ray node this is.

    The first on a node sleeps; others wait until two nodes were named.
    """
    import ray

    mark = folder / ray.get_runtime_context().get_node_id()
    if not mark.exists():
        mark.touch()
        time.sleep(60)
    for _ in range(600):
        if len(list(folder.iterdir())) == 2:
            break
        time.sleep(0.1)


class _Strange(Exception):
    """An error that cannot be pickled."""

    def __init__(self, thing: object) -> None:
        self.thing = thing
        super().__init__("strange")
