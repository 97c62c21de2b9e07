"""Reading or changing files that are not the job's own."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, done, knows_secret, touched

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
