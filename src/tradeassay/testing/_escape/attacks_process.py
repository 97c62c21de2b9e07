"""Starting, signalling or inspecting processes."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, done, hurt, knows_secret, touched

PROCESS: Final[tuple[Attack, ...]] = (
    Attack(
        "fork",
        "process",
        """
        import os
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        found.append("done")
        """,
        done,
        short=True,
    ),
    Attack(
        "fork-bomb",
        "process",
        """
        import os, time
        children = []
        for _ in range(24):
            child = os.fork()
            if child == 0:
                time.sleep(0.3)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        found.append("done")
        """,
        done,
    ),
    Attack(
        "surviving-grandchild",
        "process",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(0.4)
                open(p["folder"] + "/survived", "w").write("x")
            os._exit(0)
        """,
        touched,
        wait_s=1.5,
    ),
    Attack(
        "run-a-program",
        "process",
        """
        import subprocess
        found.append(subprocess.run(["/bin/cat", p["secret"]], capture_output=True, text=True).stdout)
        """,
        knows_secret,
        short=True,
    ),
    Attack("shell", "process", "import os\nos.system('echo x > ' + p['folder'] + '/new')", touched),
    Attack(
        "shell-by-ctypes",
        "process",
        "import ctypes\nctypes.CDLL(None).system(('echo x > ' + p['folder'] + '/new').encode())",
        touched,
    ),
    Attack(
        "become-a-program",
        "process",
        "import os\nos.execv('/bin/sh', ['/bin/sh', '-c', 'echo x > ' + p['folder'] + '/new'])",
        touched,
    ),
    Attack(
        "program-from-memory",
        "process",
        """
        import os
        descriptor = os.memfd_create("program", 0)
        os.write(descriptor, b"#!/bin/sh\\necho x > " + p["folder"].encode() + b"/new\\n")
        os.execve(descriptor, ["program"], {})
        """,
        touched,
    ),
    Attack(
        "thread",
        "process",
        """
        import threading
        thread = threading.Thread(target=found.append, args=("done",))
        thread.start()
        thread.join()
        """,
        done,
    ),
    Attack("kill-a-process", "process", "import os\nos.kill(p['victim'], 15)", hurt, short=True),
    Attack(
        "kill-by-handle",
        "process",
        "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(p['victim']), signal.SIGTERM)",
        hurt,
    ),
    Attack(
        "queue-a-signal",
        "process",
        """
        import ctypes, os, platform, struct
        number = {"x86_64": 129, "aarch64": 138}[platform.machine()]
        info = struct.pack("iiiiii", 15, 0, -1, 0, os.getpid(), os.getuid()).ljust(128, b"\\0")
        ctypes.CDLL(None).syscall(number, p["victim"], 15, info)
        """,
        hurt,
    ),
    Attack("probe-host", "process", "import os\nos.kill(p['host'], 0)\nfound.append('done')", done),
    Attack(
        "ptrace",
        "process",
        """
        import ctypes
        trace = ctypes.CDLL(None).ptrace
        if trace(0x4206, p["victim"], None, None) == 0:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "read-host-memory",
        "process",
        """
        import ctypes
        class Vector(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        here = ctypes.create_string_buffer(p["length"])
        local = Vector(ctypes.cast(here, ctypes.c_void_p), p["length"])
        remote = Vector(p["address"], p["length"])
        call = ctypes.CDLL(None).process_vm_readv
        call(p["host"], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        found.append(here.raw.decode())
        """,
        knows_secret,
    ),
    Attack(
        "take-host-descriptor",
        "process",
        """
        import ctypes, os
        handle = os.pidfd_open(p["host"])
        if ctypes.CDLL(None).syscall(438, handle, 0, 0) >= 0:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "lower-priority",
        "process",
        "import os\nos.setpriority(os.PRIO_PROCESS, 0, 19)\nfound.append('done')",
        done,
    ),
    Attack(
        "pin-processor",
        "process",
        "import os\nos.sched_setaffinity(0, os.sched_getaffinity(0))\nfound.append('done')",
        done,
    ),
)
