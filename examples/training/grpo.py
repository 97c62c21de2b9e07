"""GRPO on generated trading tasks, in plain torch: a model learns to write strategies from what a
judge pays.

    python examples/training/grpo.py MODEL.gguf --tokenizer FOLDER --out OUT --minutes 10 [--warm 1500]
    [--no-judge]

Tasks come from ``quantcode``'s families: those of the split ``train`` are learned from, variants of
them that were never drawn and the families of the split ``test`` are only examined. A step samples
``--group`` answers to each of ``--prompts`` tasks, the reward (two drawn markets, fed bar by bar in
the sandbox) says how near each comes to its reference, and every answer's tokens are made likelier
or less likely by how much better it is than its group. While answers are judged the next ones are
sampled: a step learns from a policy one step old, by ratios that are cut (``--clip``), and leaving
the start costs (``--leash``). ``--warm N`` first learns from N references, and says so in the log;
``--no-judge`` pays for running and trading alone, the control that collapses.

Every ``--every`` seconds tasks of the split ``validation`` and new variants of learned families are
examined (``tradeassay_programs.code.collapse.EarlyStop``): the best state is kept; where answers
have become worse beyond chance training goes back to it at half the rate, and the third time it
ends. The best state is examined at last.

OUT/log.jsonl has a line per step and per examination, OUT/samples.jsonl every examined answer
(``examples/training/record_samples.py`` makes recordings of them), OUT/steps.jsonl one trained
group per step. The judge is a process of its own, so that torch and the sandbox's libraries need
not agree; ``--judge-path`` is its PYTHONPATH. ``--device cpu`` with a small model and ``--brief``
tries everything out.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.utils.checkpoint

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpu_server import Network

WARM, TRAIN, UNSEEN, VALID = 11, 12, 101, 202
"""Seeds of the drawn tasks: of the warm start, of training, of what is examined, of what says
when to go back.
"""
END = "<|im_end|>"
EXAMINED = 384
"""The most tokens of an answer that is examined; the longest reference of the families has 214."""


class Judge:
    """The other end of ``grpo_judge.py``."""

    def __init__(self, options: argparse.Namespace) -> None:
        command = [
            options.judge_python,
            str(Path(__file__).with_name("grpo_judge.py")),
            str(options.workers),
        ]
        environment = os.environ | (
            {"PYTHONPATH": options.judge_path} if options.judge_path else {}
        )
        self.process = subprocess.Popen(
            command + ["--no-judge"] * options.no_judge,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **asked: Any) -> Any:
        """Ask, and wait for the answer."""
        self.send(**asked)
        return self.receive()

    def send(self, **asked: Any) -> None:
        """Ask, and go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Wait for the answer to what was asked."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the judge has ended")
        return json.loads(line)


