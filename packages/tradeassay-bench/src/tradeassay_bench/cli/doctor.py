"""Define the command ``doctor``, which checks this machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.errors import TradeassayError
from tradeassay.core.machine import OPTIONAL, DoctorCheck, MachineFinding, doctor_checks
from tradeassay.core.secrets import names_secret
from tradeassay_bench.core.drive import fault_of
from tradeassay_bench.core.executors.task import cores

_NEEDED = ("click", "exchange-calendars", "jinja2", "msgspec", "numpy", "pyarrow", "rich")
PACKAGES = {"inspect_ai": "inspect-ai", "qlib": "pyqlib", "talib": "TA-Lib"}
"""Names of packages that differ from the names of their modules."""
_PROVIDERS = {
    "ANTHROPIC": "https://api.anthropic.com",
    "GOOGLE": "https://generativelanguage.googleapis.com",
    "OPENAI": "https://api.openai.com",
}
"""Default API address of each provider, by the prefix of its API-key variable.

A variable such as OPENAI_BASE_URL overrides the address.
"""
_NETWORK_S = 5.0
"""Time limit for a server's response, in seconds."""


def examine(*, network: bool = False) -> tuple[MachineFinding, ...]:
    """Return the findings of every check. With ``network`` also check the servers of models."""
    checks: dict[str, DoctorCheck] = {
        "python": _python,
        "packages": _packages,
        "store": _store,
        "extras": _extras,
        "keys": _keys,
        "plugins": _plugins,
    }
    if network:
        checks["network"] = _network
    checks |= dict(doctor_checks.items())
    findings: list[MachineFinding] = []
    for name, check in checks.items():
        try:
            findings += check()
        except Exception as error:  # a check that raises is reported as a finding
            findings.append(
                MachineFinding(name, "broken", f"could not be checked: {fault_of(error)}")
            )
    return tuple(findings)


def _python() -> Iterator[MachineFinding]:
    good = sys.version_info >= (3, 11)
    yield MachineFinding(
        "python", "ok" if good else "broken", f"{platform.python_version()} at {sys.executable}"
    )
    yield MachineFinding(
        "machine", "ok", f"{platform.system()} {platform.machine()}, {cores()} cores"
    )


def _packages() -> Iterator[MachineFinding]:
    missing, present = [], []
    for name in _NEEDED:
        try:
            present.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        hint = "pip install . in its folder"
        yield MachineFinding("packages", "broken", f"missing: {', '.join(missing)} ({hint})")
    else:
        yield MachineFinding("packages", "ok", ", ".join(present))


def _store() -> Iterator[MachineFinding]:
    from tradeassay_bench.data import data_home, list_datasets

    home = data_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home):
            pass
    except OSError as error:
        yield MachineFinding(
            "store", "broken", f"cannot write to {home}: {error.strerror} (set TRADEASSAY_HOME)"
        )
        return
    free = shutil.disk_usage(home).free / 1e9
    held = f"{home}, {len(list_datasets(home))} data sets, {free:.0f} GB free"
    yield MachineFinding("store", "ok" if free > 1 else "broken", held)


def _extras() -> Iterator[MachineFinding]:
    for extra, (module, purpose) in OPTIONAL.items():
        if find_spec(module) is None:
            yield MachineFinding(
                f"[{extra}]", "absent", f"{purpose}: pip install 'tradeassay[{extra}]'"
            )
            continue
        package = PACKAGES.get(module, module)
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            # A leftover folder, or a package that is only on PYTHONPATH. It may work.
            version = "unknown version: on the path but not installed"
        yield MachineFinding(f"[{extra}]", "ok", f"{purpose}: {package} {version}")


def _plugins() -> Iterator[MachineFinding]:
    """Yield a finding for each plugin of an installed package that cannot be loaded."""
    from tradeassay_bench.account import venues
    from tradeassay_bench.agents import agents
    from tradeassay_bench.benchmarks import benchmarks
    from tradeassay_bench.data import sources

    for registry in (agents, benchmarks, doctor_checks, sources, venues):
        for name, problem in registry.broken().items():
            part = f"{registry.kind.replace('_', ' ')} {name}"
            yield MachineFinding(part, "broken", f"from an installed package: {problem}")


def _key_names() -> list[str]:
    """Return the names of variables that may contain the key of a model's provider."""
    if find_spec("dotenv") is not None:
        from tradeassay_bench.llm.open import read_env_file

        read_env_file()
    names = {f"{provider}_API_KEY" for provider in _PROVIDERS}
    names |= {name for name in os.environ if name.endswith("_API_KEY") and names_secret(name)}
    return sorted(names)


def _keys() -> Iterator[MachineFinding]:
    try:
        names = _key_names()
    except TradeassayError as error:
        yield MachineFinding("keys", "broken", str(error))
        return
    for name in names:
        if os.environ.get(name):
            yield MachineFinding(name, "ok", "is set")
        else:
            yield MachineFinding(name, "absent", "is not set in the environment or a .env file")


def _network() -> Iterable[MachineFinding]:
    """Yield a finding for each provider with a key: whether its server responds.

    No model is queried.
    """
    from urllib.error import HTTPError
    from urllib.request import urlopen

    for name in _key_names():
        provider = name.removesuffix("_API_KEY")
        address = os.environ.get(f"{provider}_BASE_URL") or _PROVIDERS.get(provider)
        if not os.environ.get(name) or not address:
            continue
        part = f"network {provider.lower()}"
        try:
            with urlopen(address, timeout=_NETWORK_S):
                pass
        except HTTPError:
            pass  # a server that refuses the request was reached
        except (OSError, ValueError) as error:
            yield MachineFinding(part, "broken", f"{address} does not respond: {error}")
            continue
        yield MachineFinding(part, "ok", f"{address} answers")


@click.command()
@opt.flag("--network", "Also check whether the servers of models respond. No model is queried.")
@json_option
def doctor(network: bool, as_json: bool) -> int:
    """Check this machine: Python, packages, store, optional parts, keys.

    Keys are listed by name and never shown. Exits with 1 if a required part fails.
    """
    findings = examine(network=network)
    broken = [finding.part for finding in findings if finding.state == "broken"]
    if as_json:
        print_json(findings)
        return 1 if broken else 0
    marks = {"ok": "ok", "absent": "-", "broken": "BROKEN"}
    rows = [(finding.part, marks[finding.state], finding.finding) for finding in findings]
    print_table("this machine", ("part", "", "finding"), rows)
    if broken:
        say(f"needs attention: {', '.join(broken)}")
        return 1
    has_sandbox = all(
        finding.part != "sandbox" or finding.state != "absent" for finding in findings
    )
    if has_sandbox:
        say("all required parts are present")
    else:
        say("all required parts are present, but programs cannot be run: see sandbox")
    return 0
