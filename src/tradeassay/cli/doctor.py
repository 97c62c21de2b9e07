"""``tradeassay doctor``: what it looks at, and how it tells."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.drive import fault_of
from tradeassay.core.errors import MissingExtra, TradeassayError, UserError
from tradeassay.core.executors.task import cores


class MachineFinding(msgspec.Struct, frozen=True):
    """One look at the machine. ``absent`` is a missing optional part, ``broken`` a missing needed one."""

    part: str
    state: Literal["ok", "absent", "broken"]
    finding: str


_NEEDED = ("click", "exchange-calendars", "jinja2", "msgspec", "numpy", "pyarrow", "rich")
OPTIONAL = {
    "us": ("yfinance", "live US prices"),
    "crypto": ("ccxt", "live crypto prices"),
    "ashare": ("baostock", "live A-share prices"),
    "ray": ("ray", "grids over many machines"),
    "models": ("inspect_ai", "language models of any provider"),
    "local": ("xllamacpp", "a language model on this machine"),
    "code": ("talib", "generated strategies"),
    "qlib": ("qlib", "factor-model baselines"),
    "arena": ("sqlalchemy", "the arena"),
    "postgres": ("psycopg", "an arena with several workers"),
    "mcp": ("mcp", "agents that speak MCP"),
    "fast": ("numba", "luck baselines"),
    "polars": ("polars", "runs as polars frames, other projects' layouts of data"),
    "tracking": ("mlflow", "export to experiment trackers"),
    "rl": ("gymnasium", "the market as a Gymnasium environment"),
}
"""By extra: the package that it cannot do without, and what it is for."""
_PACKAGES = {"inspect_ai": "inspect-ai", "qlib": "pyqlib", "talib": "TA-Lib"}
"""What the packages of modules are called where that is not the module's name."""

_SPEC_FILES = (".toml", ".json", ".yaml", ".yml")
"""What spec files end with; other tools have theirs in YAML, and no model is called so."""


def examine(*, attack: bool = False) -> tuple[MachineFinding, ...]:
    """Look at everything; with ``attack`` the walls of the sandbox are tried, otherwise the kernel is asked."""
    checks: tuple[Callable[[], Iterator[MachineFinding]], ...] = (
        _python,
        _packages,
        _store,
        _extras,
        _plugins,
        *((_sandbox, _libraries) if attack else (_kernel,)),
    )
    found: list[MachineFinding] = []
    for check in checks:
        try:
            found += check()
        except Exception as error:  # a check that breaks is a finding too
            name = check.__name__.strip("_")
            found.append(MachineFinding(name, "broken", f"could not be examined: {fault_of(error)}"))
    return tuple(found)


def _python() -> Iterator[MachineFinding]:
    good = sys.version_info >= (3, 11)
    yield MachineFinding("python", "ok" if good else "broken", f"{platform.python_version()} at {sys.executable}")
    yield MachineFinding("machine", "ok", f"{platform.system()} {platform.machine()}, {cores()} cores")


def _packages() -> Iterator[MachineFinding]:
    missing, present = [], []
    for name in _NEEDED:
        try:
            present.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    lacking = f"missing: {', '.join(missing)} (pip install . in its folder)"
    yield MachineFinding("packages", "broken" if missing else "ok", lacking if missing else ", ".join(present))


def _store() -> Iterator[MachineFinding]:
    from tradeassay.data import data_home, list_datasets

    home = data_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home):
            pass
    except OSError as error:
        yield MachineFinding("store", "broken", f"cannot write to {home}: {error.strerror} (set TRADEASSAY_HOME)")
        return
    free = shutil.disk_usage(home).free / 1e9
    held = f"{home}, {len(list_datasets(home))} data sets, {free:.0f} GB free"
    yield MachineFinding("store", "ok" if free > 1 else "broken", held)


def _extras() -> Iterator[MachineFinding]:
    for extra, (module, purpose) in OPTIONAL.items():
        if find_spec(module) is None:
            yield _missing(extra, "absent")
        else:
            package = _PACKAGES.get(module, module)
            try:
                version = metadata.version(package)
            except metadata.PackageNotFoundError:
                # A leftover folder, or a package that is only on PYTHONPATH: it may work.
                version = "of an unknown version: it is on the path but not installed"
            yield MachineFinding(f"[{extra}]", "ok", f"{purpose}: {package} {version}")
    if find_spec("pip") is None:
        yield MachineFinding("pip", "absent", "'data get' needs it: python -m ensurepip")
    else:
        yield MachineFinding("pip", "ok", f"{metadata.version('pip')}, for 'data get'")


def _missing(extra: str, state: Literal["absent", "broken"]) -> MachineFinding:
    return MachineFinding(f"[{extra}]", state, f"{OPTIONAL[extra][1]}: pip install 'tradeassay[{extra}]'")


def _plugins() -> Iterator[MachineFinding]:
    """What other packages add to tradeassay and cannot be loaded."""
    from tradeassay.account import venues
    from tradeassay.agents import agents
    from tradeassay.benchmarks import benchmarks
    from tradeassay.data import sources

    for registry in (agents, benchmarks, sources, venues):
        for name, error in registry.broken().items():
            yield MachineFinding(f"{registry.kind} {name}", "broken", f"of an installed package: {error}")


def _kernel() -> Iterator[MachineFinding]:
    """What the kernel says it has for walls around untrusted code; they are not tried."""
    from tradeassay.sandbox import ask_kernel, refusal

    kernel = ask_kernel()
    said = f"Landlock {kernel.landlock_abi} and seccomp are here; to attack the walls: doctor --sandbox"
    refused = refusal(kernel)
    yield MachineFinding("sandbox", "ok" if refused is None else "absent", str(refused or said))


