"""A four-layer memory: short term, mid term, long term and reflections. Each layer forgets at its
own pace.

An item's score for a question is similarity + importance + recency. Recency decays exponentially
per decision at the layer's pace. An item that was used and turned out well becomes more important
and may rise to the next layer. An item that fades is dropped. The whole memory is a frozen value
with a JSON form, so it can be stored with a decision and is the same after a crash.

Similarity uses an offline embedding, ``hashed-grams-2048``. It needs no download and gives the same
numbers on every machine. It hashes words and their four-letter runs, and runs of one, two and three
Chinese characters. It finds texts that share words, not texts that share a meaning. That is enough
to retrieve notes about the same product, person or figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

SIZE = 2048
_RUN = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+", re.UNICODE)
_COMMON = frozenset(
    "a an and are as at be but by for from has have in is it its not of on or said that the to was "
    "were will with "
    "的 了 在 是 和 与 对 将 为 及 也 其 中 上 下 个 这 那 有 "
    "于 被 把 从 到 等 并 或 着 都 还 就 不".split()
)


@lru_cache(maxsize=8192)
def embed(text: str) -> NDArray[np.float64]:
    """Return the embedding of a text as a read-only unit vector.

    A text without words gives zeros.
    """
    counts: dict[str, float] = {}
    for run in _RUN.findall(text.lower()):
        pieces = []
        if "\u3400" <= run[0] <= "\u9fff":
            for size, weight in ((1, 0.25), (2, 1.0), (3, 1.0)):
                runs = (run[at : at + size] for at in range(len(run) - size + 1))
                pieces += [(one, weight) for one in runs if size > 1 or one not in _COMMON]
        elif run not in _COMMON:
            marked = f"^{run}$"
            pieces = [(run, 1.0), *((marked[at : at + 4], 0.25) for at in range(len(marked) - 3))]
        for piece, weight in pieces:
            counts[piece] = counts.get(piece, 0.0) + weight
    vector = np.zeros(SIZE)
    for piece, count in counts.items():
        place, sign = _place(piece)
        vector[place] += sign * math.sqrt(count)
    length = float(np.linalg.norm(vector))
    vector = vector / length if length > 0 else vector
    vector.flags.writeable = False
    return vector


@lru_cache(maxsize=65536)
def _place(piece: str) -> tuple[int, float]:
    digest = blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    return int.from_bytes(digest[:2], "big") % SIZE, 1.0 if digest[2] & 1 else -1.0


Layer = Literal["short", "mid", "long", "reflection"]
LAYERS: tuple[Layer, ...] = ("short", "mid", "long", "reflection")
PACE: dict[Layer, float] = {"short": 3.0, "mid": 15.0, "long": 60.0, "reflection": 30.0}


class LayerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the memory.

    - ``pace`` is, for each layer, the number of decisions after which recency has fallen to 1/e.
    - ``keep`` is the maximum number of items in each layer.
    - ``fade`` is the product of recency and importance below which an item is dropped.
    - ``rise`` is the importance at which an item of the short or mid layer moves to the next layer.
    - ``recall`` is the number of items retrieved from each layer.
    """

    pace: dict[Layer, float] = msgspec.field(default_factory=lambda: dict(PACE))
    keep: int = 40
    fade: float = 0.02
    rise: float = 0.8
    recall: int = 3
    lesson: float = 0.1


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One memory.

    It has a text, the number of the decision at which it was stored, its importance, and the number
    of times that it was used.
    """

    id: int
    layer: Layer
    text: str
    made: int
    importance: float
    used: int = 0


class LayeredMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of an agent.

    It has all items, the number of decisions so far, the next free id, and the items that the last
    decision recalled.
    """

    items: tuple[Item, ...] = ()
    now: int = 0
    next_id: int = 0
    recalled: tuple[int, ...] = ()
    seen: tuple[str, ...] = ()
    settled: str = ""

    @classmethod
    def read(cls, body: bytes | None) -> LayeredMemory:
        """Return the memory that :meth:`written` stored, or an empty memory."""
        return cls() if body is None else msgspec.json.decode(body, type=cls)

    def written(self) -> bytes:
        return msgspec.json.encode(self)

    def add(self, layer: Layer, text: str, importance: float) -> LayeredMemory:
        item = Item(id=self.next_id, layer=layer, text=text, made=self.now, importance=importance)
        return msgspec.structs.replace(self, items=(*self.items, item), next_id=self.next_id + 1)

    def recall(self, question: str, config: LayerConfig) -> tuple[Item, ...]:
        """Return the items of each layer with the highest scores for a question.

        At most ``recall`` items per layer are returned, the best first.
        """
        if not self.items:
            return ()
        vectors = np.stack([embed(item.text) for item in self.items])
        likeness = vectors @ embed(question)
        scores = [
            float(likeness[n]) + item.importance + self.recency(item, config)
            for n, item in enumerate(self.items)
        ]
        found: list[Item] = []
        for layer in LAYERS:
            ranked = sorted(
                (-scores[n], item.id, n) for n, item in enumerate(self.items) if item.layer == layer
            )
            found += [self.items[n] for _, _, n in ranked[: config.recall]]
        return tuple(found)

    def recency(self, item: Item, config: LayerConfig) -> float:
        """Return the recency of an item: 1 when it was stored, decaying at its layer's pace."""
        return math.exp(-(self.now - item.made) / config.pace[item.layer])

    def learn(self, used: Iterable[int], gain: float, config: LayerConfig) -> LayeredMemory:
        """Return the memory after an outcome: used items gain or lose importance and may rise a
        layer.
        """
        ids = set(used)
        items = []
        for item in self.items:
            if item.id not in ids:
                items.append(item)
                continue
            step = math.copysign(config.lesson, gain) if gain else 0.0
            importance = round(
                min(1.0, max(0.0, item.importance + step)), 9
            )  # The sum is rounded, so that ten steps of 0.1 make 1.
            layer, made = item.layer, item.made
            if importance >= config.rise and layer in ("short", "mid"):
                layer, made, importance = ("mid" if layer == "short" else "long"), self.now, 0.5
            changed = {
                "importance": importance,
                "used": item.used + 1,
                "layer": layer,
                "made": made,
            }
            items.append(msgspec.structs.replace(item, **changed))
        return msgspec.structs.replace(self, items=tuple(items))

    def aged(self, config: LayerConfig) -> LayeredMemory:
        """Return the memory one decision later: faded items are dropped and every layer is cut to
        its size.
        """
        older = msgspec.structs.replace(self, now=self.now + 1)
        kept: list[Item] = []
        for layer in LAYERS:
            alive = [
                (older.recency(i, config) * i.importance, i) for i in self.items if i.layer == layer
            ]
            alive = [pair for pair in alive if pair[0] >= config.fade]
            alive.sort(key=lambda pair: (-pair[0], pair[1].id))
            kept += [item for _, item in alive[: config.keep]]
        return msgspec.structs.replace(older, items=tuple(sorted(kept, key=lambda item: item.id)))
