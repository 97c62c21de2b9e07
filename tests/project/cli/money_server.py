"""A server in OpenAI's chat format that sends a bill: it counts every question and what each one
costs.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "openai-api/priced/tiny"
UNPRICED = "openai-api/priced/unknown"
INPUT_USD, OUTPUT_USD = 2.0, 10.0
"""Dollars per million tokens, as the file of prices states them."""

PRICES = f"""[prices."{MODEL}"]
input = {INPUT_USD}
output = {OUTPUT_USD}
source = "a page"
as_of = 2026-01-01
"""

DEFAULT_ANSWER = '{"action": "BUY", "reasoning": "it may rise", "confidence": 0.5}'


class Bill:
    """What the server was asked, and what it bills in dollars.

    ``answer`` returns the text of a reply.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.usd = 0.0
        self.models: set[str] = set()
        self.answer = lambda body: DEFAULT_ANSWER
        self._lock = threading.Lock()

    def charge(self, body: dict[str, Any], text: str) -> dict[str, int]:
        """Add a question to the bill, and return its tokens as the reply states them."""
        shown = json.dumps(body) if "messages" in body else body["prompt"]
        asked, said = len(shown) // 4, len(text) // 4 + 1
        with self._lock:
            self.requests += 1
            self.models.add(body["model"])
            self.usd += (asked * INPUT_USD + said * OUTPUT_USD) / 1e6
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


@contextmanager
def billing():
    """Yield the address of a server and its bill."""
    bill = Bill()

    class Priced(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
            if "messages" in body:
                text, kind = bill.answer(body), "chat.completion"
                choice["message"] = {"role": "assistant", "content": text}
            else:  # a text is scored: its tokens are echoed
                text, kind = "", "text_completion"
                tokens = [body["prompt"][at : at + 4] for at in range(0, len(body["prompt"]), 4)]
                choice |= {
                    "text": "",
                    "logprobs": {
                        "tokens": tokens,
                        "token_logprobs": [None, *[-1.0] * (len(tokens) - 1)],
                    },
                }
            said = {"id": "x", "object": kind, "created": 0, "model": "tiny", "choices": [choice]}
            content = json.dumps({**said, "usage": bill.charge(body, text)}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Priced) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1", bill
        server.shutdown()
        thread.join()
