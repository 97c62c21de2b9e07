"""Taking more than a job may have. Each goes beyond its limit by a little, so that the control stays harmless."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, done, flooded

LIMITS: Final[tuple[Attack, ...]] = (
    Attack(
        "memory-bomb",
        "limits",
        """
        kept = []
        for _ in range(32):
            kept.append(bytearray(8 << 20))
        found.append("done")
        """,
        done,
        short=True,
    ),
    Attack(
        "memory-file",
        "limits",
        """
        import os
        descriptor = os.memfd_create("x", 0)
        for _ in range(5):
            os.write(descriptor, bytes(8 << 20))
        found.append("done")
        """,
        done,
        short=True,
    ),
    Attack(
        "shared-memory",
        "limits",
        """
        import ctypes
        libc = ctypes.CDLL(None)
        segment = libc.shmget(0, 1 << 20, 0o1600)
        if segment >= 0:
            libc.shmctl(segment, 0, None)
            found.append("done")
        """,
        done,
    ),
    Attack(
        "message-queue",
        "limits",
        """
        import ctypes
        libc = ctypes.CDLL(None)
        queue = libc.msgget(0, 0o1600)
        if queue >= 0:
            libc.msgctl(queue, 0, None)
            found.append("done")
        """,
        done,
    ),
    Attack(
        "lock-memory",
        "limits",
        """
        import ctypes
        kept = ctypes.create_string_buffer(16384)
        if ctypes.CDLL(None).mlock(kept, 16384) == 0:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "fill-disk",
        "limits",
        """
        with open("big", "wb") as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
        import os
        os.remove("big")
        found.append("done")
        """,
        done,
    ),
    Attack(
        "fill-disk-with-many-files",
        "limits",
        """
        for number in range(16):
            with open(f"part{number}", "wb") as file:
                file.write(bytes(1 << 20))
        found.append("done")
        """,
        done,
    ),
    Attack(
        "inode-flood",
        "limits",
        """
        for number in range(300):
            open(f"small{number}", "w").close()
        found.append("done")
        """,
        done,
    ),
    Attack(
        "descriptor-flood",
        "limits",
        """
        import os
        kept = [os.dup(1) for _ in range(100)]
        found.append("done")
        """,
        done,
    ),
    Attack(
        "endless-loop",
        "limits",
        """
        import time
        while time.process_time() < 1.4:
            pass
        found.append("done")
        """,
        done,
        short=True,
    ),
    Attack(
        "ignore-time-signal",
        "limits",
        """
        import signal, time
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        while time.process_time() < 2.4:
            pass
        found.append("done")
        """,
        done,
    ),
    Attack(
        "sleep-on",
        "limits",
        """
        import time
        until = time.monotonic() + 3.3
        while time.monotonic() < until:
            time.sleep(0.05)
        found.append("done")
        """,
        done,
    ),
    Attack(
        "raise-own-limits",
        "limits",
        """
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        found.append("done")
        """,
        done,
    ),
    Attack(
        "print-flood",
        "limits",
        """
        for _ in range(64):
            print("x" * (64 << 10))
        """,
        flooded,
    ),
    Attack(
        "huge-result",
        "limits",
        "found.extend(str(number) * 40 for number in range(20_000))",
        flooded,
    ),
)
