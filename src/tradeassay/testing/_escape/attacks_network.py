"""Reaching the network, or any socket."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, done, heard

NETWORK: Final[tuple[Attack, ...]] = (
    Attack(
        "tcp-connect",
        "network",
        """
        import socket
        socket.create_connection(("127.0.0.1", p["port"]), timeout=1).send(b"hello")
        """,
        heard,
        short=True,
    ),
    Attack(
        "http-request",
        "network",
        """
        import urllib.request
        urllib.request.urlopen(f"http://127.0.0.1:{p['port']}/?key=1", timeout=0.2)
        """,
        heard,
    ),
    Attack(
        "udp-send",
        "network",
        """
        import socket
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", p["udp"]))
        """,
        heard,
    ),
    Attack(
        "dns-query",
        "network",
        """
        import socket, struct
        name = b"".join(bytes([len(part)]) + part for part in (b"stolen", b"example", b""))
        query = struct.pack(">6H", 7, 256, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(query, ("127.0.0.1", p["udp"]))
        """,
        heard,
    ),
    Attack(
        "name-lookup",
        "network",
        """
        import socket
        if socket.getaddrinfo("localhost", 80):
            found.append("done")
        """,
        done,
    ),
    Attack(
        "unix-socket",
        "network",
        """
        import socket
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"hello", p["unix"])
        """,
        heard,
        short=True,
    ),
    Attack(
        "abstract-socket",
        "network",
        """
        import socket
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"hello", "\\0" + p["abstract"])
        """,
        heard,
    ),
    Attack(
        "socket-pair",
        "network",
        """
        import socket
        a, b = socket.socketpair()
        a.send(b"x")
        if b.recv(1) == b"x":
            found.append("done")
        """,
        done,
    ),
    Attack(
        "listen",
        "network",
        """
        import socket
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen()
        found.append("done")
        """,
        done,
    ),
    Attack(
        "netlink",
        "network",
        """
        import socket
        socket.socket(16, socket.SOCK_RAW, 0).bind((0, 0))
        found.append("done")
        """,
        done,
    ),
    Attack(
        "raw-syscall-socket",
        "network",
        """
        import ctypes, platform
        number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
        if ctypes.CDLL(None).syscall(number, 2, 1, 0) >= 0:
            found.append("done")
        """,
        done,
    ),
)
