"""Asking the kernel for what an administrator would need."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, done

PRIVILEGED: Final[tuple[Attack, ...]] = (
    Attack("become-root", "privileged", "import os\nos.setuid(0)\nfound.append('done')", done),
    Attack("change-root", "privileged", "import os\nos.chroot('/')\nfound.append('done')", done),
    Attack(
        "new-user-namespace",
        "privileged",
        "import ctypes\nctypes.CDLL(None).unshare(0x10000000) == 0 and found.append('done')",
        done,
    ),
    Attack(
        "outlive-parent",
        "privileged",
        "import ctypes\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0 and found.append('done')",
        done,
    ),
    Attack(
        "ring-of-calls",
        "privileged",
        """
        import ctypes
        parameters = ctypes.create_string_buffer(120)
        if ctypes.CDLL(None).syscall(425, 4, parameters) >= 0:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "key-ring",
        "privileged",
        """
        import ctypes, platform
        number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
        if ctypes.CDLL(None).syscall(number, 0, -3, 1) > 0:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "watch-performance",
        "privileged",
        """
        import ctypes, platform, struct
        number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
        wanted = struct.pack("IIQ", 1, 112, 0).ljust(112, b"\\0")
        if ctypes.CDLL(None).syscall(number, wanted, 0, -1, -1, 0) >= 0:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "kernel-log",
        "privileged",
        "import ctypes\nctypes.CDLL(None).klogctl(10, None, 0) >= 0 and found.append('done')",
        done,
    ),
    Attack(
        "system-call-of-32-bits",
        "privileged",
        """
        import ctypes, mmap, platform
        if platform.machine() == "x86_64":
            code = mmap.mmap(-1, 4096, prot=7)
            code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
            function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
            if function() > 0:
                found.append("done")
        """,
        done,
    ),
)
