"""GRPO on generated trading tasks, in plain torch: a model learns to write strategies from what a judge pays.

    python examples/training/grpo.py MODEL.gguf --tokenizer FOLDER --out OUT --minutes 10 [--warm 1500]
    [--no-judge]

Tasks come from ``quantcode``'s families: those of the split ``train`` are learned from, variants of them that were
never drawn and the families of the split ``test`` are only examined. A step samples ``--group`` answers to each of
``--prompts`` tasks, the reward (two drawn markets, fed bar by bar in the sandbox) says how near each comes to its
reference, and every answer's tokens are made likelier or less likely by how much better it is than its group.
While answers are judged the next ones are sampled: a step learns from a policy one step old. ``--warm N`` first
learns from N references, and says so in the log; ``--no-judge`` pays for running and trading alone, the control
that collapses.

OUT/log.jsonl has a line per step and per examination, OUT/samples.jsonl every examined answer
(``examples/training/record_samples.py`` makes recordings of them), OUT/steps.jsonl one trained group per step. The
judge is a process of its own, so that torch and the sandbox's libraries need not agree; ``--judge-path`` is its
PYTHONPATH. ``--device cpu`` with a small model and ``--brief`` tries everything out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SECRET = "5e" * 16
WARM, TRAIN, UNSEEN = 11, 12, 101
"""Seeds of the drawn tasks: of the warm start, of training, of what is examined."""
END = "<|im_end|>"


def judge(workers: int, judged: bool) -> None:
    """Serve tasks and rewards: a JSON line in, a JSON line out."""
    from tradeassay import reward
    from tradeassay.benchmarks.quantcode import draw_tasks, load_task, load_tasks
    from tradeassay.benchmarks.quantcode.dialogue import QuantCodeSettings, opening_messages
    from tradeassay.code.collapse import collapse
    from tradeassay.code.extraction import extract
    from tradeassay.code.judges.markets import DrawConfig
    from tradeassay.code.reward import QUICK

    def pool(draws: DrawConfig, asks: bool) -> Any:
        config = reward.RewardConfig(draws=draws)
        return reward.Pool(judge="behaviour" if asks else None, workers=workers, secret=SECRET, config=config)

    pools = {"train": pool(QUICK, judged), "examine": pool(DrawConfig(markets=3, mended=0, added=0), True)}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["op"] == "tasks":
            wording = asked.get("wording", "formal")
            family, count = asked["family"], asked["count"]
            tasks = (
                load_tasks()[:count]
                if family == "fixed"
                else draw_tasks(family, count, asked["seed"], start=asked.get("start", 0))
            )
            said: Any = [
                {
                    "id": task.id,
                    "messages": [
                        {"role": one.role, "content": one.text}
                        for one in opening_messages(task, QuantCodeSettings(wording=wording))
                    ],
                    "answer": f"```python\n{task.reference.strip()}\n```",
                }
                for task in tasks
            ]
        else:
            ids, answers = asked["ids"], asked["answers"]
            scored = pools[asked["pool"]].batch(answers, [load_task(name) for name in ids])
            programs = {name: extract(text).code for name, text in zip(ids, answers, strict=True)}
            alike = collapse({name: code for name, code in programs.items() if code})
            said = {
                "scored": [
                    {"value": one.value, "outcome": one.outcome, "parts": one.parts, "reason": one.reason[:300]}
                    for one in scored
                ],
                "collapsed": alike.collapsed,
                "largest_share": alike.largest_share,
            }
        print(json.dumps(said), flush=True)


class Judge:
    """The other end of :func:`judge`."""

    def __init__(self, options: argparse.Namespace) -> None:
        command = [options.judge_python, __file__, "--judge", str(options.workers)]
        environment = os.environ | ({"PYTHONPATH": options.judge_path} if options.judge_path else {})
        self.process = subprocess.Popen(
            command + ["--no-judge"] * options.no_judge,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

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


class Policy:
    """The network of ``gpu_server``: answers are sampled from it in one batch, and its weights are moved."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch
        import torch.utils.checkpoint
        from gpu_server import Network
        from transformers import AutoTokenizer

        self.torch, self.options = torch, options
        torch.manual_seed(options.seed)
        self.tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
        known = self.tokenizer.get_vocab()
        self.ends = [known[mark] for mark in (END, "<|endoftext|>") if mark in known]
        self.slots = options.prompts * options.group
        self.net = Network(options.model, options.device, self.slots, options.context)
        self.weights = list(self.net.tensors().values())
        for weight in self.weights:
            weight.requires_grad_()
        # Steps are smaller than bf16 can show: what rounding takes away is kept and added to the next one.
        self.rests = [torch.zeros_like(weight) for weight in self.weights]
        self.first = [torch.zeros_like(weight) for weight in self.weights]
        self.second = [torch.zeros_like(weight) for weight in self.weights]
        self.moves = 0
        self.graph = None
        with torch.inference_mode():
            if options.device == "cuda":
                self.graph, self.state = self.net.capture(self.slots)
            else:
                self.state = self.net._state(self.slots)

    def encode(self, messages: list[dict[str, str]]) -> list[int]:
        """Return the tokens of a question, up to where the answer begins."""
        text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def sample(self, prompts: list[list[int]], each: int, heat: float) -> list[list[int]]:
        """Return ``each`` answers to every prompt, as tokens with their end; no more than there are slots."""
        torch, net = self.torch, self.net
        count = len(prompts) * each
        shared = common([ids[:-1] for ids in prompts])
        with torch.inference_mode():
            if shared:
                net.prompt([(0, 0, prompts[0][:shared])], [0.0], [None])
                for place in range(1, len(prompts)):
                    self._copy(0, [place * each], shared)
            for place, ids in enumerate(prompts):
                if len(ids) - 1 > shared:
                    net.prompt([(place * each, shared, ids[shared:-1])], [0.0], [None])
                self._copy(place * each, list(range(place * each + 1, (place + 1) * each)), len(ids) - 1)
            rows = [
                (p * each + k, ids[-1], len(ids) - 1, heat) for p, ids in enumerate(prompts) for k in range(each)
            ]
            rows += [(net.slots, 0, 0, 0.0)] * (self.slots - count)
            net._fill(self.state, rows)
            most = min(self.options.tokens, net.context - max(map(len, prompts)))
            said = torch.full((self.slots, most), self.ends[0], dtype=torch.int64, device=self.options.device)
            over = torch.zeros(self.slots, dtype=torch.bool, device=self.options.device)
            over[count:] = True
            ends = torch.tensor(self.ends, device=self.options.device)
            for at in range(most):
                if self.graph is None:
                    net._step(self.state)
                else:
                    self.graph.replay()
                said[:, at] = self.state["token"]
                over |= torch.isin(self.state["token"], ends)
                if at % 16 == 15 and bool(over.all()):
                    break
        answers = []
        for row in said[:count].tolist():
            stop = next((at for at, token in enumerate(row) if token in self.ends), None)
            answers.append(row if stop is None else row[: stop + 1])
        return answers

    def _copy(self, source: int, targets: list[int], length: int) -> None:
        if targets:
            for cache in (self.net.keys, self.net.values):
                cache[:, targets, :, :length] = cache[:, source : source + 1, :, :length]

    def text(self, tokens: list[int]) -> str:
        """Return an answer's words."""
        kept = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self.tokenizer.decode(tokens, **kept))

    def learn(self, prefix: list[int], parts: list[list[int]], worth: list[list[float]]) -> float:
        """Add the gradient of minus the worth of tokens times their log-probabilities; return that sum.

        All parts continue one prefix, which is read once: each sees the prefix and itself.
        """
        torch, net, device = self.torch, self.net, self.options.device
        functional = torch.nn.functional
        tokens, places, owners, before = list(prefix), list(range(len(prefix))), [0] * len(prefix), []
        for number, part in enumerate(parts, 1):
            before += [len(prefix) - 1, *range(len(tokens), len(tokens) + len(part) - 1)]
            places += range(len(prefix), len(prefix) + len(part))
            owners += [number] * len(part)
            tokens += part
        fill = -len(tokens) % 64
        wanted = torch.tensor([token for part in parts for token in part], device=device)
        weight = torch.tensor([one for part in worth for one in part], device=device)
        owner = torch.tensor(owners + [-1] * fill, device=device)
        order = torch.arange(len(owner), device=device)
        mask = (order[:, None] >= order) & ((owner == 0) | (owner == owner[:, None]))
        at = torch.tensor(places + [0] * fill, device=device)
        cos, sin = net.cos[at][:, None], net.sin[at][:, None]
        x = functional.embedding(torch.tensor(tokens + [0] * fill, device=device), net.embed)
        half, length = net.dim // 2, len(owner)

        def turned(part: Any, heads: int) -> Any:
            full = part.reshape(length, heads, net.dim).float()
            other = torch.cat([-full[..., half:], full[..., :half]], -1)
            return (full * cos + other * sin).to(part.dtype)

        def through(x: Any, block: dict[str, Any]) -> Any:
            y = functional.linear(net._norm(x, block["before"]), block["qkv"], block["bias"])
            q, k, v = y.split([net.heads * net.dim, net.kv * net.dim, net.kv * net.dim], -1)
            group = net.heads // net.kv
            k = turned(k, net.kv).repeat_interleave(group, 1)
            v = v.reshape(length, net.kv, net.dim).repeat_interleave(group, 1)
            q, k, v = (part.transpose(0, 1) for part in (turned(q, net.heads), k, v))
            # Plain: with fused kernels gradients were no numbers at some lengths (H200; not traced further).
            scores = (q @ k.transpose(1, 2)).float() * net.dim**-0.5
            seen = scores.masked_fill(~mask, -1e30).softmax(-1).to(v.dtype) @ v
            x = x + functional.linear(seen.transpose(0, 1).reshape(length, -1), block["out"])
            gate, up = functional.linear(net._norm(x, block["after"]), block["up"]).chunk(2, -1)
            return x + functional.linear(functional.silu(gate) * up, block["down"])

        def likely(rows: Any, tokens: Any) -> Any:
            return -functional.cross_entropy(functional.linear(rows, net.head).float(), tokens, reduction="none")

        kept = torch.utils.checkpoint.checkpoint
        for block in net.blocks:
            x = kept(through, x, block, use_reentrant=False, preserve_rng_state=False)
        x = net._norm(x, net.norm)[torch.tensor(before, device=device)]
        pieces = []
        for start in range(0, len(wanted), 1024):
            part = slice(start, start + 1024)
            sure = kept(likely, x[part], wanted[part], use_reentrant=False, preserve_rng_state=False)
            pieces.append(-(weight[part] * sure).sum())
        loss = torch.stack(pieces).sum()
        loss.backward()
        return float(loss.detach())

    def size(self) -> float:
        """Return the length of the gradient that was added up."""
        known = [weight.grad for weight in self.weights if weight.grad is not None]
        return float(self.torch.stack(self.torch._foreach_norm(known)).float().norm()) if known else 0.0

    def forget(self) -> None:
        """Drop the gradient that was added up."""
        for weight in self.weights:
            weight.grad = None

    def move(self, rate: float) -> float:
        """Take one step of Adam with what was added up; return the gradient's length before it was cut to 1."""
        size = self.size()
        with self.torch.no_grad():
            grads = [weight.grad for weight in self.weights]
            scale = min(1.0, 1.0 / (size + 1e-6))
            if size and math.isfinite(size):
                self.moves += 1
                for weight, rest, grad, one, two in zip(
                    self.weights, self.rests, grads, self.first, self.second, strict=True
                ):
                    if grad is not None:
                        flat = (part.view(-1).split(1 << 24) for part in (weight.data, rest, grad, one, two))
                        for pieces in zip(*flat, strict=True):
                            self._adam(*pieces, scale, rate)
        self.forget()
        return size

    def _adam(self, weight: Any, rest: Any, grad: Any, one: Any, two: Any, scale: float, rate: float) -> None:
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
    """Return the shares that compile, run, trade and are solved, how near they come, and the mean reward."""
    count = max(1, len(scored))
    near = sum(sum(v for k, v in one["parts"].items() if k not in STAGES) for one in scored)
    found = {name: sum(one["parts"].get(name, 0) > 0 for one in scored) / count for name in STAGES[:3]}
    return {
        "n": len(scored),
        **found,
        "agreement": near / count / 0.92,
        "solved": sum(one["outcome"] == "solved" for one in scored) / count,
        "reward": sum(one["value"] or 0.0 for one in scored) / count,
    }


