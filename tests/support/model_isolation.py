"""Fixtures for tests of models: only loopback can be reached, and no real key is found."""

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import pytest


def _loopback(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch, request):
    if request.node.get_closest_marker("network"):
        yield
        return

    def guard(where: Any, name: str, host: Callable[..., object]) -> None:
        honest = getattr(where, name)

        def guarded(*given: Any, **named: Any) -> Any:
            if not _loopback(host(*given)):
                raise AssertionError(f"a test tried to reach {host(*given)}")
            return honest(*given, **named)

        monkeypatch.setattr(where, name, guarded)

    for name in ("connect", "connect_ex"):
        guard(socket.socket, name, lambda _, to: to[0] if isinstance(to, tuple) else None)
    guard(socket, "getaddrinfo", lambda host, *_: host)
    yield


@pytest.fixture(autouse=True)
def stand_in_keys(monkeypatch):
    proxies = [f"{kind}_proxy" for kind in ("http", "https", "all")]
    servers = (
        "OPENAI_BASE_URL ANTHROPIC_BASE_URL ANTHROPIC_AUTH_TOKEN INSPECT_EVAL_MODEL_BASE_URL"
    ).split()
    for name in (*servers, *proxies, *(proxy.upper() for proxy in proxies)):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "STANDIN_API_KEY"):
        monkeypatch.setenv(name, "stand-in")
