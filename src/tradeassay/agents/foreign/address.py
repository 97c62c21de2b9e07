"""Where an agent may live. A name is resolved once, every address is checked, and that address is connected to.

Without this an agent's address would be a way into the arena's own network: a name may point inwards, and may
point elsewhere a second after it was checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from tradeassay.core.errors import UserError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and a port to addresses as text."""

EVERYWHERE: tuple[Network, ...] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
"""For the user's own agents, which normally run on the same machine."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_INWARD = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10", "168.63.129.16/32")))
"""Protocol assignments, site-local addresses, and the address at which a cloud answers its own machines: some
versions of Python call them global."""


class Unusable(Exception):
    """A request or an answer that cannot be used; ``kind`` is the category under which it is counted."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text
        super().__init__(f"{kind}: {text}")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's address taken apart. ``path`` starts with a slash and may carry a query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host header: as the agent's owner wrote it, without a standard port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == standard else f"{host}:{self.port}"

    def at(self, address: str) -> str:
        """Return the URL with the host replaced by a checked address."""
        shown = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{shown}:{self.port}{self.path}"


def parse_target(url: str, path: str = "") -> Target:
    """Read an agent's address and append ``path``; raises :class:`UserError` for anything but plain http(s)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(
            f"'{url}' is not a valid address: {error}", hint="write https://host or https://host:port"
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"'{url}' is not a web address", hint="write https://host or https://host:port")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise UserError("an agent's address holds no user, password or fragment", hint="leave them out")
    if any(c <= " " or c == "\x7f" for c in url):
        raise UserError("an agent's address holds no blanks or control characters", hint="leave them out")
    whole = (parts.path.rstrip("/") + path if path else parts.path) or "/"
    return Target(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        path=f"{whole}?{parts.query}" if parts.query else whole,
    )


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read networks such as ``127.0.0.0/8``; raises :class:`UserError`."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise UserError(f"no network: {error}", hint="write e.g. 127.0.0.0/8 or ::1/128") from error


def inward(address: Address) -> bool:
    """Return whether an address leads anywhere but the public internet, even when embedded in another one."""
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = _wrapped(address)
        if wrapped is not None:
            return inward(wrapped)
    return (
        any(address in network for network in _INWARD)
        or not address.is_global
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_link_local
    )


def _wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


async def checked_address(target: Target, allow: Sequence[Network], resolve: Resolve) -> str:
    """Resolve a target and return the address to connect to.

    Raises :class:`Unusable`: ``unreachable`` when the name has no address, ``forbidden`` when any of its addresses
    leads inwards and is not in an allowed network.
    """
    try:
        found = await resolve(target.host, target.port)
    except OSError as error:
        raise Unusable("unreachable", f"'{target.host}' has no address: {error}") from error
    if not found:
        raise Unusable("unreachable", f"'{target.host}' has no address")
    for text in found:
        try:
            address = ipaddress.ip_address(text)
        except ValueError as error:  # a scoped link-local address, say
            raise Unusable("forbidden", f"'{target.host}' leads to {text}") from error
        if inward(address) and not any(address in network for network in allow):
            raise Unusable("forbidden", f"'{target.host}' leads to {address}, which is not a public address")
    return found[0]


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Ask the machine's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
