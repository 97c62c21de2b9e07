"""Reading or changing files that are not the job's own."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, attack, done, knows_secret, touched

READING: Final[tuple[Attack, ...]] = (
    attack("read-secret", "file", "found.append(open(p['secret']).read())", knows_secret, short=True),
    attack(
        "read-passwd",
        "file",
        """
        if open("/etc/passwd").readline().startswith("root:"):
            found.append("done")
        """,
        done,
        short=True,
    ),
    attack(
        "read-by-ctypes",
        "file",
        """
        import ctypes, os
        descriptor = ctypes.CDLL(None).open(p["secret"].encode(), 0)
        found.append(os.read(descriptor, 100).decode())
        """,
        knows_secret,
    ),
    attack(
        "read-by-directory-descriptor",
        "file",
        """
        import os
        descriptor = os.open("secret.txt", os.O_RDONLY, dir_fd=os.open(p["folder"], os.O_RDONLY))
        found.append(os.read(descriptor, 100).decode())
        """,
        knows_secret,
    ),
    attack(
        "read-by-dots",
        "file",
        "found.append(open('../' * 20 + p['secret'].lstrip('/')).read())",
        knows_secret,
    ),
    attack(
        "read-by-own-root",
        "file",
        "found.append(open('/proc/self/root' + p['secret']).read())",
        knows_secret,
    ),
    attack(
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
    attack(
        "list-folder",
        "file",
        """
        import os
        if "secret.txt" in os.listdir(p["folder"]):
            found.append("done")
        """,
        done,
    ),
    attack(
        "stat-file",
        "file",
        """
        import os
        if os.stat(p["secret"]).st_size == p["length"]:
            found.append("done")
        """,
        done,
    ),
    attack(
        "own-environment",
        "file",
        """
        import os
        found.extend(os.environ.values())
        """,
        knows_secret,
        short=True,
    ),
    attack(
        "other-environment",
        "file",
        "found.append(open(f\"/proc/{p['victim']}/environ\", 'rb').read().decode())",
        knows_secret,
    ),
    attack(
        "own-start-environment",
        "file",
        "found.append(open('/proc/self/environ', 'rb').read().decode())",
        knows_secret,
    ),
    attack(
        "host-command-line",
        "file",
        """
        if open(f"/proc/{p['host']}/cmdline").read():
            found.append("done")
        """,
        done,
    ),
    attack(
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
    attack("write-outside", "file", "open(p['folder'] + '/new', 'w').write('x')", touched, short=True),
    attack("append-outside", "file", "open(p['secret'], 'a').write('x')", touched),
    attack("delete-outside", "file", "import os\nos.remove(p['secret'])", touched),
    attack("rename-outside", "file", "import os\nos.rename(p['secret'], p['folder'] + '/gone')", touched),
    attack("make-folder-outside", "file", "import os\nos.mkdir(p['folder'] + '/new')", touched),
    attack("hard-link-outside", "file", "import os\nos.link(p['secret'], p['folder'] + '/link')", touched),
    attack("symlink-outside", "file", "import os\nos.symlink('/etc', p['folder'] + '/link')", touched),
    attack("pipe-outside", "file", "import os\nos.mkfifo(p['folder'] + '/pipe')", touched),
    attack("chmod-outside", "file", "import os\nos.chmod(p['secret'], 0o600)", touched),
    attack("utime-outside", "file", "import os\nos.utime(p['secret'], (1, 1))", touched),
    attack("truncate-outside", "file", "import os\nos.truncate(p['secret'], 0)", touched),
    attack(
        "poison-library",
        "file",
        "open(p['folder'] + '/helper.py', 'w').write('CLEAN = False')",
        touched,
    ),
    attack(
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
    attack(
        "leave-a-message",
        "file",
        "open('message.txt', 'w').write('done')",
        done,
        again="found.append(open('message.txt').read())",
    ),
    attack(
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
