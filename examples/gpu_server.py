"""A small OpenAI-compatible server for one GPU: continuous batching, a prompt cache per slot, tool
calls.

    python gpu_server.py MODEL.gguf [--weights FILE] [--tokenizer FOLDER] [--port 8001] [--slots 128]
                         [--context 16384]

It reads a GGUF of the Llama or Qwen2 family into bf16; it needs torch, transformers and gguf (for
the tokenizer). Decoding runs as a CUDA graph over all active slots, prompts are read in chunks
between the steps, and a new question takes the free slot that shares the longest beginning with it.
Greedy or plain temperature sampling: ``top_p`` and streaming are refused; seeds and answer schemas
are not looked at. Log-probabilities come with ``logprobs`` (of an answer's tokens) and from
``/v1/completions`` with ``echo`` (of a prompt's). ``/stats`` counts tokens and seconds, ``/props``
shows the chat template. It listens on loopback and asks for no key. ``--weights`` puts trained
tensors (``examples/memory/finetune.py``) in the place of the file's. ``--device cpu`` runs the same
code slowly, for a test.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import mmap
import multiprocessing
import os
import queue
import re
import struct
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BUCKETS = (1, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256)
PROMPT_CHUNK = 4096
STEPS_BETWEEN = 4
SPLITS = 16
TOP = 8
"""The most likely tokens whose log-probabilities are kept at every place."""
CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    8: (32, 34),
    12: (256, 144),
    14: (256, 210),
}
"""How many weights and bytes a block of each supported kind has:

