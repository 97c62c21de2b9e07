"""A PostgreSQL server of one's own: in a temporary folder, on a socket, gone afterwards."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found:
        return found
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(versions[-1]) if versions else None


class PostgresServer:
    """A server that can be stopped and started again on the same data."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder, self._user = folder, user
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "log"
        self.address = f"postgresql+psycopg://ta@/postgres?host={folder}"
        initdb = _program("initdb")
        assert initdb is not None
        self._run([initdb, "-D", str(folder / "data"), "-U", "ta", "-A", "trust", "-N"]).wait()

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, user=self._user
            )

    @property
    def errors(self) -> list[str]:
        """What it has complained about so far."""
        return [
            line for line in self._log.read_text(errors="replace").splitlines() if "ERROR:" in line
        ]

    def start(self) -> None:
        postgres = _program("postgres")
        assert postgres is not None
        listen = f"unix_socket_directories={self._folder}"
        settings = ("listen_addresses=", listen, "fsync=off", "max_connections=20")
        options = [part for setting in settings for part in ("-c", setting)]
        self._process = self._run([postgres, "-D", str(self._folder / "data"), *options])
        _wait(self._folder, self._process)

    def stop(self) -> None:
        """Stop it at once, whoever is connected."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=120)


@contextmanager
def restartable() -> Iterator[PostgresServer]:
    """Start a server; skips the test where PostgreSQL is not installed."""
    if _program("initdb") is None or _program("postgres") is None:
        pytest.skip("needs PostgreSQL's own programs (Debian: postgresql)")
    # PostgreSQL refuses to run as root, so root lends it to nobody.
    user = "nobody" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="ta-pg-"))
    if user:
        os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    made = PostgresServer(folder, user)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """Start a server and give its address."""
    with restartable() as made:
        yield made.address


def fresh(address: str) -> str:
    """Return the address of a new database on a server."""
    name = f"d{uuid.uuid4().hex}"
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return address.replace("/postgres?", f"/{name}?")


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(2400):
        if process.poll() is not None:
            raise RuntimeError("PostgreSQL did not start")
        try:
            psycopg.connect(f"host={folder} user=ta dbname=postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError("PostgreSQL did not answer")
