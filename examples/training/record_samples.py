"""Make recordings of the answers that ``grpo.py`` examined, so that anybody can judge them again without a GPU.

    python examples/training/record_samples.py OUT/samples.jsonl FOLDER --when after --name grpo-after [--each 40]

The answers are served on loopback under the model's name, ``tradeassay code run`` asks for them, judges them by
the whole judge (all markets, every number tried) and ``tradeassay recordings record`` packs the run as
``FOLDER/NAME-SET.tar.xz``. ``code run --cassettes ... --replay`` judges it again.
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

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.benchmarks.quantcode.dialogue import QuantCodeSettings, opening_messages

TOKENS = 384


def serve(answers: dict[str, str]) -> ThreadingHTTPServer:
    """Answer questions by their text, on a free port."""

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
            message = {"role": "assistant", "content": answers[text]}
            usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send({"id": "1", "object": "chat.completion", "created": 1, "model": body.get("model", ""),
                        "usage": usage, "choices": [choice]})  # fmt: skip

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--when", default="after")
    parser.add_argument("--name", required=True)
    parser.add_argument("--each", type=int, default=10_000, help="at most so many tasks of a set")
    parser.add_argument("--sets", nargs="+", default=["seen families", "unseen families"])
    parser.add_argument("--workers", type=int, help="programs that are judged at once")
    parser.add_argument("--engine", default="examples/training/grpo.py")
    parser.add_argument("--precision", default="bf16")
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.samples.open()]
    command = [sys.executable, "-m", "tradeassay"]
    for name in options.sets:
        chosen = [line for line in lines if (line["when"], line["set"]) == (options.when, name)][: options.each]
        if not chosen:
            continue
        asked = {
            opening_messages(load_task(line["task"]), QuantCodeSettings())[-1].text: line["answer"]
            for line in chosen
        }
        server = serve(asked)
        slug = f"{options.name}-{name.split()[0]}"
        where = os.environ | {"TRADEASSAY_LOCAL_SERVER": f"http://127.0.0.1:{server.server_port}/v1"}
        runs = ["--runs", str(options.folder / "runs")]
        tasks = [word for line in chosen for word in ("--task", line["task"])]
        model = ["-m", f"local/{options.name}", "--max-tokens", str(TOKENS), "--slug", slug]
        model += ["--workers", str(options.workers)] if options.workers else []
        subprocess.run([*command, "code", "run", "quantcode-v1", *model, *runs, *tasks], env=where, check=False)
        server.shutdown()
        packed = ["--engine", options.engine, "--precision", options.precision]
        file = str(options.folder / f"{slug}.tar.xz")
        run = str(options.folder / "runs" / slug)
        subprocess.run([*command, "recordings", "record", run, *packed, "-o", file], check=True)


if __name__ == "__main__":
    main()