STAGES = ("compile", "backtest", "trade", "reason")


def examine(policy: Policy, judge: Judge, log: Log, when: str, sets: dict[str, list[dict[str, Any]]]) -> None:
    """Answer every task once, greedily, and write down what the judge says."""
    for name, tasks in sets.items():
        answers: list[str] = []
        begun = time.time()
        for start in range(0, len(tasks), policy.slots):
            some = [policy.encode(task["messages"]) for task in tasks[start : start + policy.slots]]
            answers += [policy.text(said) for said in policy.sample(some, 1, 0.0)]
        sampled = time.time() - begun
        ids = [task["id"] for task in tasks]
        found = judge.ask(op="score", pool="examine", ids=ids, answers=answers)
        for task, answer, one in zip(ids, answers, found["scored"], strict=True):
            log.write("samples", when=when, set=name, task=task, answer=answer, **one)
        log.write(
            "log", event="examined", when=when, set=name, **rates(found["scored"]), collapsed=found["collapsed"],
            largest_share=found["largest_share"], sampling_s=round(sampled, 1),
        )  # fmt: skip


def warm_start(policy: Policy, judge: Judge, log: Log, count: int, rate: float, until: float) -> None:
    """Learn from references of the training families."""
    made = judge.ask(op="tasks", family="train", count=count, seed=WARM)
    chat = judge.ask(op="tasks", family="train", count=count, seed=WARM, wording="conversational")
    rng = random.Random(policy.options.seed)
    rows = []
    for formal, other in zip(made, chat, strict=True):
        task = formal if rng.random() < 0.6 else other
        rows.append((policy.encode(task["messages"]), policy.tokenizer(task["answer"] + END)["input_ids"]))
    rng.shuffle(rows)
    shared = common([asked for asked, _ in rows])
    losses: list[float] = []
    size = 16
    for start in range(0, len(rows), size):
        if time.time() > until:
            break
        some = rows[start : start + size]
        tokens = sum(len(said) for _, said in some)
        loss = 0.0
        for at in range(0, len(some), 8):
            parts = [asked[shared:] + said for asked, said in some[at : at + 8]]
            worth = [[0.0] * (len(a) - shared) + [1.0 / tokens] * len(b) for a, b in some[at : at + 8]]
            loss += policy.learn(rows[0][0][:shared], parts, worth)
        done = start / len(rows)
        moved = policy.move(rate * min(1.0, (start / size + 1) / 5) * (1 - 0.9 * done))
        losses.append(loss)
        if (start // size) % 5 == 4:
            log.write("log", event="warm", read=start + size, loss=sum(losses[-5:]) / 5, gradient=moved)
    log.write("log", event="warmed", read=len(losses) * size, loss=sum(losses[-10:]) / max(1, len(losses[-10:])))


def train(policy: Policy, judge: Judge, log: Log, options: argparse.Namespace, until: float, look: Any) -> None:
    """Sample, judge, learn; ``look`` is called every ``--every`` seconds."""
    waiting: tuple[list[dict[str, Any]], list[list[int]], list[list[int]]] | None = None
    step, looked = 0, time.time()
    rng = random.Random(options.seed)
    while time.time() < until:
        begun = time.time()
        if waiting is not None:  # the judge answers in order: tasks are asked for once it is done
            found = judge.receive()
        judged_s = time.time() - begun
        tasks = judge.ask(
            op="tasks", family="train", count=options.prompts, seed=TRAIN + options.seed,
            start=step * options.prompts, wording=rng.choice(["formal", "formal", "conversational"]),
        )  # fmt: skip
        prompts = [policy.encode(task["messages"]) for task in tasks]
        answers = policy.sample(prompts, options.group, options.heat)
        sampled_s = time.time() - begun - judged_s
        ids = [task["id"] for task in tasks for _ in range(options.group)]
        judge.send(op="score", pool="train", ids=ids, answers=[policy.text(said) for said in answers])
        last, waiting = waiting, (tasks, prompts, answers)
        if last is not None:
            learn_step(policy, log, options, step, last, found, {"judge_s": judged_s, "sample_s": sampled_s})
        step += 1
        time.sleep(options.pause)
        if time.time() - looked > options.every and time.time() + options.every < until:
            last_found = judge.receive()
            learn_step(policy, log, options, step, waiting, last_found, {})
            waiting = None
            look(f"step {step}")
            looked = time.time()
    if waiting is not None:
        learn_step(policy, log, options, step, waiting, judge.receive(), {})


def learn_step(
    policy: Policy,
    log: Log,
    options: argparse.Namespace,
    step: int,
    batch: Any,
    found: Any,
    seconds: dict[str, float],
) -> None:
    """Make better answers of each group likelier, worse ones less likely."""
    tasks, prompts, answers = batch
    begun, group = time.time(), options.group
    better: list[float] = []
    flat, lost = 0, 0
    for at in range(len(tasks)):
        values = [one["value"] for one in found["scored"][at * group : (at + 1) * group]]
        known = [value for value in values if value is not None]
        mean = sum(known) / max(1, len(known))
        spread = math.sqrt(sum((value - mean) ** 2 for value in known) / max(1, len(known)))
        flat += spread < 1e-6
        better += [0.0 if value is None else (value - mean) / (spread + 0.05) for value in values]
    tokens = sum(len(said) for said, one in zip(answers, better, strict=True) if one)
    for at, prompt in enumerate(prompts):
        some = range(at * group, (at + 1) * group)
        if any(better[k] for k in some):
            worth = [[better[k] / tokens] * len(answers[k]) for k in some]
            before = [None if weight.grad is None else weight.grad.clone() for weight in policy.weights]
            why = None
            try:
                loss = policy.learn(prompt, [answers[k] for k in some], worth)
                if not math.isfinite(loss) or not math.isfinite(policy.size()):
                    why = {
                        "event": "no number",
                        "loss": loss,
                        "lengths": [len(answers[k]) for k in some],
                    }
            except policy.torch.OutOfMemoryError:  # somebody else is on the card
                why = {"event": "no memory"}
                policy.torch.cuda.empty_cache()
            if why is not None:  # the group is left out, and what was learned from the others is kept
                lost += 1
                log.write("log", step=step, prompt=len(prompt), **why)
                for weight, grad in zip(policy.weights, before, strict=True):
                    weight.grad = grad
    size = policy.move(options.rate)
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
        **{name: round(value, 1) for name, value in times.items()},
    )
    shown = random.Random(step).randrange(len(tasks))
    for k in range(shown * group, (shown + 1) * group):
        text = policy.text(answers[k])
        log.write("steps", step=step, task=tasks[shown]["id"], better=better[k], answer=text, **found["scored"][k])


