"""The processes of compose.yaml without Docker, while parts of them are killed; a backup comes
back.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.arena.conftest import free_port, wait_for

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "perf"), str(ROOT / "scripts")]


NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
with_nginx = pytest.mark.skipif(
    not Path(NGINX).exists(), reason="nginx is not installed (Debian: nginx-light)"
)


class Unwell(BaseHTTPRequestHandler):
    """A worker whose season is stalled: it says so, and its api are open."""

    def do_GET(self) -> None:
        body = b"{}"
        self.send_response(503 if self.path == "/healthz" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def proxy(folder: Path, *options: str) -> Iterator[tuple[str, Any]]:
    """Start the proxy of compose.yaml alone, before workers that are not there; gives its
    address and stack.
    """
    from arena_stack import Stack

    (folder / "pages").mkdir(parents=True)
    (folder / "pages/index.html").write_text("<main>here</main>")
    folder.chmod(0o755)
    stack = Stack(folder, list(options))
    stack.start_proxy()
    try:
        wait_for(lambda: httpx.get(f"{stack.address}/", timeout=5))
        yield stack.address, stack
    finally:
        stack.stop("proxy")


@pytest.fixture
def short():
    """A folder that nginx's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="ta-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@with_nginx
def test_pages_behind_the_proxy_are_framed_by_whom_the_operator_names(short):
    blog = "https://blog.example.org"
    for place, options, frames, reads in (
        ("nobody", (), "'none'", None),
        ("blog", ("--embed", blog), blog, blog),
    ):
        with proxy(short / place, *options) as (address, _):
            answer = httpx.get(f"{address}/", timeout=10)
        assert answer.text == "<main>here</main>" and answer.headers["cache-control"] == "no-cache"
        assert answer.headers["content-security-policy"] == f"frame-ancestors {frames}"
        assert answer.headers.get("access-control-allow-origin") == reads


@with_nginx
def test_a_worker_that_says_it_is_unwell_is_asked_again(short):
    """One answer of 503 closed the api to everybody for five seconds."""
    with proxy(short / "unwell") as (address, stack):
        worker = ThreadingHTTPServer(("127.0.0.1", stack.ports[0]), Unwell)
        threading.Thread(target=worker.serve_forever, args=(0.05,), daemon=True).start()
        try:
            told = [
                httpx.get(f"{address}{path}", timeout=10).status_code
                for path in ("/healthz", "/agents/me") * 4
            ]
        finally:
            worker.shutdown()
            worker.server_close()
    assert told == [503, 200] * 4


@with_nginx
def test_the_proxy_passes_on_what_only_a_worker_can_answer(short):
    """MCP clients got the page for what is not there."""
    with proxy(short / "routes") as (address, stack):
        for port in stack.ports:
            worker = ThreadingHTTPServer(("127.0.0.1", port), Unwell)
            threading.Thread(target=worker.serve_forever, args=(0.05,), daemon=True).start()
        for path in ("/agents/me", "/api/openapi.json", "/mcp", "/metrics"):
            assert httpx.get(f"{address}{path}", timeout=10).text == "{}", path


def test_the_stacks_own_usage_lines_are_understood():
    import arena_stack

    text = arena_stack.__doc__ + (ROOT / "docs/howto/run-an-arena.md").read_text()
    lines = re.findall(r"python scripts/arena_stack\.py ([^`\n]+)", text)
    assert len(lines) >= 2
    for line in lines:
        folder, port, options = arena_stack.parse_command(line.split())
        assert (folder.name, port, options) == ("FOLDER", 8000, ["--season", "spring.toml"])
    assert arena_stack.parse_command(["a"])[1:] == (8000, [])
    assert arena_stack.parse_command(["--port", "9000", "a", "--", "--port", "7"])[1:] == (
        9000,
        ["--port", "7"],
    )


@pytest.mark.slow
@with_nginx
def test_one_address_does_not_take_all_connections(short):
    released = threading.Event()

    class Slow(Unwell):
        def do_GET(self) -> None:
            if self.path.endswith("?slowly"):
                released.wait(60)
            super().do_GET()

    class Roomy(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 300

    with proxy(short / "many") as (address, stack):
        for port in stack.ports:
            threading.Thread(
                target=Roomy(("127.0.0.1", port), Slow).serve_forever, args=(0.05,), daemon=True
            ).start()
        with (
            ThreadPoolExecutor(300) as many,
            httpx.Client(limits=httpx.Limits(max_connections=300)) as greedy,
        ):
            asked = [
                many.submit(greedy.get, f"{address}/agents/me?slowly", timeout=90)
                for _ in range(300)
            ]
            try:
                # Nothing is answered before the address has all it may have, however slow the machine is.
                turned_away = next(as_completed(asked, timeout=50)).result()
                other = httpx.HTTPTransport(local_address="127.0.0.2")
                with httpx.Client(transport=other, timeout=60) as somebody:
                    assert somebody.get(f"{address}/agents/me").status_code == 200
                assert turned_away.status_code == 429 and not all(one.done() for one in asked)
            finally:
                released.set()
            found = [one.result().status_code for one in asked]
    assert found.count(200) >= 100 and 429 in found and set(found) <= {200, 429, 502}


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
        subprocess.Popen(
            [NGINX, "-c", str(folder / "nginx.conf"), "-p", str(folder)], stderr=subprocess.DEVNULL
        ),
    ]
    try:
        wait_for(
            lambda: httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
        )
        yield f"http://127.0.0.1:{port}"
    finally:
        for one in reversed(running):
            one.terminate()
            one.wait(30)


