"""Run the processes of compose.yaml without Docker: PostgreSQL, two workers and nginx, from
Debian's packages.

    python scripts/arena_stack.py FOLDER --port 8000 -- --season spring.toml

Options after ``--`` are passed to ``tradeassay arena serve``. Without them the built-in season is
played. A worker that ends is restarted, as Docker would. Ctrl-C stops all processes. FOLDER
contains the database, the pages and the logs.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NGINX = """daemon off; master_process off; worker_rlimit_nofile 16384;
pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 8192; }}
http {{
types {{ text/html html; application/json json; application/atom+xml xml; text/css css; text/javascript js;
  image/svg+xml svg; text/plain txt; }}
client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
{server}
}}
"""


def free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def program(name: str, *places: str) -> str:
    """Return the path of a program. Exits with the name of its package if it is not installed."""
    found = shutil.which(name) or next(
        (str(p) for place in places for p in sorted(Path("/").glob(place))), None
    )
    if found is None:
        raise SystemExit(f"{name} is not installed (Debian: postgresql, nginx-light)")
    return found


class Stack:
    """PostgreSQL, workers and the proxy as separate processes in one folder."""

    def __init__(
        self,
        folder: Path,
        options: list[str],
        *,
        port: int | None = None,
        workers: int = 2,
        command: list[str] | None = None,
        env: dict[str, str] | None = None,
        data: Path | None = None,
    ) -> None:
        self.folder, self.options, self.port = folder, options, port or free()
        folder.mkdir(parents=True, exist_ok=True)
        self.address = f"http://127.0.0.1:{self.port}"
        # PostgreSQL refuses to run as root, so root runs it as nobody. The path of its socket must
        # be short.
        self.user = "nobody" if os.getuid() == 0 else None
        self.data = data or folder / "db"
        self.command, self.env = command or [sys.executable, "-m", "tradeassay"], env or {}
        self.db = f"postgresql+psycopg://arena@/postgres?host={self.data}"
        self.ports = [free() for _ in range(workers)]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        log = folder / "stack.log"
        log.touch(0o600)
        log.chmod(0o600)  # workers print keys into it
        self._log = log.open("ab")

    def _start(self, name: str, command: list[str], **how: object) -> None:
        quiet = {"stdout": self._log, "stderr": self._log}
        self.running[name] = subprocess.Popen(command, **quiet, **how)  # type: ignore[call-overload]

    def start_database(self) -> None:
        places = ("usr/lib/postgresql/*/bin/{}",)
        initdb, postgres = (
            program(one, *(p.format(one) for p in places)) for one in ("initdb", "postgres")
        )
        if not (self.data / "data").exists():
            self.data.mkdir(exist_ok=True)
            if self.user:
                owner = pwd.getpwnam(self.user)
                os.chown(self.data, owner.pw_uid, owner.pw_gid)
            made = [initdb, "-D", str(self.data / "data"), "-U", "arena", "-A", "trust", "-N"]
            subprocess.run(
                made, check=True, stdout=self._log, stderr=self._log, user=self.user, cwd=self.data
            )
        settings = (
            "listen_addresses=",
            f"unix_socket_directories={self.data}",
            "max_connections=60",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        self._start(
            "db", [postgres, "-D", str(self.data / "data"), *options], user=self.user, cwd=self.data
        )
        ready = program("pg_isready", "usr/lib/postgresql/*/bin/pg_isready")
        self.wait(
            lambda: subprocess.run([ready, "-q", "-h", str(self.data)], check=False).returncode == 0
        )

    def start_worker(self, number: int) -> None:
        serve = [*self.command, "arena", "serve", "--port", str(self.ports[number])]
        where = ["--proxy", "127.0.0.1", "--pages", str(self.folder / "pages")]
        here = {**os.environ, "TRADEASSAY_ARENA_DB": self.db, **self.env}
        self._start(f"worker-{number}", [*serve, *where, *self.options], env=here)

    def start_proxy(self) -> None:
        nginx = program("nginx", "usr/sbin/nginx")
        given = [*self.options, ""]
        embed = (
            given[given.index("--embed") + 1]
            if "--embed" in given
            else self.env.get("TRADEASSAY_ARENA_EMBED", "")
        )
        server = (ROOT / "examples/arena/nginx.conf").read_text().replace("${ARENA_EMBED}", embed)
        for name, port in zip(("one", "two"), self.ports, strict=False):
            server = server.replace(f"server {name}:8000", f"server 127.0.0.1:{port}")
        server = server.replace("listen 80;", f"listen 127.0.0.1:{self.port};")
        server = server.replace("root /srv/arena/pages;", f"root {self.folder / 'pages'};")
        (self.folder / "nginx.conf").write_text(NGINX.format(folder=self.folder, server=server))
        self._start("proxy", [nginx, "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder)])

    def __enter__(self) -> Stack:
        try:
            self.start_database()
            for number in range(len(self.ports)):
                self.start_worker(number)
            self.start_proxy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in sorted(self.running, key=lambda one: one == "db"):  # the database last
            self.stop(name)
        self._log.close()

    def stop(self, name: str, how: int = signal.SIGINT) -> None:
        one = self.running.pop(name)
        if one.poll() is None:
            one.send_signal(how)
            try:
                one.wait(60)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait(30)

    def tend(self) -> list[str]:
        """Restart the processes that have ended by themselves and return their names."""
        ended = [name for name, one in self.running.items() if one.poll() is not None]
        for name in ended:
            if name == "db":
                self.start_database()
            elif name == "proxy":
                self.start_proxy()
            else:
                self.start_worker(int(name.rpartition("-")[2]))
        return ended

    def wait(self, done: object, seconds: float = 180.0) -> None:
        until = time.monotonic() + seconds
        while not done():  # type: ignore[operator]
            if time.monotonic() > until:
                raise TimeoutError(f"not in time; see {self.folder}/stack.log")
            time.sleep(0.2)


def parse_command(given: list[str]) -> tuple[Path, int, list[str]]:
    """Parse a command into the folder, the proxy's port and the options of ``tradeassay arena
    serve``.
    """
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [-h] [--port PORT] FOLDER [-- OPTION ...]",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    # Split here: argparse returns an empty list of arguments if an option precedes the folder.
    end = given.index("--") if "--" in given else len(given)
    asked = parser.parse_args(given[:end])
    return asked.folder.resolve(), asked.port, given[end + 1 :]


def main() -> None:
    folder, port, options = parse_command(sys.argv[1:])
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # like Ctrl-C: no process is left behind
    with Stack(folder, options or ["--replay", "synthetic"], port=port) as stack:
        print(f"arena: {stack.address}/  database: {stack.db}")
        try:
            while True:
                for name in stack.tend():
                    print(f"{name} has ended and is restarted")
                time.sleep(1.0)
        except KeyboardInterrupt:
            print("stopping")


if __name__ == "__main__":
    main()