F32, F16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K.
"""


class Gguf:
    """A GGUF's settings, and where in the file its tensors are."""

    def __init__(self, path: str) -> None:
        self.raw = memoryview(mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ))
        if bytes(self.raw[:4]) != b"GGUF":
            raise SystemExit(f"{path} is not a GGUF file")
        self.at = 8
        count, fields = self._scalar(10), self._scalar(10)
        self.fields = {self._text(): self._value(self._scalar(4)) for _ in range(fields)}
        self.tensors: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for _ in range(count):
            name = self._text()
            shape = tuple(self._scalar(10) for _ in range(self._scalar(4)))[::-1]
            self.tensors[name] = (shape, self._scalar(4), self._scalar(10))
        align = int(self.fields.get("general.alignment", 32))
        self.start = -(-self.at // align) * align

    def bytes_of(self, name: str) -> memoryview:
        """Return a tensor's bytes, as they are in the file."""
        shape, kind, offset = self.tensors[name]
        if kind not in BLOCKS:
            raise SystemExit(
                f"{name} is quantised in a way this server does not read (kind {kind})"
            )
        weights, size = BLOCKS[kind]
        begin = self.start + offset
        return self.raw[begin : begin + math.prod(shape) // weights * size]

    def _scalar(self, kind: int) -> Any:
        (value,) = struct.unpack_from("<" + SCALARS[kind], self.raw, self.at)
        self.at += struct.calcsize(SCALARS[kind])
        return value

    def _text(self) -> str:
        size = self._scalar(10)
        self.at += size
        return str(self.raw[self.at - size : self.at], "utf-8", "replace")

    def _value(self, kind: int) -> Any:
        if kind == 8:
            return self._text()
        if kind == 9:
            inner, count = self._scalar(4), self._scalar(10)
            return [self._value(inner) for _ in range(count)]
        return self._scalar(kind)


def dequantise(torch: Any, raw: Any, kind: int) -> Any:
    """Return the weights of a tensor's bytes (uint8, on any device), in one dimension, as
    float32.
    """

    def half(part: Any) -> Any:
        return part.contiguous().view(torch.float16).float()

    if kind in (0, 1):
        return raw.view(torch.float32) if kind == 0 else half(raw)
    block = raw.reshape(-1, BLOCKS[kind][1])
    if kind == 8:
        return (block[:, 2:].view(torch.int8).float() * half(block[:, :2])).reshape(-1)
    if kind in (2, 3):
        low, high = block[:, -16:] & 15, block[:, -16:] >> 4
        steps = torch.cat([low, high], 1).float()
        if kind == 2:
            return ((steps - 8) * half(block[:, :2])).reshape(-1)
        return (steps * half(block[:, :2]) + half(block[:, 2:4])).reshape(-1)
    if kind == 12:
        scale, least = half(block[:, :2]), half(block[:, 2:4])
        packed = block[:, 4:16]
        first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
        scales = torch.cat([first & 63, (third & 15) | ((first >> 6) << 4)], 1).float() * scale
        leasts = torch.cat([second & 63, (third >> 4) | ((second >> 6) << 4)], 1).float() * least
        pairs = block[:, 16:].reshape(-1, 4, 1, 32)
        steps = torch.cat([pairs & 15, pairs >> 4], 2).reshape(-1, 8, 32).float()
        return (steps * scales[..., None] - leasts[..., None]).reshape(-1)
    low = block[:, :128].reshape(-1, 2, 1, 64)
    low = torch.cat([low & 15, low >> 4], 2).reshape(-1, 2, 4, 32)
    high = block[:, 128:192].reshape(-1, 2, 1, 32)
    high = torch.cat([(high >> (2 * i)) & 3 for i in range(4)], 2)
    steps = (low | (high << 4)).reshape(-1, 16, 16).to(torch.int8).float() - 32
    scales = block[:, 192:208].contiguous().view(torch.int8).float() * half(block[:, 208:])
    return (steps * scales[..., None]).reshape(-1)


def read_weights(path: str, device: str, dtype: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a GGUF's settings and its tensors, dequantised on the device."""
    import torch

    file = Gguf(path)
    arch = file.fields["general.architecture"]
    if arch not in ("llama", "qwen2"):
        raise SystemExit(f"this server knows Llama and Qwen2, not '{arch}'")
    tensors = {}
    for name, (shape, kind, _) in file.tensors.items():
        raw = torch.frombuffer(bytearray(file.bytes_of(name)), dtype=torch.uint8).to(device)
        tensors[name] = dequantise(torch, raw, kind).to(dtype).reshape(shape)
    settings = {key.removeprefix(f"{arch}."): value for key, value in file.fields.items()}
    return settings | {"arch": arch}, tensors


def decode_kernel() -> Any:
    """Return the attention of one new token per slot against that slot's cache, split over the
    cache's length.
    """
    global tl  # a kernel's source is compiled apart from this function: it sees the module's names only
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(
        q_ptr,
        k_ptr,
        v_ptr,
        slot_ptr,
        pos_ptr,
        acc_ptr,
        max_ptr,
        sum_ptr,
        scale,
        slot_stride,
        head_stride,
        HEADS: tl.constexpr,
        GROUP: tl.constexpr,
        ROWS: tl.constexpr,
        DIM: tl.constexpr,
        BLOCK: tl.constexpr,
        SPLITS: tl.constexpr,
    ):
        row = tl.program_id(0)
        head = tl.program_id(1)
        split = tl.program_id(2)
        slot = tl.load(slot_ptr + row).to(tl.int64)
        length = tl.load(pos_ptr + row) + 1
        share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK) * BLOCK
        start = split * share
        end = tl.minimum(length, start + share)
        rows = tl.arange(0, ROWS)
        dims = tl.arange(0, DIM)
        mine = head * GROUP + rows
        q = tl.load(
            q_ptr + (row * HEADS + mine[:, None]) * DIM + dims[None, :],
            mask=rows[:, None] < GROUP,
            other=0.0,
        )
        base = slot * slot_stride + head * head_stride
        best = tl.full((ROWS,), -1.0e30, tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, DIM), tl.float32)
        for at in range(start, end, BLOCK):
            where = at + tl.arange(0, BLOCK)
            inside = where < end
            place = base + where[:, None] * DIM + dims[None, :]
            k = tl.load(k_ptr + place, mask=inside[:, None], other=0.0)
            s = tl.dot(q, tl.trans(k)).to(tl.float32) * scale
            s = tl.where(inside[None, :], s, -1.0e30)
            new = tl.maximum(best, tl.max(s, 1))
            shrink = tl.exp(best - new)
            p = tl.exp(s - new[:, None])
            total = total * shrink + tl.sum(p, 1)
            v = tl.load(v_ptr + place, mask=inside[:, None], other=0.0)
            acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
            best = new
        to = (row * HEADS + mine) * SPLITS + split
        keep = rows < GROUP
        tl.store(acc_ptr + to[:, None] * DIM + dims[None, :], acc, mask=keep[:, None])
        tl.store(max_ptr + to, best, mask=keep)
        tl.store(sum_ptr + to, total, mask=keep)

    return kernel


Said = tuple[int, float, list[int], list[float]]
"""A token, its log-probability, and the most likely tokens at its place with theirs."""


def _likely(torch: Any, scores: Any, tokens: Any) -> tuple[Any, Any, Any]:
    """Return the log-probability of a token in each row, and the most likely tokens with theirs."""
    whole = scores.logsumexp(-1, keepdim=True)
    best, where = scores.topk(TOP, -1)
    return (scores.gather(-1, tokens[:, None]) - whole)[:, 0], where, best - whole


def _said(*columns: Any) -> list[Said]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


class Network:
    """The transformer with its caches:

    ``prompt`` reads new tokens of several slots, ``step`` adds one to each.
    """

    def __init__(
        self, path: str, device: str, slots: int, context: int, *, triton: bool | None = None
    ) -> None:
        import torch

        self.torch = torch
        self.device = device
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        settings, w = read_weights(path, device, self.dtype)
        self.layers = int(settings["block_count"])
        self.heads = int(settings["attention.head_count"])
        self.kv = int(settings["attention.head_count_kv"])
        hidden = int(settings["embedding_length"])
        self.dim = int(settings.get("attention.key_length") or hidden // self.heads)
        self.eps = float(settings["attention.layer_norm_rms_epsilon"])
        self.context = min(context, int(settings["context_length"]))
        self.slots = slots
        self.embed = w["token_embd.weight"]
        self.head = w.get("output.weight", self.embed)
        self.norm = w["output_norm.weight"]
        self.blocks = [
            self._block(w, layer, settings["arch"] == "llama") for layer in range(self.layers)
        ]
        base = float(settings.get("rope.freq_base", 10000.0))
        inverse = 1.0 / base ** (torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)
        angles = torch.outer(torch.arange(self.context, dtype=torch.float64), inverse)
        angles = torch.cat([angles, angles], 1)
        self.cos = angles.cos().to(device=device, dtype=torch.float32)
        self.sin = angles.sin().to(device=device, dtype=torch.float32)
        shape = (
            self.layers,
            slots + 1,
            self.kv,
            self.context,
            self.dim,
        )  # the last slot is for padding
        self.keys = torch.zeros(shape, dtype=self.dtype, device=device)
        self.values = torch.zeros(shape, dtype=self.dtype, device=device)
        self.kernel = decode_kernel() if (device == "cuda" if triton is None else triton) else None
        self.graphs: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.greedy = False

    def tensors(self) -> dict[str, Any]:
        """Return all weights by name; a head that is the embedding is not named again."""
        named = {"embed": self.embed, "norm": self.norm}
        if self.head is not self.embed:
            named["head"] = self.head
        for layer, block in enumerate(self.blocks):
            named |= {
                f"{layer}.{name}": weight for name, weight in block.items() if weight is not None
            }
        return named

    def load(self, trained: dict[str, Any]) -> None:
        """Put trained weights, named as :meth:`tensors` names them, in the place of the file's."""
        for name, weight in self.tensors().items():
            weight.copy_(trained[name])

    def _block(self, w: dict[str, Any], layer: int, interleaved: bool) -> dict[str, Any]:
        torch, name = self.torch, f"blk.{layer}."

        def turned(weight: Any, heads: int) -> Any:
            # A Llama GGUF keeps the pairs of a rotation side by side; here they are half a head apart.
            if not interleaved:
                return weight
            rest = weight.shape[1:]
            return weight.reshape(heads, -1, 2, *rest).transpose(1, 2).reshape(-1, *rest)

        q, k = (
            turned(w[name + "attn_q.weight"], self.heads),
            turned(w[name + "attn_k.weight"], self.kv),
        )
        bias = None
        if name + "attn_q.bias" in w:
            bias = torch.cat([w[name + f"attn_{part}.bias"] for part in "qkv"])
        return {
            "before": w[name + "attn_norm.weight"],
            "qkv": torch.cat([q, k, w[name + "attn_v.weight"]]),
            "bias": bias,
            "out": w[name + "attn_output.weight"],
            "after": w[name + "ffn_norm.weight"],
            "up": torch.cat([w[name + "ffn_gate.weight"], w[name + "ffn_up.weight"]]),
            "down": w[name + "ffn_down.weight"],
        }

    def _norm(self, x: Any, weight: Any) -> Any:
        return self.torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, self.eps)

    def _turn(self, x: Any, cos: Any, sin: Any) -> Any:
        half = self.dim // 2
        full = x.float()
        other = self.torch.cat([-full[..., half:], full[..., :half]], -1)
        return (full * cos[:, None] + other * sin[:, None]).to(x.dtype)

    def _through(self, tokens: Any, places: Any, slots: Any, attend: Any) -> Any:
        """Run all layers over tokens at ``places`` of ``slots``; ``attend(layer, q)`` reads the
        caches.
        """
        functional = self.torch.nn.functional
        x = self.embed[tokens]
        cos, sin = self.cos[places], self.sin[places]
        for layer, block in enumerate(self.blocks):
            y = functional.linear(self._norm(x, block["before"]), block["qkv"], block["bias"])
            q, k, v = y.split([self.heads * self.dim, self.kv * self.dim, self.kv * self.dim], -1)
            q = self._turn(q.reshape(-1, self.heads, self.dim), cos, sin)
            k = self._turn(k.reshape(-1, self.kv, self.dim), cos, sin)
            self.keys[layer][slots, :, places] = k
            self.values[layer][slots, :, places] = v.reshape(-1, self.kv, self.dim)
            seen = attend(layer, q).reshape(-1, self.heads * self.dim)
            x = x + functional.linear(seen, block["out"])
            gate, up = functional.linear(self._norm(x, block["after"]), block["up"]).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, block["down"])
        return self._norm(x, self.norm)

    def prompt(
        self,
        parts: list[tuple[int, int, list[int]]],
        temperatures: list[float],
        scored: list[list[int] | None],
    ) -> tuple[list[Said], list[list[Said]]]:
        """Read (slot, first place, tokens) of several slots; return the token that follows each.

        ``scored`` has the tokens that really follow each of a part's, or None; the second list
        returned says how likely they were.
        """
        torch = self.torch
        tokens = torch.tensor([t for _, _, ids in parts for t in ids], device=self.device)
        places = torch.tensor(
            [first + i for _, first, ids in parts for i in range(len(ids))], device=self.device
        )
        slots = torch.tensor([slot for slot, _, ids in parts for _ in ids], device=self.device)
        # All layers share the masks: a token sees what is cached, and those before it.
        masks = []
        for _, first, ids in parts:
            total = first + len(ids)
            # Rows that begin at multiples of 16 spare attention a copy.
            whole = torch.full(
                (len(ids), -(-total // 16) * 16), -torch.inf, dtype=self.dtype, device=self.device
            )
            masks.append(whole.triu_(first + 1)[:, :total])

        def attend(layer: int, q: Any) -> Any:
            out, at = [], 0
            for (slot, first, ids), mask in zip(parts, masks, strict=True):
                n, total = len(ids), first + len(ids)
                k = self.keys[layer, slot, :, :total].repeat_interleave(self.heads // self.kv, 0)
                v = self.values[layer, slot, :, :total].repeat_interleave(self.heads // self.kv, 0)
                mine = q[at : at + n].transpose(0, 1)
                seen = torch.nn.functional.scaled_dot_product_attention(
                    mine[None], k[None], v[None], attn_mask=mask
                )
                out.append(seen[0].transpose(0, 1))
                at += n
            return torch.cat(out)

        ends = torch.tensor([len(ids) for _, _, ids in parts], device=self.device).cumsum(0) - 1
        with torch.inference_mode():
            x = self._through(tokens, places, slots, attend)
            likely: list[list[Said]] = []
            for end, follow in zip(ends.tolist(), scored, strict=True):
                begin = end + 1 - (len(follow) if follow else 0)
                likely.append([])
                for at in range(0, len(follow or ()), 512):
                    some = torch.tensor((follow or [])[at : at + 512], device=self.device)
                    rows = torch.nn.functional.linear(
                        x[begin + at : begin + at + len(some)], self.head
                    ).float()
                    likely[-1] += _said(some, *_likely(torch, rows, some))
            heat = torch.tensor(temperatures, device=self.device)
            return _said(*self._choose(x[ends], heat)), likely

    def _choose(self, x: Any, heat: Any) -> tuple[Any, Any, Any, Any]:
        torch = self.torch
        scores = torch.nn.functional.linear(x, self.head).float()
        if self.greedy:
            none = torch.zeros((len(scores), TOP), device=self.device)
            return scores.argmax(-1), none[:, 0], none.long(), none
        noise = -(-(torch.rand_like(scores).clamp_min(1e-20)).log()).clamp_min(1e-20).log()
        warm = scores / heat.clamp_min(1e-6)[:, None] + noise
        chosen = torch.where(heat[:, None] > 0, warm, scores).argmax(-1)
        return chosen, *_likely(torch, scores, chosen)

    def _attend_one(self, slots: Any, places: Any) -> Any:
        torch = self.torch
        group = self.heads // self.kv

        def plain(layer: int, q: Any) -> Any:
            out = []
            for row in range(q.shape[0]):
                n = int(places[row]) + 1
                k = self.keys[layer, slots[row], :, :n].repeat_interleave(group, 0)
                v = self.values[layer, slots[row], :, :n].repeat_interleave(group, 0)
                weight = (q[row][:, None] @ k.transpose(1, 2)) / self.dim**0.5
                out.append((weight.softmax(-1) @ v)[:, 0])
            return torch.stack(out)

        def split(layer: int, q: Any) -> Any:
            rows = q.shape[0]
            many = (rows, self.heads, SPLITS)
            acc = torch.empty((*many, self.dim), dtype=torch.float32, device=self.device)
            best = torch.empty(many, dtype=torch.float32, device=self.device)
            total = torch.empty(many, dtype=torch.float32, device=self.device)
            keys, values = self.keys[layer], self.values[layer]
            self.kernel[(rows, self.kv, SPLITS)](
                q.contiguous(),
                keys,
                values,
                slots,
                places,
                acc,
                best,
                total,
                self.dim**-0.5,
                keys.stride(0),
                keys.stride(1),
                HEADS=self.heads,
                GROUP=group,
                ROWS=16,
                DIM=self.dim,
                BLOCK=64,
                SPLITS=SPLITS,
            )
            weight = (best - best.amax(-1, keepdim=True)).exp()
            seen = (acc * weight[..., None]).sum(2) / (total * weight).sum(-1)[..., None]
            return seen.to(self.dtype)

        return plain if self.kernel is None else split

    def _step(self, state: dict[str, Any]) -> None:
        x = self._through(
            state["token"],
            state["place"],
            state["slot"],
            self._attend_one(state["slot"], state["place"]),
        )
        for name, found in zip(
            ("token", "sure", "top", "tops"), self._choose(x, state["heat"]), strict=True
        ):
            state[name].copy_(found)
        state["place"].add_(1).clamp_max_(self.context - 1)

    def step(self, active: list[tuple[int, int, int, float]]) -> list[Said]:
        """Add a token to each (slot, its last token, that token's place, temperature); return
        the new ones.
        """
        torch = self.torch
        size = next((bucket for bucket in BUCKETS if bucket >= len(active)), len(active))
        rows = active + [(self.slots, 0, 0, 0.0)] * (size - len(active))
        with torch.inference_mode():
            if self.device != "cuda":
                rows = active
                state = self._state(len(rows))
                self._fill(state, rows)
                self._step(state)
                return _said(*(state[name] for name in ("token", "sure", "top", "tops")))
            graph, state = self.graphs.get(size) or self.capture(size)
            self._fill(state, rows)
            graph.replay()
            return _said(*(state[name][: len(active)] for name in ("token", "sure", "top", "tops")))

    def _state(self, size: int) -> dict[str, Any]:
        torch = self.torch
        kinds = {
            "token": torch.int64,
            "place": torch.int64,
            "slot": torch.int64,
            "heat": torch.float32,
        }
        state = {
            name: torch.zeros(size, dtype=kind, device=self.device) for name, kind in kinds.items()
        }
        state["sure"] = torch.zeros(size, device=self.device)
        state["top"] = torch.zeros((size, TOP), dtype=torch.int64, device=self.device)
        state["tops"] = torch.zeros((size, TOP), device=self.device)
        return state

    def _fill(self, state: dict[str, Any], rows: list[tuple[int, int, int, float]]) -> None:
        slots, tokens, places, heats = zip(*rows, strict=True)
        for name, values in (
            ("slot", slots),
            ("token", tokens),
            ("place", places),
            ("heat", heats),
        ):
            state[name].copy_(self.torch.tensor(values, dtype=state[name].dtype))

    def capture(self, size: int) -> tuple[Any, dict[str, Any]]:
        torch = self.torch
        state = self._state(size)
        state["slot"].fill_(self.slots)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step(state)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step(state)
        self.graphs[size] = (graph, state)
        return graph, state


class Slot:
    """One conversation's place in the cache, and the question it works on."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.cached: list[int] = []
        self.used = 0.0
        self.job: dict[str, Any] | None = None
        self.todo: list[int] = []
        self.said: list[Said] = []
        self.scores: list[Said] = []

    @property
    def heat(self) -> float:
        """The temperature of the question, 0 for none."""
        return self.job["heat"] if self.job is not None else 0.0

    @property
    def echo(self) -> bool:
        """Whether the log-probabilities of the question's own tokens are wanted."""
        return self.job is not None and self.job["echo"]

    def shared(self, ids: list[int]) -> int:
        """Return how many tokens of a question are in the cache already; the last one is always
        read again.
        """
        most = min(len(self.cached), len(ids) - 1)
        low = 0
        while low < most:  # compare in blocks: most slots differ at once or agree for long
            high = min(most, low + 256)
            if self.cached[low:high] != ids[low:high]:
                return low + next(
                    i for i in range(high - low) if self.cached[low + i] != ids[low + i]
                )
            low = high
        return most


class Engine:
    """The loop over all slots: admit questions, read prompts in chunks, add a token to every
    active slot.
    """

    def __init__(self, network: Network, ends: set[int], answered: Any, stats: Any) -> None:
        self.network = network
        self.ends = ends
        self.answered = answered
        self.stats = stats
        self.slots = [Slot(number) for number in range(network.slots)]
        self.waiting: list[dict[str, Any]] = []

    def run(self, asked: Any) -> None:
        """Serve questions for ever."""
        begun = time.perf_counter()
        while True:
            busy = any(slot.job is not None for slot in self.slots)
            try:
                while True:
                    self.waiting.append(asked.get(block=not (busy or self.waiting)))
            except queue.Empty:
                pass
            self.admit()
            self.read()
            pending = any(slot.todo for slot in self.slots)
            for _ in range(STEPS_BETWEEN if pending else 1):
                if not self.step():
                    break
            self.stats["up_s"] = time.perf_counter() - begun

    def admit(self) -> None:
        """Give waiting questions a slot: the free one that shares most, else the one unused for
        longest.
        """
        free = [slot for slot in self.slots if slot.job is None]
        while self.waiting and free:
            job = self.waiting.pop(0)
            shared = {slot.number: slot.shared(job["ids"]) for slot in free}
            slot = max(free, key=lambda one: (shared[one.number], -one.used))
            free.remove(slot)
            kept = 0 if job["echo"] else shared[slot.number]
            slot.job, slot.todo, slot.said, slot.scores = job, job["ids"][kept:], [], []
            slot.cached = slot.cached[:kept]
            self.stats["in"] += len(job["ids"])
            self.stats["cached"] += kept

    def read(self) -> None:
        """Read the next chunk of what has to be read, the oldest question first."""
        parts, room = [], PROMPT_CHUNK
        unread = [slot for slot in self.slots if slot.todo and slot.job is not None]
        for slot in sorted(unread, key=lambda one: one.job["id"] if one.job else 0):
            piece = slot.todo[:room]
            if piece:
                parts.append((slot, piece))
                room -= len(piece)
        if not parts:
            return
        moment = time.perf_counter()
        found, likely = self.network.prompt(
            [(slot.number, len(slot.cached), piece) for slot, piece in parts],
            [slot.heat for slot, _ in parts],
            # What follows the prompt's last token is not known: any token keeps its place, and is left out below.
            [
                [*slot.todo[1 : len(piece) + 1], 0][: len(piece)] if slot.echo else None
                for slot, piece in parts
            ],
        )
        self.stats["prompt_s"] += time.perf_counter() - moment
        for (slot, piece), said, scores in zip(parts, found, likely, strict=True):
            slot.cached += piece
            slot.todo = slot.todo[len(piece) :]
            slot.scores += scores
            if not slot.todo:
                self._take(slot, said)

    def step(self) -> bool:
        """Add a token to every active slot; return whether there was one."""
        active = [slot for slot in self.slots if slot.job is not None and not slot.todo]
        if not active:
            return False
        moment = time.perf_counter()
        found = self.network.step(
            [(slot.number, slot.said[-1][0], len(slot.cached), slot.heat) for slot in active]
        )
        self.stats["step_s"] += time.perf_counter() - moment
        self.stats["steps"] += 1
        for slot, said in zip(active, found, strict=True):
            slot.cached.append(slot.said[-1][0])
            self._take(slot, said)
        return True

    def _take(self, slot: Slot, said: Said) -> None:
        assert slot.job is not None
        if said[0] in self.ends:
            self._done(slot, "stop")
            return
        if slot.job["most"]:
            slot.said.append(said)
        if len(slot.said) >= slot.job["most"] or len(slot.cached) + 1 >= self.network.context:
            self._done(slot, "length")

    def _done(self, slot: Slot, reason: str) -> None:
        assert slot.job is not None
        self.answered.put((slot.job["id"], slot.said, reason, slot.scores[:-1]))
        self.stats["requests"] += 1
        self.stats["out"] += len(slot.said)
        slot.job, slot.used = None, time.perf_counter()


def plain_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request as a chat template wants them."""
    messages = []
    for message in body["messages"]:
        text = message.get("content")
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text)
        role = "system" if message["role"] == "developer" else message["role"]
        plain: dict[str, Any] = {"role": role, "content": text or ""}
        if message.get("tool_calls"):
            plain["tool_calls"] = [
                {
                    "type": "function",
                    "function": {"name": one["function"]["name"], "arguments": _object(one)},
                }
                for one in message["tool_calls"]
            ]
        messages.append(plain)
    return messages


def _object(call: dict[str, Any]) -> Any:
    arguments = call["function"]["arguments"]
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def find_tool_calls(text: str) -> list[dict[str, Any]]:
    """Return the calls that a model wrote in its template's elements; anything that is not JSON
    stays text.
    """
    calls = []
    for found in CALL.findall(text):
        try:
            body = json.loads(found)
            arguments = body.get("arguments", {})
            name = body["name"]
        except (ValueError, KeyError, AttributeError):
            continue
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(
            {
                "id": f"call_{uuid.uuid4().hex[:8]}",
                "type": "function",
                "function": {"name": name, "arguments": written},
            }
        )
    return calls


class Front:
    """Texts on one side, tokens on the other: the HTTP side, in a process of its own."""

    def __init__(
        self, tokenizer: Any, context: int, asked: Any, answered: Any, stats: Any, name: str
    ) -> None:
        self.tokenizer = tokenizer
        self.context = context
        self.asked = asked
        self.stats = stats
        self.name = name
        self.number = 0
        self.lock = threading.Lock()
        self.open: dict[int, queue.Queue[tuple[list[Said], str, list[Said]]]] = {}
        self.answered = answered
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            number, *answer = self.answered.get()
            self.open.pop(number).put(tuple(answer))

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of an answer."""
        if body.get("stream") or body.get("top_p") not in (None, 1, 1.0):
            return _refused("this server does not stream and knows no top_p")
        tools = body.get("tools") or None
        try:
            text = self.tokenizer.apply_chat_template(
                plain_messages(body), tools=tools, add_generation_prompt=True, tokenize=False
            )
        except Exception as error:  # whatever a template raises is the request's fault
            return _refused(f"the chat template refused the messages: {error!r}"[:300])
        asked = self._ask(
            text, body, int(body.get("max_completion_tokens") or body.get("max_tokens") or 1024)
        )
        if isinstance(asked, str):
            return _refused(asked, "context_length_exceeded")
        ids, said, reason, _ = asked
        written = self.tokenizer.decode([one[0] for one in said], skip_special_tokens=False)
        calls = find_tool_calls(written) if tools else []
        message: dict[str, Any] = {
            "role": "assistant",
            "content": CALL.sub("", written).strip() if calls else written,
        }
        if calls:
            message["tool_calls"], reason = calls, "tool_calls"
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reason}
        if body.get("logprobs"):
            most = int(body.get("top_logprobs") or 0)
            choice["logprobs"] = {
                "content": [
                    {
                        "token": self._word(token),
                        "logprob": sure,
                        "bytes": None,
                        "top_logprobs": [
                            {"token": self._word(other), "logprob": level, "bytes": None}
                            for other, level in zip(top[:most], tops, strict=False)
                        ],
                    }
                    for token, sure, top, tops in said
                ]
            }
        return 200, self._body("chat.completion", body, choice, len(ids), len(said))

    def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of a plain completion; ``echo`` also scores the
        prompt's own tokens.
        """
        text = body.get("prompt")
        if not isinstance(text, str) or not text:
            return _refused("the prompt must be one text")
        asked = self._ask(
            text, body, int(body["max_tokens"]) if body.get("max_tokens") is not None else 16
        )
        if isinstance(asked, str):
            return _refused(asked, "context_length_exceeded")
        ids, said, reason, scores = asked
        likely: list[Said | None] = list(said)
        tokens = [one[0] for one in said]
        if body.get("echo"):
            likely = [None, *scores, *likely]
            tokens = ids + tokens
        words = [self._word(token) for token in tokens]
        choice: dict[str, Any] = {
            "index": 0,
            "text": self.tokenizer.decode(tokens),
            "finish_reason": reason,
        }
        if body.get("logprobs") is not None:
            most = int(body["logprobs"])
            choice["logprobs"] = {
                "tokens": words,
                "token_logprobs": [one and one[1] for one in likely],
                "top_logprobs": [
                    one
                    and {
                        self._word(token): level
                        for token, level in zip(one[2][:most], one[3], strict=False)
                    }
                    for one in likely
                ],
                "text_offset": list(itertools.accumulate(map(len, words[:-1]), initial=0)),
            }
        return 200, self._body("text_completion", body, choice, len(ids), len(said))

    def _ask(
        self, text: str, body: dict[str, Any], most: int
    ) -> tuple[list[int], list[Said], str, list[Said]] | str:
        """Return a text's tokens, what was said, why it stopped and the prompt's scores; or what
        is wrong.
        """
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) + 1 >= self.context:
            return (
                f"This model's maximum context length is {self.context} tokens, the prompt has "
                f"{len(ids)}"
            )
        box: queue.Queue[tuple[list[Said], str, list[Said]]] = queue.Queue()
        with self.lock:
            self.number += 1
            number = self.number
            self.open[number] = box
        heat = float(body.get("temperature") or 0.0)
        most = min(most, self.context - len(ids))
        self.asked.put(
            {"id": number, "ids": ids, "most": most, "heat": heat, "echo": bool(body.get("echo"))}
        )
        said, reason, scores = box.get()
        return ids, said, reason, scores

    def _word(self, token: int) -> str:
        return str(self.tokenizer.decode([token], skip_special_tokens=False))

    def _body(
        self, kind: str, body: dict[str, Any], choice: dict[str, Any], read: int, said: int
    ) -> dict[str, Any]:
        return {
            "id": uuid.uuid4().hex,
            "object": kind,
            "created": int(time.time()),
            "model": body.get("model") or self.name,
            "choices": [choice],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": said,
                "total_tokens": read + said,
            },
        }


def _refused(message: str, code: str | None = None) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": message, "type": "invalid_request_error", "code": code}}


def serve(arguments: argparse.Namespace, asked: Any, answered: Any, stats: Any) -> None:
    """Answer HTTP on loopback."""
    tokenizer = load_tokenizer(arguments)
    front = Front(tokenizer, arguments.context, asked, answered, stats, Path(arguments.model).stem)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            pages = {
                "/stats": dict(stats),
                "/props": {"chat_template": tokenizer.chat_template},
                "/health": {},
            }
            self._send(200, pages.get(self.path, {"object": "list", "data": [{"id": front.name}]}))

        def do_POST(self) -> None:
            try:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            except ValueError:
                self._send(*_refused("the body is not JSON"))
                return
            chat = self.path.endswith("/chat/completions")
            self._send(*(front.answer(body) if chat else front.complete(body)))

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    ThreadingHTTPServer.request_queue_size = 512
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler)
    print(f"serving on http://127.0.0.1:{arguments.port}/v1", flush=True)
    server.serve_forever()


def load_tokenizer(arguments: argparse.Namespace) -> Any:
    """Return the tokenizer: from a folder, or out of the GGUF itself."""
    from transformers import AutoTokenizer

    if arguments.tokenizer:
        return AutoTokenizer.from_pretrained(arguments.tokenizer)
    path = Path(arguments.model)
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def main() -> None:
    """Read the options, load the model, serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--weights", default="", help="trained tensors in the place of the file's")
    parser.add_argument("--tokenizer")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--slots", type=int, default=128)
    parser.add_argument("--context", type=int, default=16384)
    parser.add_argument(
        "--greedy",
        action="store_true",
        help="quicker: no temperatures, no log-probabilities of answers",
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    manager = context.Manager()
    names = ("requests", "in", "cached", "out", "steps", "up_s", "prompt_s", "step_s")
    shared = manager.dict(dict.fromkeys(names, 0))
    asked, answered = context.Queue(), context.Queue()
    begun = time.perf_counter()
    network = Network(arguments.model, arguments.device, arguments.slots, arguments.context)
    network.greedy = arguments.greedy
    arguments.context = network.context
    if arguments.device == "cuda":
        for bucket in BUCKETS:
            if bucket <= arguments.slots:
                network.capture(bucket)
    if arguments.weights:
        if not Path(arguments.weights).is_file():
            print(f"waiting for {arguments.weights}", flush=True)
        while not Path(arguments.weights).is_file():  # they may still be learned
            time.sleep(0.5)
        network.load(
            network.torch.load(arguments.weights, map_location=arguments.device, weights_only=True)
        )
    print(f"loaded in {time.perf_counter() - begun:.1f} s", flush=True)
    tokenizer = load_tokenizer(arguments)
    marks = ("<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "</s>")
    known = tokenizer.get_vocab()
    ends = {known[mark] for mark in marks if mark in known} | {tokenizer.eos_token_id} - {None}
    front = context.Process(target=serve, args=(arguments, asked, answered, shared), daemon=True)
    front.start()
    Engine(network, ends, answered, Counted(shared)).run(asked)


class Counted(dict):  # type: ignore[type-arg]
    """Counts here, and tells the other process a few times a second."""

    def __init__(self, shared: Any) -> None:
        super().__init__(dict(shared))
        self._shared = shared
        self._told = 0.0

    def __setitem__(self, key: str, value: float) -> None:
        super().__setitem__(key, value)
        now = time.perf_counter()
        if now - self._told > 0.25:
            self._told = now
            self._shared.update(dict(self))


if __name__ == "__main__":
    main()