def answers(address: str, client: str, count: int) -> set[int]:
    """Return how a client with an address of its own is answered that brings wrong tokens."""
    wrong = {"authorization": "Bearer nobody"}
    with httpx.Client(
        transport=httpx.HTTPTransport(local_address=client), base_url=address, timeout=60
    ) as one:
        return {one.get("/agents/me/packet", headers=wrong).status_code for _ in range(count)}


@pytest.mark.slow
@with_nginx
def test_limits_count_clients_and_not_the_proxy(tmp_path):
    with proxied(tmp_path, "--proxy", "127.0.0.1") as address:
        assert answers(address, "127.0.0.2", 80) == {401, 429}
        assert answers(address, "127.0.0.3", 3) == {401}  # somebody else has done nothing
        with ThreadPoolExecutor(300) as many:  # more than one address may have without a proxy
            limits = httpx.Limits(max_connections=300)
            with httpx.Client(base_url=address, limits=limits, timeout=120) as reader:
                found = list(many.map(lambda _: reader.get("/seasons/").status_code, range(600)))
        assert set(found) == {200}


@pytest.mark.slow
@with_nginx
def test_what_an_unknown_proxy_says_is_not_believed(tmp_path):
    with proxied(tmp_path) as address:
        for _ in range(5):
            minute = time.time() // 60  # knocks are counted by the minute
            found = answers(address, "127.0.0.2", 80), answers(address, "127.0.0.3", 1)
            if time.time() // 60 == minute:
                break
        assert 429 in found[0] and found[1] == {429}


def test_the_compose_file_starts_what_there_is():
    """Without Docker: what it names exists, and its commands and settings are ones that the
    program knows.
    """
    yaml = pytest.importorskip("yaml")
    from tradeassay_arena.cli.arena import arena

    plan = yaml.safe_load((ROOT / "compose.yaml").read_text())
    services = plan["services"]
    assert set(services) == {"db", "one", "two", "proxy"} and services["one"] == services["two"]
    worker = services["one"]
    group, name, *options = worker["command"]
    serve = arena.commands[name]
    context = serve.make_context(name, list(options))
    assert (
        group == "arena"
        and context.params["pages"].endswith("/data/pages")
        and context.params["proxies"]
    )
    known = {option.envvar for option in serve.params if option.envvar}
    assert set(worker["environment"]) <= known
    mounts = [
        one.split(":")[:2] for service in services.values() for one in service.get("volumes", ())
    ]
    named = {source for source, _ in mounts if not source.startswith(".")}
    assert named == set(plan["volumes"])
    assert all((ROOT / source).exists() for source, _ in mounts if source.startswith("."))
    # The workers write their pages where the proxy reads them, and it names them as compose does.
    text = (ROOT / "examples/arena/nginx.conf").read_text()
    assert (
        dict(mounts)["arena-data"] in ("/home/assay/data", "/srv/arena")
        and "root /srv/arena/pages;" in text
    )
    assert all(f"server {one}:8000" in text for one in ("one", "two"))
    assert re.search(r"location ~ \^/\([a-z|]*\bmcp\b", text)
    users = (ROOT / "Dockerfile").read_text()
    assert "/home/assay/data" in users and "tradeassay-arena[postgres]" in users


@pytest.mark.slow
@pytest.mark.timeout(1500)
@with_nginx
def test_a_live_season_survives_everything_around_it_behind_the_proxy(short):
    pytest.importorskip("yfinance", reason="the extra 'us' is not installed")
    pytest.importorskip("ccxt", reason="the extra 'crypto' is not installed")
    import arena_year

    found = arena_year.run(
        short, 12
    )  # PostgreSQL's socket needs a short path that its user may enter
    assert found["accounts"] == 4 * 22 and found["answers acknowledged"], found
    assert len(found["what was done"]) == 16 and arena_year.good(found), found


@pytest.mark.journey
def test_a_backup_of_a_file_comes_back_as_it_was(tmp_path):
    import sqlite3

    from tradeassay.cli import main

    db, kept, back = (tmp_path / name for name in ("arena.db", "kept.db", "back.db"))
    assert (
        main(["arena", "run", "--replay", "synthetic", "--until", "2022-03-03", "--db", str(db)])
        == 0
    )
    script = str(ROOT / "scripts/arena-backup")
    subprocess.run([script, str(db), str(kept)], check=True, timeout=60)
    subprocess.run([script, "--restore", str(kept), str(back)], check=True, timeout=60)
    dumps = [list(sqlite3.connect(one).iterdump()) for one in (db, back)]
    assert dumps[0] == dumps[1]
    assert (
        subprocess.run([script, "--restore", str(kept), str(back)], capture_output=True).returncode
        == 2
    )
