"""Attacks on the machine: network, files, processes, limits, and what only an administrator may do."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.harness import Attack, done, flooded, heard, hurt, knows_secret, touched

# Reaching the network, or any socket.

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

# Reading or changing files that are not the job's own.

READING: Final[tuple[Attack, ...]] = (
    Attack("read-secret", "file", "found.append(open(p['secret']).read())", knows_secret, short=True),
    Attack(
        "read-passwd",
        "file",
        """
        if open("/etc/passwd").readline().startswith("root:"):
            found.append("done")
        """,
        done,
        short=True,
    ),
    Attack(
        "read-by-ctypes",
        "file",
        """
        import ctypes, os
        descriptor = ctypes.CDLL(None).open(p["secret"].encode(), 0)
        found.append(os.read(descriptor, 100).decode())
        """,
        knows_secret,
    ),
    Attack(
        "read-by-directory-descriptor",
        "file",
        """
        import os
        descriptor = os.open("secret.txt", os.O_RDONLY, dir_fd=os.open(p["folder"], os.O_RDONLY))
        found.append(os.read(descriptor, 100).decode())
        """,
        knows_secret,
    ),
    Attack(
        "read-by-dots",
        "file",
        "found.append(open('../' * 20 + p['secret'].lstrip('/')).read())",
        knows_secret,
    ),
    Attack(
        "read-by-own-root",
        "file",
        "found.append(open('/proc/self/root' + p['secret']).read())",
        knows_secret,
    ),
    Attack(
        "read-by-symlink",
        "file",
        """
        import os
        os.symlink(p["secret"], "link")
        found.append(open("link").read())
        """,
        knows_secret,
        short=True,
    ),
    Attack(
        "list-folder",
        "file",
        """
        import os
        if "secret.txt" in os.listdir(p["folder"]):
            found.append("done")
        """,
        done,
    ),
    Attack(
        "stat-file",
        "file",
        """
        import os
        if os.stat(p["secret"]).st_size == p["length"]:
            found.append("done")
        """,
        done,
    ),
    Attack(
        "own-environment",
        "file",
        """
        import os
        found.extend(os.environ.values())
        """,
        knows_secret,
        short=True,
    ),
    Attack(
        "other-environment",
        "file",
        "found.append(open(f\"/proc/{p['victim']}/environ\", 'rb').read().decode())",
        knows_secret,
    ),
    Attack(
        "own-start-environment",
        "file",
        "found.append(open('/proc/self/environ', 'rb').read().decode())",
        knows_secret,
    ),
    Attack(
        "host-command-line",
        "file",
        """
        if open(f"/proc/{p['host']}/cmdline").read():
            found.append("done")
        """,
        done,
    ),
    Attack(
        "host-memory-file",
        "file",
        """
        memory = open(f"/proc/{p['host']}/mem", "rb")
        memory.seek(p["address"])
        found.append(memory.read(p["length"]).decode())
        """,
        knows_secret,
    ),
)

CHANGING: Final[tuple[Attack, ...]] = (
    Attack("write-outside", "file", "open(p['folder'] + '/new', 'w').write('x')", touched, short=True),
    Attack("append-outside", "file", "open(p['secret'], 'a').write('x')", touched),
    Attack("delete-outside", "file", "import os\nos.remove(p['secret'])", touched),
    Attack("rename-outside", "file", "import os\nos.rename(p['secret'], p['folder'] + '/gone')", touched),
    Attack("make-folder-outside", "file", "import os\nos.mkdir(p['folder'] + '/new')", touched),
    Attack("hard-link-outside", "file", "import os\nos.link(p['secret'], p['folder'] + '/link')", touched),
    Attack("symlink-outside", "file", "import os\nos.symlink('/etc', p['folder'] + '/link')", touched),
    Attack("pipe-outside", "file", "import os\nos.mkfifo(p['folder'] + '/pipe')", touched),
    Attack("chmod-outside", "file", "import os\nos.chmod(p['secret'], 0o600)", touched),
    Attack("utime-outside", "file", "import os\nos.utime(p['secret'], (1, 1))", touched),
    Attack("truncate-outside", "file", "import os\nos.truncate(p['secret'], 0)", touched),
    Attack(
        "poison-library",
        "file",
        "open(p['folder'] + '/helper.py', 'w').write('CLEAN = False')",
        touched,
    ),
    Attack(
        "shared-memory-folder",
        "file",
        """
        import os
        name = "/dev/shm/escape-" + str(os.getpid())
        open(name, "w").write("x")
        os.remove(name)
        found.append("done")
        """,
        done,
    ),
    Attack(
        "leave-a-message",
        "file",
        "open('message.txt', 'w').write('done')",
        done,
        again="found.append(open('message.txt').read())",
    ),
    Attack(
        "leave-a-module",
        "file",
        "open('poisoned.py', 'w').write('STATE = \"done\"')",
        done,
        again="""
        import sys
        sys.path.insert(0, ".")
        import poisoned
        found.append(poisoned.STATE)
        """,
    ),
)

# Starting, signalling or inspecting processes.

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

# Taking more than a job may have. Each goes beyond its limit by a little, so that the control stays harmless.

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

# Asking the kernel for what an administrator would need.

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