def main() -> None:
    """Read the options; train and examine, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--tokenizer")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0, help="in all, the last examination included")
    parser.add_argument("--reserve", type=float, default=1.5, help="minutes kept for the last examination")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="references to learn from first")
    parser.add_argument("--warm-rate", type=float, default=1e-5)
    parser.add_argument("--rate", type=float, default=2e-6)
    parser.add_argument("--no-judge", action="store_true")
    parser.add_argument("--before", action="store_true", help="examine the untrained model, too")
    parser.add_argument(
        "--fixed", action="store_true", help="examine the 144 tasks that come with the package, too"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=384)
    parser.add_argument("--context", type=int, default=1344)
    parser.add_argument("--heat", type=float, default=1.0)
    parser.add_argument("--every", type=float, default=150.0, help="seconds between examinations")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between steps, for whoever shares the GPU"
    )
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--judge", type=int, metavar="WORKERS", help=argparse.SUPPRESS)
    parser.add_argument("--judge-path")
    parser.add_argument("--judge-python", default=sys.executable)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--brief", action="store_true", help="few tasks in every examination")
    options = parser.parse_args()
    if options.judge is not None:
        judge(options.judge, not options.no_judge)
        return
    log = Log(options.out)
    end = log.begun + 60.0 * options.minutes
    log.write("log", event="begun", options={name: str(value) for name, value in vars(options).items()})
    other = Judge(options)
    policy = Policy(options)
    log.write("log", event="loaded")

    def tasks(family: str, count: int, **more: Any) -> Any:
        asked = {"op": "tasks", "family": family, "count": 3 if options.brief else count, "seed": UNSEEN, **more}
        return other.ask(**asked)

    small = {"seen families": tasks("train", 40), "unseen families": tasks("test", 44)}
    whole = {"seen families": tasks("train", 120), "unseen families": tasks("test", 110)}
    if options.fixed:
        whole["the 144"] = tasks("fixed", 144)
    if options.before:
        examine(policy, other, log, "before", whole)
    if options.warm:
        warm_start(policy, other, log, options.warm, options.warm_rate, end - 60.0 * options.reserve)
        examine(policy, other, log, "after the warm start", small)
    train(
        policy, other, log, options, end - 60.0 * options.reserve,
        lambda when: examine(policy, other, log, when, small),
    )  # fmt: skip
    examine(policy, other, log, "after", whole)
    log.write("log", event="over")
    assert other.process.stdin is not None
    other.process.stdin.close()
    threading.Timer(20.0, other.process.kill).start()


if __name__ == "__main__":
    main()
