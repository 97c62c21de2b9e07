"""A PostgreSQL server of one's own: in a temporary folder, on a socket, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found:
        return found
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(versions[-1]) if versions else None


@contextmanager
def server() -> Iterator[str]:
    """Start a server and give its address; skips the test where PostgreSQL is not installed."""
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("needs PostgreSQL's own programs (Debian: postgresql)")
    # PostgreSQL refuses to run as root, so root lends it to nobody.
    user = "nobody" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="ta-pg-"))
    if user:
        os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, "user": user}
    subprocess.run([initdb, "-D", data, "-U", "ta", "-A", "trust", "-N"], check=True, **quiet)
    settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=20"]
    options = [part for setting in settings for part in ("-c", setting)]
    process = subprocess.Popen([postgres, "-D", data, *options], **quiet)
    try:
        _wait(folder, process)
        yield f"postgresql+psycopg://ta@/postgres?host={folder}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> None:
    import time

    import psycopg

    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError("PostgreSQL did not start")
        try:
            psycopg.connect(f"host={folder} user=ta dbname=postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError("PostgreSQL did not answer")
