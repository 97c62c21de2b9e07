"""Behind a real nginx everybody is counted by their own address, and the proxy not at all."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.arena.conftest import free_port

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed (Debian: nginx-light)"),
]
CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{behind}; proxy_set_header X-Forwarded-For $remote_addr; }}
  }}
}}
"""


@contextmanager
def proxied(folder: Path, *options: str) -> Iterator[str]:
    """Serve an empty arena as a user does, behind nginx; gives nginx's address."""
    port, behind = free_port(), free_port()
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port, behind=behind))
    serve = [sys.executable, "-m", "tradeassay", "arena", "serve", "--db", str(folder / "arena.db")]
    running = [
        subprocess.Popen([*serve, "--port", str(behind), *options], stderr=subprocess.DEVNULL),
        subprocess.Popen([NGINX, "-c", str(folder / "nginx.conf"), "-p", str(folder)], stderr=subprocess.DEVNULL),
    ]
    try:
        for _ in range(600):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        for one in reversed(running):
            one.terminate()
            one.wait(30)


def answers(address: str, client: str, count: int) -> set[int]:
    """Return how a client with an address of its own is answered that brings wrong tokens."""
    wrong = {"authorization": "Bearer nobody"}
    with httpx.Client(transport=httpx.HTTPTransport(local_address=client), base_url=address, timeout=60) as one:
        return {one.get("/agents/me/packet", headers=wrong).status_code for _ in range(count)}


def test_limits_count_clients_and_not_the_proxy(tmp_path):
    with proxied(tmp_path, "--proxy", "127.0.0.1") as address:
        assert answers(address, "127.0.0.2", 80) == {401, 429}
        assert answers(address, "127.0.0.3", 3) == {401}  # somebody else has done nothing
        with ThreadPoolExecutor(300) as many:  # more than one address may have without a proxy
            limits = httpx.Limits(max_connections=300)
            with httpx.Client(base_url=address, limits=limits, timeout=120) as reader:
                found = list(many.map(lambda _: reader.get("/seasons/").status_code, range(600)))
        assert set(found) == {200}


def test_what_an_unknown_proxy_says_is_not_believed(tmp_path):
    with proxied(tmp_path) as address:
        for _ in range(5):
            minute = time.time() // 60  # knocks are counted by the minute
            found = answers(address, "127.0.0.2", 80), answers(address, "127.0.0.3", 1)
            if time.time() // 60 == minute:
                break
        assert 429 in found[0] and found[1] == {429}
