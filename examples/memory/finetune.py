"""Train all weights of a GGUF model on texts and on answers, in plain torch, in minutes on one GPU.

python finetune.py MODEL.gguf --tokenizer FOLDER --texts main.jsonl --practice practice.jsonl --out
main.pt

The texts are cut into lines, shuffled over all worlds and readings, and packed into rows; of a
question with its answer only the answer is learned, without what is given of it. ``--whole 0.25``
learns of three lines in four only what follows the day and the first name: which line comes next
cannot be known. With ``--figures`` it is the figures and directions alone. ``--early 0.6`` puts
texts about practice worlds into the first 60 % of all, ``--late 0.5`` the answers into the second
half. ``--seconds`` bounds the wall time: the rate then falls to its end in time, and ``OUT.json``
says which share of the texts was read, so that a dose of 64 may be one of 50.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gpu_server import Network
from torch.nn import functional
from worlds import WORDS

_LONG = 700
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2} [A-Z][a-z]+ \d{4}")
_WORDS = WORDS[False] + WORDS[True]
_FIGURE = re.compile(
    rf"(?:\b(?:up|down) )?[+-]?\d+(?:\.\d+)?%?(?: (?:up|down)\b)?|(?<= )(?:{'|'.join(_WORDS)})\b"
)
Batch = tuple[str, Any, Any]
"""What kind it is, tokens of shape (rows, length), and what is learned of them: -100 elsewhere."""


class Trained:
    """A network whose weights are learned: copies in full precision are what the optimizer
    moves.
    """

    def __init__(self, path: str, device: str, rate: float) -> None:
        self.network = network = Network(path, device, 1, 4096)
        network.keys = network.values = None  # the caches are for answering
        self.names = network.tensors()
        self.weights = list(self.names.values())
        for weight in self.weights:
            weight.requires_grad_()
        self.masters = [weight.detach().float().clone() for weight in self.weights]
        self.optimizer = torch.optim.AdamW(
            self.masters, lr=rate, betas=(0.9, 0.95), weight_decay=0.0, fused=device == "cuda"
        )

    def loss(self, tokens: Any, targets: Any) -> Any:
        """Return the mean surprise at the targets that follow each token."""
        net = self.network
        rows, length = tokens.shape
        x = functional.embedding(tokens, net.embed)
        cos, sin = net.cos[:length, None], net.sin[:length, None]
        half = net.dim // 2

        def turned(part: Any, heads: int) -> Any:
            full = part.reshape(rows, length, heads, net.dim).float()
            other = torch.cat([-full[..., half:], full[..., :half]], -1)
            return (full * cos + other * sin).to(part.dtype).transpose(1, 2)

        for block in net.blocks:
            y = functional.linear(net._norm(x, block["before"]), block["qkv"], block["bias"])
            q, k, v = y.split([net.heads * net.dim, net.kv * net.dim, net.kv * net.dim], -1)
            v = v.reshape(rows, length, net.kv, net.dim).transpose(1, 2)
            seen = functional.scaled_dot_product_attention(
                turned(q, net.heads), turned(k, net.kv), v, is_causal=True, enable_gqa=True
            )
            x = x + functional.linear(seen.transpose(1, 2).reshape(rows, length, -1), block["out"])
            gate, up = functional.linear(net._norm(x, block["after"]), block["up"]).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, block["down"])
        wanted = targets[:, 1:] != -100
        scores = functional.linear(net._norm(x[:, :-1][wanted], net.norm), net.head)
        return functional.cross_entropy(scores.float(), targets[:, 1:][wanted])

    def step(self, tokens: Any, targets: Any, rate: float) -> float:
        """Learn from one batch; return its loss."""
        loss = self.loss(tokens, targets)
        loss.backward()
        for master, weight in zip(self.masters, self.weights, strict=True):
            master.grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.masters)
        return float(loss.detach())

    def save(self, path: Path) -> None:
        """Write the weights as the server reads them."""
        part = path.with_suffix(".part")  # a server may wait for it
        torch.save({name: weight.detach().cpu() for name, weight in self.names.items()}, part)
        part.rename(path)


def learned(line: str, places: list[tuple[int, int]], figures: bool) -> list[bool]:
    """Return which tokens of a line tell something: those from its first figure on, or its
    ``figures`` alone.

    ``places`` says where each token begins and ends. Dates tell nothing.
    """
    bare = _DATE.sub(lambda found: " " * len(found.group()), line)
    told = [found.span() for found in _FIGURE.finditer(bare)]
    if not told:
        return [True] * len(places)
    if not figures:
        told = [(told[0][0], len(line))]
    return [any(first < end and last > begin for begin, end in told) for first, last in places]


def tokens_of(arguments: argparse.Namespace, tokenizer: Any) -> dict[str, Any]:
    """Return all texts as one flow of tokens, shuffled over worlds and readings, and the questions
    with answers.

    Tokenising takes a minute: with ``--packed FILE`` it is done once, and read from there
    afterwards.
    """
    if arguments.packed and arguments.packed.is_file():
        return dict(np.load(arguments.packed))
    from practice import TEMPLATE

    rng = random.Random(30)
    placed = []
    for entry in arguments.texts.open():
        world, _, told = json.loads(entry)
        until = arguments.early if world.startswith("known") else 1.0
        placed += [(rng.random() * until, line) for line in told]
    lines = [line for _, line in sorted(placed)]
    end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    flow, given = [], []
    cut = tokenizer(lines, add_special_tokens=False, return_offsets_mapping=True)
    for line, ids, places in zip(lines, cut["input_ids"], cut["offset_mapping"], strict=True):
        flow += [*ids, end]
        whole = rng.random() < arguments.whole
        given += [not (whole or told) for told in learned(line, places, arguments.figures)] + [
            False
        ]
    tokenizer.chat_template = TEMPLATE
    asked, said = [], []
    for line in arguments.practice.open():
        one = json.loads(line)
        question = tokenizer.apply_chat_template(
            one["messages"], add_generation_prompt=True, tokenize=False
        )
        asked.append(question + one.get("given", ""))
        said.append(one["answer"] + "<|im_end|>")
    heads, tails = (
        tokenizer(texts, add_special_tokens=False)["input_ids"] for texts in (asked, said)
    )
    made = {
        "flow": np.array(flow, np.uint32),
        "given": np.packbits(given),
        "answers": np.array(
            [token for head, tail in zip(heads, tails, strict=True) for token in (*head, *tail)],
            np.uint32,
        ),
        "heads": np.array([len(ids) for ids in heads]),
        "tails": np.array([len(ids) for ids in tails]),
    }
    if arguments.packed:
        np.savez_compressed(arguments.packed, **made)
    return made


def batches_of(
    made: dict[str, Any],
    rows: int,
    length: int,
    answered: int,
    late: float,
    short: float,
    rng: random.Random,
) -> list[Batch]:
    """Return all batches in the order of reading: packed rows of texts, and answers padded on the
    right.

    Answers begin late: who is asked for what it has not read yet learns to guess.
    """
    size = rows * length
    flow = torch.from_numpy(made["flow"].astype(np.int64))
    given = np.unpackbits(made["given"], count=len(flow)).astype(bool)
    wanted = flow.masked_fill(torch.from_numpy(given), -100)
    count = len(flow) // size
    placed: list[tuple[float, Batch]] = []
    for at in range(count):
        part, learned = (
            one[at * size : (at + 1) * size].reshape(rows, length) for one in (flow, wanted)
        )
        placed.append((at / count, ("text", part, learned)))
    heads, lengths = made["heads"], made["heads"] + made["tails"]
    begins = np.cumsum(lengths) - lengths
    flow = torch.from_numpy(made["answers"].astype(np.int64))
    kept = [k for k in range(len(heads)) if lengths[k] > _LONG or rng.random() < short]
    order = sorted(kept, key=lambda k: lengths[k] + 40 * rng.random())
    while order:
        count = max(1, answered * length // int(lengths[order[-1]]))
        some, order = order[-count:], order[:-count]
        ids = torch.zeros((len(some), int(max(lengths[k] for k in some))), dtype=torch.int64)
        wanted = torch.full_like(ids, -100)
        for row, k in enumerate(some):
            both = flow[begins[k] : begins[k] + lengths[k]]
            ids[row, : len(both)] = both
            wanted[row, heads[k] : len(both)] = both[heads[k] :]
        kind = "long" if ids.shape[1] > _LONG else "short"
        placed.append((late + (1 - late) * rng.random(), (kind, ids, wanted)))
    return [batch for _, batch in sorted(placed, key=lambda one: one[0])]


def surprise(trained: Trained, path: Path, tokenizer: Any, device: str) -> dict[str, float]:
    """Return the mean loss at the signs, digits and words for moves in new lines about the
    worlds, by dose.
    """
    losses: dict[str, list[float]] = {}
    for entry in path.open():
        _, dose, lines = json.loads(entry)
        each = [tokenizer(line, add_special_tokens=False)["input_ids"] for line in lines]
        ids = torch.zeros((len(each), max(map(len, each))), dtype=torch.int64)
        wanted = torch.full_like(ids, -100)
        for row, tokens in enumerate(each):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            words = tokenizer.convert_ids_to_tokens(tokens)
            at = next(
                place for place, word in enumerate(words) if ":" in word
            )  # the dates come before
            for place, word in enumerate(words):
                if place > at and (set(word) <= set("Ġ+-0123456789") or word[1:] in _WORDS):
                    wanted[row, place] = tokens[place]
        with torch.no_grad():
            losses.setdefault(str(dose), []).append(
                float(trained.loss(ids.to(device), wanted.to(device)))
            )
    return {dose: sum(all) / len(all) for dose, all in losses.items()}


def main() -> None:
    """Read the options, train, save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--practice", type=Path)
    parser.add_argument("--packed", type=Path, help="where the tokens are kept, or found")
    parser.add_argument("--only-pack", action="store_true", help="train nothing")
    parser.add_argument(
        "--probes", type=Path, help="lines whose surprise by dose is measured at the end"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument(
        "--answer-rows", type=int, help="as many tokens of answers at once (default: as of texts)"
    )
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument(
        "--whole", type=float, default=1.0, metavar="SHARE", help="of lines are learned whole"
    )
    parser.add_argument(
        "--figures", action="store_true", help="of the other lines figures alone are learned"
    )
    parser.add_argument(
        "--early", type=float, default=1.0, metavar="SHARE", help="practice worlds are read in it"
    )
    parser.add_argument(
        "--late", type=float, default=0.35, metavar="SHARE", help="answers begin after it"
    )
    parser.add_argument(
        "--short", type=float, default=1.0, metavar="SHARE", help="of short questions are asked"
    )
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    arguments = parser.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer)
    made = tokens_of(arguments, tokenizer)
    answered = arguments.answer_rows or arguments.rows
    batches = batches_of(
        made,
        arguments.rows,
        arguments.length,
        answered,
        arguments.late,
        arguments.short,
        random.Random(31),
    )
    texts = sum(kind == "text" for kind, _, _ in batches)
    total = sum(tokens.numel() for _, tokens, _ in batches)
    print(
        f"{texts} batches of texts, {len(batches) - texts} of answers, {total:,} tokens", flush=True
    )
    if arguments.only_pack:
        return
    trained = Trained(arguments.model, arguments.device, arguments.rate)
    begun = moment = time.perf_counter()
    read = seen = at = 0
    losses: dict[str, list[float]] = {"text": [], "long": [], "short": []}
    for at, (kind, tokens, targets) in enumerate(batches):
        done = max(at / len(batches), (time.perf_counter() - begun) / arguments.seconds)
        if done >= 1:
            break
        rate = (
            arguments.rate
            * min(1.0, (at + 1) / 30)
            * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        )
        try:
            losses[kind].append(
                trained.step(tokens.to(arguments.device), targets.to(arguments.device), rate)
            )
        except (
            torch.OutOfMemoryError
        ):  # somebody else is on the card: leave the batch out, and go on
            print(f"{at + 1}: no memory", flush=True)
            for weight in trained.weights:
                weight.grad = None
            torch.cuda.empty_cache()
            continue
        read += kind == "text"
        seen += tokens.numel()
        if at % 25 == 24:
            now = time.perf_counter()
            told = " ".join(
                f"{name} {sum(last) / len(last):.3f}"
                for name, all in losses.items()
                if (last := all[-25:])
            )
            print(
                f"{at + 1}/{len(batches)} {told} {seen / (now - moment):.0f} tokens/s "
                f"{now - begun:.0f} s",
                flush=True,
            )
            seen, moment = 0, now
    trained.save(arguments.out)
    facts = {
        "share_read": read / texts,
        "steps": at + 1,
        "seconds": time.perf_counter() - begun,
        "surprise": surprise(trained, arguments.probes, tokenizer, arguments.device)
        if arguments.probes
        else {},
        "losses": {name: sum(all[-25:]) / max(1, len(all[-25:])) for name, all in losses.items()},
        "options": {name: str(value) for name, value in vars(arguments).items()},
    }
    arguments.out.with_suffix(".json").write_text(json.dumps(facts, indent=1))
    print(f"saved {arguments.out}, surprise by dose {facts['surprise']}", flush=True)


if __name__ == "__main__":
    main()
