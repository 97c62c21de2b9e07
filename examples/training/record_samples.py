"""Make recordings of the answers that ``grpo.py`` examined, so that anybody can judge them again
without a GPU.

python examples/training/record_samples.py FOLDER --arm NAME OUT/samples.jsonl after [--arm ...]
[--each 40]

The answers of every arm (a model's name, its samples, when they were examined) are served on
loopback, ``tradeassay code run`` asks for them, judges them by the whole judge (all markets, every
number tried) and ``tradeassay recordings record`` packs the run as ``FOLDER/PREFIX-SET.tar.xz``.
Arms share the markets of the tasks that all of them have. ``code run --recordings ... --replay``
judges it again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.benchmarks.quantcode.dialogue import QuantCodeSettings, opening_messages

TOKENS = 384


def serve(answers: dict[tuple[str, str], str]) -> ThreadingHTTPServer:
    """Answer questions by the model asked and their text, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "recorded"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = body["messages"][-1]["content"]
            text = text if isinstance(text, str) else "".join(part.get("text", "") for part in text)
            message = {
                "role": "assistant",
                "content": answers[body["model"].rpartition("/")[2], text],
            }
            usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": body.get("model", ""),
                    "usage": usage,
                    "choices": [choice],
                }
            )

        def _send(self, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    """Read the samples; serve, run and pack each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--arm", nargs=3, action="append", required=True, metavar=("NAME", "SAMPLES", "WHEN")
    )
    parser.add_argument("--each", type=int, default=10_000, help="at most so many tasks of a set")
    parser.add_argument("--sets", nargs="+", default=["seen families", "unseen families"])
    parser.add_argument("--prefix", default="qwen")
    parser.add_argument("--workers", type=int, help="programs that are judged at once")
    parser.add_argument("--engine", default="examples/training/grpo.py")
    parser.add_argument("--precision", default="bf16")
    options = parser.parse_args()
    command = [sys.executable, "-m", "tradeassay"]
    for name in options.sets:
        arms: dict[str, dict[str, str]] = {}
        for model, samples, when in options.arm:
            lines = [json.loads(line) for line in Path(samples).open()]
            arms[model] = {
                one["task"]: one["answer"]
                for one in lines
                if (one["when"], one["set"]) == (when, name)
            }
        first, *others = arms.values()
        tasks = [task for task in first if all(task in other for other in others)][: options.each]
        if not tasks:
            continue
        words = {
            task: opening_messages(load_task(task), QuantCodeSettings())[-1].text for task in tasks
        }
        server = serve(
            {(model, words[task]): said[task] for model, said in arms.items() for task in tasks}
        )
        slug = f"{options.prefix}-{name.split()[0]}"
        where = os.environ | {
            "TRADEASSAY_LOCAL_SERVER": f"http://127.0.0.1:{server.server_port}/v1"
        }
        runs = ["--runs", str(options.folder / "runs"), "--name", slug, "--max-tokens", str(TOKENS)]
        asked = [word for task in tasks for word in ("--task", task)]
        asked += [word for model in arms for word in ("-m", f"local/{model}")]
        asked += ["--workers", str(options.workers)] if options.workers else []
        subprocess.run(
            [*command, "code", "run", "quantcode-v1", *runs, *asked], env=where, check=False
        )
        server.shutdown()
        packed = ["--engine", options.engine, "--precision", options.precision]
        file = str(options.folder / f"{slug}.tar.xz")
        run = str(options.folder / "runs" / slug)
        subprocess.run([*command, "recordings", "record", run, *packed, "-o", file], check=True)


if __name__ == "__main__":
    main()
