"""A server in OpenAI's chat format that remembers what it was given: question by question, word
for word.
"""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def recalling(answer, seconds=0.0, logprobs=None):
    """Yield the address of a server that gives ``answer`` to a question, one at a time,
    ``seconds`` each, and the times at which it worked. ``logprobs`` maps a prompt to what
    ``/completions`` returns of it.
    """
    busy = []
    alone = threading.Lock()

    class Recalling(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, made = 200, {"id": "x", "created": 0, "model": "tiny"}
            if self.path.endswith("/chat/completions"):
                with alone:
                    began = time.monotonic()
                    if seconds:
                        time.sleep(seconds)
                    busy.append((began, time.monotonic()))
                text = answer(body["messages"][-1]["content"])
                message = {"role": "assistant", "content": text}
                made |= {
                    "object": "chat.completion",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                }
                made |= {"usage": {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77}}
            elif logprobs is None:
                status, made = 404, {"error": {"message": "no completions here"}}
            else:
                made |= {
                    "object": "text_completion",
                    "choices": [{"index": 0, "text": "", **logprobs(body["prompt"])}],
                }
            content = json.dumps(made).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Recalling) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1", busy
        server.shutdown()
        thread.join()
