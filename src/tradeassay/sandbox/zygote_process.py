"""The host's handle on a zygote process: start it, learn its walls, end it."""

from __future__ import annotations

import importlib.util
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from tradeassay.core.errors import SandboxError
from tradeassay.sandbox.namespaces import SCRATCH
from tradeassay.sandbox.sandbox_config import ENVIRONMENT, SandboxConfig
from tradeassay.sandbox.tier import SandboxRefused, Tier
from tradeassay.sandbox.watch import Reach
from tradeassay.sandbox.zygote import Hello

# The package is loaded from the host's own folder: another one may be installed, and search paths would find that.
_START: Final = """
import importlib.util, sys
sys.path += [one for one in sys.argv[3:] if one not in sys.path]
sys.path.append(sys.argv[1])
place = sys.argv[1] + "/tradeassay"
within = {"submodule_search_locations": [place]}
spec = importlib.util.spec_from_file_location("tradeassay", place + "/__init__.py", **within)
sys.modules["tradeassay"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from tradeassay.sandbox.zygote import main
main(int(sys.argv[2]))
"""
_PACKAGE_PARENT: Final = str(Path(__file__).resolve().parents[2])
_STOP_S: Final = 5.0
_HELLO_BYTES: Final = 1 << 18


def _homes(modules: tuple[str, ...]) -> list[str]:
    """Return the folders of promised modules: the zygote's own search path knows nothing of PYTHONPATH."""
    found: dict[str, None] = {}
    for name in dict.fromkeys(module.partition(".")[0] for module in modules):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        place = None if spec is None else next(iter(spec.submodule_search_locations or ()), spec.origin)
        if place is not None and os.path.isabs(place):
            found[os.path.dirname(place)] = None
    standard = os.path.dirname(os.__file__)
    return [folder for folder in found if folder != standard and not folder.startswith(f"{standard}/lib-")]


def _font_list(config: SandboxConfig) -> dict[str, str]:
    """Return where matplotlib keeps its list of fonts, so that not every zygote looks through the machine's."""
    from tradeassay.core.files import data_home  # a zygote loads this module too, and needs to know no home

    if not any(name.startswith("matplotlib") for name in config.preload):
        return {}
    try:
        folder = data_home().absolute() / "matplotlib"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no room, no rights, no home: each zygote makes its own
        return {}
    return {"MPLCONFIGDIR": str(folder)} if os.access(folder, os.W_OK) else {}


class ZygoteProcess:
    """A running zygote. Raises SandboxError when it does not start, SandboxRefused when its walls are too weak."""

    def __init__(self, config: SandboxConfig) -> None:
        self._owner = os.getpid()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as complaints:
            # A new session keeps the terminal's Ctrl-C from reaching it; it ends when our end of the socket
            # closes.
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-s", "-P", "-B", "-c", _START, _PACKAGE_PARENT, str(theirs.fileno())),
                    *_homes(config.preload),
                ],
                env={**ENVIRONMENT, **_font_list(config), "PYTHONHASHSEED": str(config.hash_seed)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            try:
                self.hello = self._greet(config)
            except BaseException as error:
                self.close()
                complaints.seek(0)
                words = complaints.read()[-2000:].decode("utf-8", "replace").strip()
                if isinstance(error, SandboxError) and words:
                    raise type(error)(f"{error.message}: {words}", hint=error.hint) from None
                raise
        self.modules = frozenset(self.hello.modules)
        self.reach = Reach(
            readable=frozenset(self.hello.readable),
            listable=frozenset(self.hello.listable),
            searched=frozenset(self.hello.searched),
            home=SCRATCH if "private root" in self.tier.walls else "/",
        )

    @property
    def tier(self) -> Tier:
        assert self.hello.tier is not None
        return self.hello.tier

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.socket.close()
        if os.getpid() != self._owner:
            return
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _greet(self, config: SandboxConfig) -> Hello:
        try:
            self.socket.send(msgspec.json.encode(config))
        except OSError:
            raise SandboxError("the sandbox's zygote did not start") from None
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        if not waiting.poll(config.start_s * 1000):
            raise SandboxError(
                f"the sandbox's zygote was not ready after {config.start_s:g} s",
                hint="raise SandboxConfig.start_s",
            )
        try:
            message = self.socket.recv(_HELLO_BYTES)
        except OSError:  # it ended before it had read what it was sent
            message = b""
        if not message:
            raise SandboxError("the sandbox's zygote ended while it loaded its libraries")
        hello = msgspec.json.decode(message, type=Hello)
        if hello.tier is None:
            raise SandboxError(f"the sandbox's zygote could not be prepared: {hello.error}")
        if config.require == "strong" and hello.tier.level != "strong":
            raise SandboxRefused(
                f"strong isolation was asked for, and this machine lacks {'; '.join(hello.tier.missing)}",
                hint="run as root or allow unprivileged user namespaces (sysctl user.max_user_namespaces, and "
                "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or ask for 'standard'",
            )
        return hello
