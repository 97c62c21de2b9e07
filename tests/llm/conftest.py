"""No test of this folder may reach anything but loopback, and none may find a real key."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def _loopback(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("network"):
        yield
        return
    connect, connect_ex, lookup = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guard(host: object) -> None:
        if not _loopback(host):
            raise AssertionError(f"a test tried to reach {host}")

    def guarded_connect(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple):
            guard(address[0])
        return connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple):
            guard(address[0])
        return connect_ex(self, address)

    def guarded_lookup(host: Any, *args: Any, **named: Any) -> Any:
        guard(host)
        return lookup(host, *args, **named)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_lookup)
    yield


@pytest.fixture(autouse=True)
def stand_in_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
        "INSPECT_EVAL_MODEL_BASE_URL",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "STANDIN_API_KEY"):
        monkeypatch.setenv(name, "stand-in")