def _sandbox() -> Iterator[MachineFinding]:
    """The walls around untrusted code, tried by the short form of the escape suite."""
    from tradeassay.testing import CheckFailed, check_sandbox

    try:
        yield MachineFinding("sandbox", "ok", check_sandbox(short=True).summary())
    except CheckFailed as failed:
        yield MachineFinding("sandbox", "broken", str(failed))
    except TradeassayError as refused:
        yield MachineFinding("sandbox", "absent", str(refused))


def examine_for(what: str) -> Iterator[MachineFinding]:
    """Look at what one run needs: ``what`` is a spec file, a benchmark, an agent or a model. Nothing is asked or
    fetched."""
    from tradeassay.agents import agents
    from tradeassay.benchmarks import benchmarks
    from tradeassay.benchmarks.code_protocol import code_benchmarks, refuse_other_kind
    from tradeassay.core.registry import did_you_mean, newest

    if (programs := opt.program_spec((what,))) is not None:
        yield from _programs()
        for name in programs.models:
            yield from _model(name)
    elif Path(what).is_file():
        from tradeassay.runs import load_spec

        spec = load_spec(what)
        for name in spec.benchmarks:
            yield from _benchmark(name, spec.datasets.get(name, ()))
        for agent in spec.agents:
            model = agent.params.get("model")
            yield from (_model(str(model)) if model is not None else _agent(agent.name, dict(agent.params)))
    elif Path(what).suffix in _SPEC_FILES or Path(what).is_dir():
        found = f"'{what}' is a folder" if Path(what).is_dir() else f"there is no file '{what}'"
        raise UserError(found, hint="name a spec file (.toml, .json), a benchmark, an agent or a model")
    elif "/" in what:
        yield from _model(what)
    elif benchmarks.full_name(what) in benchmarks or what in benchmarks.broken():
        yield from _benchmark(what, ())
    elif newest(what, known := code_benchmarks()) in known:
        yield from _programs()
    elif what in agents or what in agents.broken():
        yield from _agent(what, {})
    else:
        refuse_other_kind(what, trades=True)
        hint = did_you_mean(what, (*benchmarks.names(), *known, *agents.names()), "see tradeassay benchmarks")
        raise UserError(f"no benchmark, agent or model '{what}'", hint=hint)


def _programs() -> Iterator[MachineFinding]:
    """What a benchmark of programs needs: walls to run them behind, and the libraries that they may import."""
    walls = [msgspec.structs.replace(one, state="ok" if one.state == "ok" else "broken") for one in _kernel()]
    yield from walls
    if find_spec(OPTIONAL["code"][0]) is None:
        yield _missing("code", "broken")
    elif all(one.state == "ok" for one in walls):
        yield from _libraries()


def _tried(part: str, fine: str, look: Callable[[], object]) -> Iterator[MachineFinding]:
    """Say that a part is well where looking at it raises nothing."""
    try:
        look()
    except TradeassayError as error:
        yield MachineFinding(part, "broken", str(error))
    else:
        yield MachineFinding(part, "ok", fine)


def _model(name: str) -> Iterator[MachineFinding]:
    from tradeassay.llm import check_model

    return _tried(f"model {name}", "can be asked: its package and key are here", lambda: check_model(name))


def _agent(name: str, params: dict[str, Any]) -> Iterator[MachineFinding]:
    from tradeassay.agents import agents, converses, make_agent

    def look() -> None:
        agents.get(name)
        if not converses(name):
            make_agent(name, params)

    return _tried(f"agent {name}", "is there", look)


def _benchmark(name: str, datasets: tuple[str, ...]) -> Iterator[MachineFinding]:
    from tradeassay.benchmarks import benchmarks
    from tradeassay.data import load_dataset

    try:
        chosen = benchmarks.get(name)
    except TradeassayError as error:
        yield MachineFinding(f"benchmark {name}", "broken", str(error))
        return
    for dataset in datasets or (chosen.dataset,):
        yield from _tried(f"data {dataset}", f"for {name}", partial(load_dataset, dataset))


def _libraries() -> Iterator[MachineFinding]:
    """What programs are promised, imported where they will import it: inside the sandbox."""
    if find_spec("backtrader") is None and find_spec("talib") is None:
        return  # the extra is not installed, which stands above
    try:
        from tradeassay.code.running import PROMISED, open_code_executor

        with open_code_executor():
            yield MachineFinding("libraries", "ok", f"programs can import {', '.join(PROMISED)}")
    except MissingExtra as missing:
        yield MachineFinding("libraries", "broken", str(missing))
    except TradeassayError:
        return  # no sandbox, which stands above


@click.command()
@opt.option(
    "--for=SPEC what", "Check only what this needs: a spec file, a benchmark, an agent or a model. Asks no model."
)
@opt.flag("--sandbox attack", "Attack the sandbox and import what programs may import.")
@json_option
def doctor(what: str | None, attack: bool, as_json: bool) -> int:
    """Check this machine: Python, packages, store, optional parts. Exits with 1 when something needed fails.

    --for checks only what one run needs, before it costs anything: data, agents, packages and keys.
    """
    findings = examine(attack=attack) if what is None else tuple(examine_for(what))
    if as_json:
        print_json(findings)
    else:
        marks = {"ok": "ok", "absent": "-", "broken": "BROKEN"}
        rows = [(f.part, marks[f.state], f.finding) for f in findings]
        print_table("this machine" if what is None else what, ("part", "", "finding"), rows)
        broken = [f.part for f in findings if f.state == "broken"]
        shut = any(f.part == "sandbox" and f.state == "absent" for f in findings)
        good = "everything needed is here" + (", but programs cannot be run: see sandbox" if shut else "")
        say(good if not broken else f"needs attention: {', '.join(broken)}")
    return 1 if any(f.state == "broken" for f in findings) else 0