def turn_kernel() -> Any:
    """Return what turns a new token's query and key by its place and writes key and value into
    the caches.
    """
    global tl  # a kernel's source is compiled apart from this function: it sees the module's names only
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(
        y_ptr,
        q_ptr,
        k_ptr,
        v_ptr,
        slot_ptr,
        place_ptr,
        cos_ptr,
        sin_ptr,
        slot_stride,
        head_stride,
        HEADS: tl.constexpr,
        KV: tl.constexpr,
        DIM: tl.constexpr,
    ):
        row = tl.program_id(0)
        head = tl.program_id(1)
        dims = tl.arange(0, DIM)
        base = (row * (HEADS + 2 * KV) + head) * DIM
        x = tl.load(y_ptr + base + dims)
        place = tl.load(place_ptr + row)
        cell = tl.load(slot_ptr + row) * slot_stride + place * DIM
        if head < HEADS + KV:
            other = tl.load(y_ptr + base + (dims + DIM // 2) % DIM).to(tl.float32)
            other = tl.where(dims < DIM // 2, -other, other)
            cos = tl.load(cos_ptr + place * DIM + dims)
            sin = tl.load(sin_ptr + place * DIM + dims)
            x = (x.to(tl.float32) * cos + other * sin).to(x.dtype)
        if head < HEADS:
            tl.store(q_ptr + (row * HEADS + head) * DIM + dims, x)
        elif head < HEADS + KV:
            tl.store(k_ptr + cell + (head - HEADS) * head_stride + dims, x)
        else:
            tl.store(v_ptr + cell + (head - HEADS - KV) * head_stride + dims, x)

    return kernel


class Sampler(Network):
    """The network of ``gpu_server`` with a step that says the next token and nothing else, in a
    third of the kernels: no list of likely tokens, one kernel for turning and storing, attention
    without splits.
    """

    turn: Any = None

    def _choose(self, x: Any, heat: Any) -> tuple[Any, ...]:
        torch = self.torch
        scores = torch.nn.functional.linear(x, self.head).float()
        noise = torch.empty_like(scores).exponential_().clamp_min_(1e-20).log_()
        warm = scores / heat.clamp_min(1e-6)[:, None] - noise
        chosen = torch.where(heat[:, None] > 0, warm, scores).argmax(-1)
        return chosen, scores.gather(-1, chosen[:, None])[:, 0] - scores.logsumexp(-1)

    def _step(self, state: dict[str, Any]) -> None:
        token, place, slot = state["token"], state["place"], state["slot"]
        if self.turn is None:
            x = self._through(token, place, slot, self._attend_one(slot, place))
        else:
            x = self._quickly(token, place, slot)
        for name, found in zip(("token", "sure"), self._choose(x, state["heat"]), strict=True):
            state[name].copy_(found)
        state["place"].add_(1).clamp_max_(self.context - 1)

    def _quickly(self, tokens: Any, places: Any, slots: Any) -> Any:
        torch, functional, rows = self.torch, self.torch.nn.functional, len(tokens)
        x = self.embed[tokens]
        q = torch.empty((rows, self.heads, self.dim), dtype=self.dtype, device=self.device)
        seen = torch.empty((rows, self.heads, self.dim), dtype=torch.float32, device=self.device)
        best, total = (torch.empty((rows, self.heads, 1), device=self.device) for _ in range(2))
        for keys, values, block in zip(self.keys, self.values, self.blocks, strict=True):
            y = functional.linear(self._norm(x, block["before"]), block["qkv"], block["bias"])
            self.turn[(rows, self.heads + 2 * self.kv)](
                y,
                q,
                keys,
                values,
                slots,
                places,
                self.cos,
                self.sin,
                keys.stride(0),
                keys.stride(1),
                HEADS=self.heads,
                KV=self.kv,
                DIM=self.dim,
            )
            self.kernel[(rows, self.kv, 1)](
                q,
                keys,
                values,
                slots,
                places,
                seen,
                best,
                total,
                self.dim**-0.5,
                keys.stride(0),
                keys.stride(1),
                HEADS=self.heads,
                GROUP=self.heads // self.kv,
                ROWS=16,
                DIM=self.dim,
                BLOCK=64,
                SPLITS=1,
            )
            x = x + functional.linear((seen / total).to(self.dtype).reshape(rows, -1), block["out"])
            gate, up = functional.linear(self._norm(x, block["after"]), block["up"]).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, block["down"])
        return self._norm(x, self.norm)

    def quicken(self, asked: list[list[int]]) -> float:
        """Use the quick step if it finds what the plain one finds; return how far they are
        apart.
        """
        self.turn, count = turn_kernel(), len(asked)
        with self.torch.inference_mode():
            self.prompt(
                [(at, 0, ids[:-1]) for at, ids in enumerate(asked)], [0.0] * count, [None] * count
            )
            state = self._state(count)
            self._fill(state, [(at, ids[-1], len(ids) - 1, 0.0) for at, ids in enumerate(asked)])
            token, place, slot = state["token"], state["place"], state["slot"]
            plain = self._through(token, place, slot, self._attend_one(slot, place)).float()
            apart = float((self._quickly(token, place, slot).float() - plain).norm() / plain.norm())
        if not apart < 0.1:
            self.turn = None
        return apart


class Policy:
    """A network from which answers are sampled, many at a time, and whose weights are moved."""

    def __init__(self, options: argparse.Namespace) -> None:
        from transformers import AutoTokenizer

        self.options = options
        torch.manual_seed(options.seed)
        self.tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
        known = self.tokenizer.get_vocab()
        self.ends = [known[mark] for mark in (END, "<|endoftext|>") if mark in known]
        self.slots = options.prompts * options.group
        self.net = Sampler(options.model, options.device, self.slots, options.context)
        self.weights = list(self.net.tensors().values())
        for weight in self.weights:
            weight.requires_grad_()
        # Steps are smaller than bf16 can show: what rounding takes away is kept and added to the next one.
        self.rests = [torch.zeros_like(weight) for weight in self.weights]
        self.first = [torch.zeros_like(weight) for weight in self.weights]
        self.second = [torch.zeros_like(weight) for weight in self.weights]
        self.start: list[Any] = []
        self.kept: list[Any] = []
        self.kept_moves = 0
        self.moves = 0
        self.said = 0

    def prepare(self, log: Log) -> None:
        """Choose the way a step is taken, and record it as graphs for several numbers of open
        answers.
        """
        if self.options.device == "cuda":
            try:
                asked = [
                    self.encode([{"role": "user", "content": f"Write {n} lines of Python."}])
                    for n in range(2, 18)
                ]
                log.write(
                    "log",
                    event="quick step",
                    apart=self.net.quicken(asked),
                    used=self.net.turn is not None,
                )
            except Exception as error:  # whatever a compiler says: the plain step is always there
                self.net.turn = None
                log.write("log", event="quick step", used=False, error=repr(error)[:300])
            with torch.inference_mode():
                for size in {max(1, self.slots >> k) for k in range(4)}:
                    self.net.capture(size)

    def encode(self, messages: list[dict[str, str]]) -> list[int]:
        """Return the tokens of a question, up to where the answer begins."""
        text = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def sample(
        self, prompts: list[list[int]], each: int, heat: float, most: int
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Return ``each`` answers to every prompt, as tokens with their end, and the
        log-probabilities of these; no more than there are slots.
        """
        with torch.inference_mode():
            self._read(prompts, each)
            rows = [ids for ids in prompts for _ in range(each)]
            answers: list[list[int]] = [[] for _ in rows]
            likely: list[list[float]] = [[] for _ in rows]
            most = min(most, self.net.context - max(map(len, prompts)))
            open_ = list(range(len(rows)))
            while open_:
                said, sure = self._steps(
                    [
                        (
                            at,
                            (rows[at] + answers[at])[-1],
                            len(rows[at]) + len(answers[at]) - 1,
                            heat,
                        )
                        for at in open_
                    ],
                    min(16, most - len(answers[open_[0]])),
                )
                for at, tokens, found in zip(open_, said, sure, strict=True):
                    stop = next(
                        (n + 1 for n, token in enumerate(tokens) if token in self.ends), len(tokens)
                    )
                    answers[at] += tokens[:stop]
                    likely[at] += found[:stop]
                open_ = [
                    at
                    for at in open_
                    if answers[at][-1] not in self.ends and len(answers[at]) < most
                ]
        self.said += sum(map(len, answers))
        return answers, likely

    def _steps(
        self, rows: list[tuple[int, int, int, float]], count: int
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Return the next tokens of open answers and how likely they were; as answers end,
        smaller graphs do.
        """
        net, fits = self.net, [size for size in self.net.graphs if size >= len(rows)]
        if fits:
            graph, state = net.graphs[min(fits)]
            step = graph.replay
        else:
            state = net._state(len(rows))
            step = functools.partial(net._step, state)
        net._fill(state, rows + [(net.slots, 0, 0, 0.0)] * (len(state["slot"]) - len(rows)))
        said = torch.empty(
            (count, len(state["slot"])), dtype=torch.int64, device=self.options.device
        )
        sure = torch.empty((count, len(state["slot"])), device=self.options.device)
        for at in range(count):
            step()
            said[at], sure[at] = state["token"], state["sure"]
        return said.T[: len(rows)].tolist(), sure.T[: len(rows)].tolist()

    def _read(self, prompts: list[list[int]], each: int) -> None:
        """Put all prompts but their last tokens into the caches; what they share is read once."""
        shared = common([ids[:-1] for ids in prompts])
        firsts = [place * each for place in range(len(prompts))]
        if shared:
            self.net.prompt([(0, 0, prompts[0][:shared])], [0.0], [None])
            self._copy(0, firsts[1:], shared)
        parts = [
            (at, shared, ids[shared:-1])
            for at, ids in zip(firsts, prompts, strict=True)
            if len(ids) - 1 > shared
        ]
        for start in range(0, len(parts), 16):
            some = parts[start : start + 16]
            self.net.prompt(some, [0.0] * len(some), [None] * len(some))
        for at, ids in zip(firsts, prompts, strict=True):
            self._copy(at, list(range(at + 1, at + each)), len(ids) - 1)

    def _copy(self, source: int, targets: list[int], length: int) -> None:
        if targets:
            for cache in (self.net.keys, self.net.values):
                cache[:, targets, :, :length] = cache[:, source : source + 1, :, :length]

    def text(self, tokens: list[int]) -> str:
        """Return an answer's words."""
        kept = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self.tokenizer.decode(tokens, **kept))

    def learn(self, prefix: list[int], parts: list[list[int]], worth: list[list[float]]) -> float:
        """Add the gradient of minus the worth of tokens times their log-probabilities; return
        that sum.
        """
        weight = torch.tensor([one for part in worth for one in part], device=self.options.device)
        loss = -(weight * self.likely(prefix, parts)).sum()
        loss.backward()
        return float(loss.detach())

    def reinforce(
        self,
        prefix: list[int],
        parts: list[list[int]],
        sampled: list[list[float]],
        better: list[float],
        weights: list[float],
    ) -> tuple[float, dict[str, float]]:
        """Add the gradient of GRPO for the answers to one prompt; return the loss and sums over
        their tokens.

        ``sampled`` has the log-probabilities that the tokens were sampled with, ``better`` how much
        each answer is worth, ``weights`` what one token of it counts. Ratios are cut as in PPO,
        also from above for answers that are worse than their group, and the distance to the start
        is the k3 estimate of its divergence.
        """
        device, options = self.options.device, self.options

        def spread(values: list[float]) -> Any:
            each = [value for value, part in zip(values, parts, strict=True) for _ in part]
            return torch.tensor(each, device=device)

        worth, weight = spread(better), spread(weights)
        old = torch.tensor([one for part in sampled for one in part], device=device)
        with (
            torch.no_grad()
        ):  # before the pass that is learned from: what that keeps must not change
            self._swap()
            start = self.likely(prefix, parts)
            self._swap()
        now = self.likely(prefix, parts)
        moved = (now - old).clamp(-1.0, 1.0)
        ratio = moved.exp()
        gain = torch.minimum(ratio * worth, ratio.clamp(1 - options.clip, 1 + options.clip) * worth)
        away = (start - now).clamp(-5.0, 5.0)
        far = away.exp() - away - 1
        loss = (weight * (options.leash * far - gain)).sum()
        loss.backward()
        cut = (ratio * worth > gain + 1e-9).float()
        sums = {"moved": moved.abs(), "cut": cut, "away": far, "entropy": -now}
        return float(loss.detach()), {name: float(one.detach().sum()) for name, one in sums.items()}

    def _swap(self) -> None:
        """Change places with the start; the graphs that sample go on at the addresses they know."""
        for at, weight in enumerate(self.weights):
            weight.data, self.start[at] = self.start[at], weight.data

    def likely(self, prefix: list[int], parts: list[list[int]]) -> Any:
        """Return the log-probabilities of the tokens of all parts.

        All parts continue one prefix, which is read once: each sees the prefix and itself.
        """
        net, device = self.net, self.options.device
        functional = torch.nn.functional
        tokens, places, owners, before = (
            list(prefix),
            list(range(len(prefix))),
            [0] * len(prefix),
            [],
        )
        for number, part in enumerate(parts, 1):
            before += [len(prefix) - 1, *range(len(tokens), len(tokens) + len(part) - 1)]
            places += range(len(prefix), len(prefix) + len(part))
            owners += [number] * len(part)
            tokens += part
        fill = -len(tokens) % 64
        wanted = torch.tensor([token for part in parts for token in part], device=device)
        owner = torch.tensor(owners + [-1] * fill, device=device)
        order = torch.arange(len(owner), device=device)
        hidden = (order[:, None] < order) | ((owner != 0) & (owner != owner[:, None]))
        at = torch.tensor(places + [0] * fill, device=device)
        cos, sin = net.cos[at][:, None], net.sin[at][:, None]
        x = functional.embedding(torch.tensor(tokens + [0] * fill, device=device), net.embed)
        half, length = net.dim // 2, len(owner)

        def turned(part: Any, heads: int, scale: float = 1.0) -> Any:
            full = part.reshape(length, heads, net.dim).float()
            other = torch.cat([-full[..., half:], full[..., :half]], -1)
            return (full * (scale * cos) + other * (scale * sin)).to(part.dtype)

        def through(x: Any, block: dict[str, Any]) -> Any:
            y = functional.linear(net._norm(x, block["before"]), block["qkv"], block["bias"])
            q, k, v = y.split([net.heads * net.dim, net.kv * net.dim, net.kv * net.dim], -1)
            group = net.heads // net.kv
            k = turned(k, net.kv).repeat_interleave(group, 1)
            v = v.reshape(length, net.kv, net.dim).repeat_interleave(group, 1)
            q, k, v = (part.transpose(0, 1) for part in (turned(q, net.heads, net.dim**-0.5), k, v))
            # Plain: with fused kernels gradients were no numbers at some lengths (H200; not traced further).
            scores = (q @ k.transpose(1, 2)).masked_fill_(hidden, -1e30)
            seen = scores.softmax(-1, dtype=torch.float32).to(v.dtype) @ v
            x = x + functional.linear(seen.transpose(0, 1).reshape(length, -1), block["out"])
            gate, up = functional.linear(net._norm(x, block["after"]), block["up"]).chunk(2, -1)
            return x + functional.linear(functional.silu(gate) * up, block["down"])

        def likely(rows: Any, tokens: Any) -> Any:
            return -functional.cross_entropy(
                functional.linear(rows, net.head).float(), tokens, reduction="none"
            )

        kept = functools.partial(
            torch.utils.checkpoint.checkpoint, use_reentrant=False, preserve_rng_state=False
        )
        # What a layer needs on the way back, in bytes: as many layers as fit keep it, the others do it again.
        needs = length * (6 * net.heads * length + 12 * net.blocks[0]["up"].shape[0])
        again = net.layers - int(self.options.keep * 2**30 / needs)
        for layer, block in enumerate(net.blocks):
            x = kept(through, x, block) if layer < again else through(x, block)
        x = net._norm(x, net.norm)[torch.tensor(before, device=device)]
        ends = range(0, len(wanted), 1024)
        return torch.cat([kept(likely, x[at : at + 1024], wanted[at : at + 1024]) for at in ends])

    def size(self) -> float:
        """Return the length of the gradient that was added up."""
        known = [weight.grad for weight in self.weights if weight.grad is not None]
        return float(torch.stack(torch._foreach_norm(known)).float().norm()) if known else 0.0

    def keep(self) -> None:
        """Copy the weights and what Adam knows into the machine's memory."""
        whole = (*self.weights, *self.rests, *self.first, *self.second)
        self.kept = self.kept or [
            torch.empty_like(one, device="cpu", requires_grad=False) for one in whole
        ]
        self.kept_moves = self.moves
        with torch.no_grad():
            for one, kept in zip(whole, self.kept, strict=True):
                kept.copy_(one)

    def restore(self) -> None:
        """Go back to what was kept."""
        self.moves = self.kept_moves
        whole = (*self.weights, *self.rests, *self.first, *self.second)
        with torch.no_grad():
            for one, kept in zip(whole, self.kept, strict=True):
                one.copy_(kept)

    def forget(self) -> None:
        """Drop the gradient that was added up."""
        for weight in self.weights:
            weight.grad = None

    def move(self, rate: float) -> float:
        """Take one step of Adam with what was added up; return the gradient's length before it
        was cut to 1.
        """
        size = self.size()
        with torch.no_grad():
            grads = [weight.grad for weight in self.weights]
            scale = min(1.0, 1.0 / (size + 1e-6))
            if size and math.isfinite(size):
                self.moves += 1
                for weight, rest, grad, one, two in zip(
                    self.weights, self.rests, grads, self.first, self.second, strict=True
                ):
                    if grad is not None:
                        flat = (
                            part.view(-1).split(1 << 24)
                            for part in (weight.data, rest, grad, one, two)
                        )
                        for pieces in zip(*flat, strict=True):
                            self._adam(*pieces, scale, rate)
        self.forget()
        return size

    def _adam(
        self, weight: Any, rest: Any, grad: Any, one: Any, two: Any, scale: float, rate: float
    ) -> None:
        full = grad.float() * scale
        one.lerp_(full.to(one.dtype), 0.1)
        two.lerp_((full * full).to(two.dtype), 0.05)
        mean = one.float() / (1 - 0.9**self.moves)
        spread = (two.float() / (1 - 0.95**self.moves)).sqrt_().add_(1e-8)
        moved = weight.float() + rest.float() - rate * mean / spread
        weight.copy_(moved)
        rest.copy_(moved - weight.float())


def common(rows: list[list[int]]) -> int:
    """Return how many tokens all rows begin with alike."""
    short = min(map(len, rows))
    return next((at for at in range(short) if len({row[at] for row in rows}) > 1), short)


class Log:
    """What happened, a line at a time, with the seconds since the start."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.begun = folder, time.time()

    def write(self, name: str, **facts: Any) -> None:
        """Append a line."""
        with (self.folder / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps({"s": round(time.time() - self.begun, 1), **facts}) + "\n")
        if name == "log":
            print(json.dumps({"s": round(time.time() - self.begun), **facts})[:600], flush=True)


def rates(scored: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the shares that compile, run, trade and are solved, how near they come, and the
    mean reward.
    """
    count = max(1, len(scored))
    near = sum(sum(v for k, v in one["parts"].items() if k not in STAGES) for one in scored)
    found = {
        name: sum(one["parts"].get(name, 0) > 0 for one in scored) / count for name in STAGES[:3]
    }
    return {
        "n": len(scored),
        **found,
        "agreement": near / count / 0.92,
        "solved": sum(one["outcome"] == "solved" for one in scored) / count,
        "reward": sum(one["value"] or 0.0 for one in scored) / count,
    }


STAGES = ("compile", "backtest", "trade", "reason")


def examine(
    policy: Policy,
    judge: Judge,
    log: Log,
    when: str,
    sets: dict[str, list[dict[str, Any]]],
    each: int = 1,
) -> list[str]:
    """Answer every task once, greedily, or ``each`` times, sampled; write down what the judge
    says and return what it advises.
    """
    asked = [policy.encode(task["messages"]) for tasks in sets.values() for task in tasks]
    answers: list[str] = []
    begun, room = time.time(), policy.slots // each
    for start in range(0, len(asked), room):
        heat = policy.options.heat if each > 1 else 0.0
        answers += map(
            policy.text, policy.sample(asked[start : start + room], each, heat, EXAMINED)[0]
        )
    sampled, advice = time.time() - begun, []
    for name, tasks in sets.items():
        ids = [task["id"] for task in tasks for _ in range(each)]
        some, answers = answers[: len(ids)], answers[len(ids) :]
        found = judge.ask(op="score", pool="examine", ids=ids, answers=some, set=name)
        for task, answer, one in zip(ids, some, found["scored"], strict=True):
            log.write("samples", when=when, set=name, task=task, answer=answer, **one)
        advice.append(found["advice"])
        log.write(
            "log",
            event="examined",
            when=when,
            set=name,
            **rates(found["scored"]),
            collapsed=found["collapsed"],
            largest_share=found["largest_share"],
            nearer=found["nearer"],
            forgets=found["forgets"],
            advice=found["advice"],
            sampling_s=round(sampled, 1),
        )
    return advice


def warm_start(
    policy: Policy, judge: Judge, log: Log, options: argparse.Namespace, until: float
) -> None:
    """Learn from references of the training families, eight at a time, until enough sampled answers
    are right.

    What is asked meanwhile is drawn from another seed than everything that is examined.
    """
    drawn = {"op": "tasks", "family": "train", "seed": WARM + 1000 * options.seed}
    made = judge.ask(**drawn, count=options.warm)
    chat = judge.ask(**drawn, count=options.warm, wording="conversational")
    asked = judge.ask(**drawn, count=policy.slots // 2, start=options.warm)
    rng = random.Random(options.seed)
    rows = []
    for formal, other in zip(made, chat, strict=True):
        task = formal if rng.random() < 0.6 else other
        rows.append(
            (policy.encode(task["messages"]), policy.tokenizer(task["answer"] + END)["input_ids"])
        )
    rng.shuffle(rows)
    shared = common([prompt for prompt, _ in rows])
    for start in range(0, len(rows), 8):
        some = rows[start : start + 8]
        tokens = sum(len(said) for _, said in some)
        parts = [prompt[shared:] + said for prompt, said in some]
        worth = [
            [0.0] * (len(prompt) - shared) + [1.0 / tokens] * len(said) for prompt, said in some
        ]
        loss = policy.learn(rows[0][0][:shared], parts, worth)
        moved = policy.move(options.warm_rate * min(1.0, (start / 8 + 1) / 3))
        found: dict[str, Any] = {}
        if start >= 8 and options.enough < 1.0:
            prompts = [policy.encode(task["messages"]) for task in asked]
            answers = [
                policy.text(said)
                for said in policy.sample(prompts, 1, options.heat, options.tokens)[0]
            ]
            scored = judge.ask(
                op="score", pool="train", ids=[task["id"] for task in asked], answers=answers
            )
            found = rates(scored["scored"])
        log.write("log", event="warm", read=start + len(some), loss=loss, gradient=moved, **found)
        if found.get("solved", 0.0) >= options.enough or time.time() > until:
            break


def lessons(judge: Judge, options: argparse.Namespace) -> Iterator[list[dict[str, Any]]]:
    """Yield the tasks of each step: five of every family are shuffled, so that a step has many
    families.
    """
    rng, first, ready = random.Random(options.seed), 0, []
    asked = {"op": "tasks", "family": "train", "seed": TRAIN + options.seed}
    while True:
        if len(ready) < options.prompts:
            for wording, count in (("formal", 120), ("conversational", 80)):
                ready += judge.ask(**asked, count=count, start=first, wording=wording)
                first += count
            rng.shuffle(ready)
        yield ready[: options.prompts]
        del ready[: options.prompts]


def train(
    policy: Policy, judge: Judge, log: Log, options: argparse.Namespace, until: float, look: Any
) -> None:
    """Sample, judge, learn; ``look`` is asked every ``--every`` seconds what to do.

    The best state is left.
    """
    waiting: tuple[Any, ...] | None = None
    step, slower, drawn = 0, 1.0, lessons(judge, options)
    policy.start = [weight.detach().clone() for weight in policy.weights]
    look("step 0")
    policy.keep()
    kept, start = 0, time.time()
    looked = start

    def rate(now: float) -> float:
        """Rise over ten steps, stay, and fall to a fifth over the last part of the time."""
        rest = (until - now) / max(1.0, until - start)
        return float(
            slower * options.rate * min(1.0, step / 10) * min(1.0, 0.2 + 2.0 * max(0.0, rest))
        )

    tasks, advice, late = next(drawn), "go on", False
    while advice != "stop" and not late:
        begun, before = time.time(), policy.said
        prompts = [policy.encode(task["messages"]) for task in tasks]
        answers, likely = policy.sample(prompts, options.group, options.heat, options.tokens)
        sampled = time.time()
        times = {
            "sample_s": sampled - begun,
            "tokens_per_s": (policy.said - before) / (sampled - begun),
        }
        last, waiting = waiting, (tasks, prompts, answers, likely)
        if last is not None:  # judged while these were sampled
            found = judge.receive()
            times["judge_s"] = time.time() - sampled
        ids = [task["id"] for task in tasks for _ in range(options.group)]
        step += 1
        tasks = next(drawn)
        judge.send(
            op="score", pool="train", ids=ids, answers=[policy.text(said) for said in answers]
        )
        if last is not None:
            learn_step(policy, log, options, step - 1, last, found, times, rate(begun))
        time.sleep(options.pause)
        late = time.time() > until
        if late or (
            time.time() - looked > options.every and time.time() + options.every / 2 < until
        ):
            learn_step(policy, log, options, step, waiting, judge.receive(), {}, rate(begun))
            waiting = None
            advice = look(f"step {step}")
            looked = time.time()
            if advice == "best":
                policy.keep()
                kept = step
            elif advice != "go on" or late:
                policy.restore()
                slower /= 2
                log.write("log", event="restored", step=step, to=kept, advice=advice)


def learn_step(
    policy: Policy,
    log: Log,
    options: argparse.Namespace,
    step: int,
    batch: Any,
    found: Any,
    seconds: dict[str, float],
    rate: float,
) -> None:
    """Make better answers of each group likelier, worse ones less likely; groups that are alike
    are left out.
    """
    tasks, prompts, answers, likely = batch
    begun, group = time.time(), options.group
    better: list[float] = []
    flat, lost, seen = 0, 0, 0
    for at in range(len(tasks)):
        values = [one["value"] for one in found["scored"][at * group : (at + 1) * group]]
        known = [value for value in values if value is not None]
        mean = sum(known) / max(1, len(known))
        spread = math.sqrt(sum((value - mean) ** 2 for value in known) / max(1, len(known)))
        alike = spread < options.least
        flat += alike
        better += [
            0.0 if alike or value is None else (value - mean) / (spread + 0.05) for value in values
        ]
    tokens = sum(len(said) for said, one in zip(answers, better, strict=True) if one)
    sums: Counter[str] = Counter()
    for at, prompt in enumerate(prompts):
        some = range(at * group, (at + 1) * group)
        if not any(better[k] for k in some):
            continue
        # What was said several times is read once and counts as often.
        often = Counter(tuple(answers[k]) for k in some)
        which = {tuple(answers[k]): k for k in some if better[k]}
        before = [None if weight.grad is None else weight.grad.clone() for weight in policy.weights]
        why = None
        try:
            loss, found_sums = policy.reinforce(
                prompt,
                [answers[k] for k in which.values()],
                [likely[k] for k in which.values()],
                [better[k] for k in which.values()],
                [often[said] / tokens for said in which],
            )
            if not math.isfinite(loss) or not math.isfinite(policy.size()):
                why = {
                    "event": "no number",
                    "loss": loss,
                    "lengths": [len(answers[k]) for k in some],
                }
        except torch.OutOfMemoryError:  # somebody else is on the card
            why = {"event": "no memory"}
            torch.cuda.empty_cache()
        if why is None:
            sums.update(found_sums)
            seen += sum(map(len, which))
        else:  # the group is left out, and what was learned from the others is kept
            lost += 1
            log.write("log", step=step, prompt=len(prompt), **why)
            for weight, grad in zip(policy.weights, before, strict=True):
                weight.grad = grad
    size = policy.move(rate)
    times = {"learn_s": time.time() - begun, **seconds}
    log.write(
        "log",
        event="step",
        step=step,
        **rates(found["scored"]),
        flat=flat,
        lost=lost,
        collapsed=found["collapsed"],
        largest_share=found["largest_share"],
        length=sum(map(len, answers)) / len(answers),
        gradient=round(size, 3),
        rate=rate,
        **{name: round(value / max(1, seen), 5) for name, value in sums.items()},
        **{name: round(value, 1) for name, value in times.items()},
    )
    shown = random.Random(step).randrange(len(tasks))
    for k in range(shown * group, (shown + 1) * group):
        text = policy.text(answers[k])
        log.write(
            "steps",
            step=step,
            task=tasks[shown]["id"],
            better=better[k],
            answer=text,
            **found["scored"][k],
        )


def main() -> None:
    """Read the options; train and examine, or judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?")
    parser.add_argument("--tokenizer")
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="in all, the last examination included"
    )
    parser.add_argument(
        "--reserve", type=float, default=1.5, help="minutes kept for the last examination"
    )
    parser.add_argument(
        "--warm", type=int, default=0, metavar="N", help="references to learn from first"
    )
    parser.add_argument("--warm-rate", type=float, default=2e-5)
    parser.add_argument(
        "--enough",
        type=float,
        default=1.0,
        help="end the warm start when this share of sampled answers is right",
    )
    parser.add_argument(
        "--rate", type=float, default=4e-6, help="6e-6 without clip and leash broke two runs of two"
    )
    parser.add_argument("--clip", type=float, default=0.2, help="how far a token's ratio counts")
    parser.add_argument("--leash", type=float, default=0.04, help="what leaving the start costs")
    parser.add_argument(
        "--least", type=float, default=0.02, help="groups whose rewards spread less are left out"
    )
    parser.add_argument("--no-judge", action="store_true")
    parser.add_argument("--before", action="store_true", help="examine the untrained model, too")
    parser.add_argument(
        "--fixed", action="store_true", help="examine the 144 tasks that come with the package, too"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256, help="the most of an answer in training")
    parser.add_argument("--context", type=int, default=1344)
    parser.add_argument("--heat", type=float, default=1.0)
    parser.add_argument("--every", type=float, default=150.0, help="seconds between examinations")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between steps, for whoever shares the GPU"
    )
    parser.add_argument(
        "--keep", type=float, default=6.0, metavar="GIB", help="memory for what learning needs"
    )
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--judge-path")
    parser.add_argument("--judge-python", default=sys.executable)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--brief", action="store_true", help="few tasks in every examination")
    options = parser.parse_args()
    log = Log(options.out)
    end = log.begun + 60.0 * options.minutes
    log.write(
        "log", event="begun", options={name: str(value) for name, value in vars(options).items()}
    )
    other = Judge(options)
    policy = Policy(options)
    policy.prepare(log)
    log.write("log", event="loaded")

    def tasks(family: str, count: int, **more: Any) -> Any:
        asked = {
            "op": "tasks",
            "family": family,
            "count": 3 if options.brief else count,
            "seed": UNSEEN,
            **more,
        }
        return other.ask(**asked)

    whole = {"unseen families": tasks("test", 110), "seen families": tasks("train", 120)}
    unseen = {"unseen families, sampled": whole["unseen families"]}
    looks = {
        "validation": tasks("train", 44, seed=VALID) + tasks("validation", 40, seed=VALID),
        "unseen families": whole["unseen families"][:44],
    }
    if options.before:
        examine(policy, other, log, "before", whole)
    until = end - 60.0 * options.reserve
    if options.warm:
        warm_start(policy, other, log, options, until)
        examine(policy, other, log, "after the warm start", whole)
        examine(policy, other, log, "after the warm start", unseen, each=4)
    train(
        policy, other, log, options, until, lambda when: examine(policy, other, log, when, looks)[0]
    )
    examine(policy, other, log, "after", whole)
    examine(policy, other, log, "after", unseen, each=4)
    if options.fixed:
        examine(policy, other, log, "after", {"the 144": tasks("fixed", 144)})
    log.write("log", event="over")
    assert other.process.stdin is not None
    other.process.stdin.close()
    threading.Timer(20.0, other.process.kill).start()


if __name__ == "__main__":
    main()
