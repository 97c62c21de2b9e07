"""No test here reaches anything but this machine's loopback."""

import ipaddress
import socket

import pytest

from tradeassay_bench.core.time import FixedClock, parse_iso
from tradeassay_bench.data.connectors.common import RetryPolicy, Runtime

from .standins.certificates import make_authority
from .standins.http import Serving, StandIn

NOWHERE = "http://127.0.0.1:9"


class LeftTheMachine(AssertionError):
    """A test tried to reach the network."""


def _loopback_only(name: str):
    original = getattr(socket.socket, name)

    def guarded(self, address):
        inside = self.family not in (socket.AF_INET, socket.AF_INET6) or address[0] == "localhost"
        if not inside and not ipaddress.ip_address(address[0]).is_loopback:
            raise LeftTheMachine(f"a test connects to {address}")
        return original(self, address)

    return guarded


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch):
    """Refuse every other address. libcurl does not use Python's sockets: its way out is a proxy
    to nowhere.
    """
    monkeypatch.setattr(socket.socket, "connect", _loopback_only("connect"))
    monkeypatch.setattr(socket.socket, "connect_ex", _loopback_only("connect_ex"))
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.setenv(name, NOWHERE)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def serve(request):
    """Start stand-ins that are closed when the test ends."""
    running: list[Serving] = []

    def start(answer, kind: type[Serving] | None = None) -> Serving:
        if kind is None:
            running.append(StandIn(answer, request.getfixturevalue("authority").server))
        else:
            running.append(kind(answer))
        return running[-1]

    yield start
    for stand_in in running:
        stand_in.close()


@pytest.fixture
def behind_proxy(monkeypatch, serve, authority):
    """Start a stand-in and make it the machine's HTTPS proxy, where libraries that use requests
    look.
    """

    def start(answer) -> Serving:
        stand_in = serve(answer)
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{stand_in.port}")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.bundle))
        return stand_in

    return start


@pytest.fixture
def sleeps():
    """The pauses that were asked for and not made."""
    return []


@pytest.fixture
def runtime(sleeps):
    """Make a runtime whose clock stands still and that never really sleeps."""

    def make(now: str, **policy) -> Runtime:
        bounds = {"attempts": 3, "timeout": 5.0, "first_wait": 2.0, "longest_wait": 60.0, **policy}
        return Runtime(
            clock=FixedClock(parse_iso(now)), sleep=sleeps.append, retry=RetryPolicy(**bounds)
        )

    return make
