"""Specify a run: benchmarks, data sets, agents and seeds in one frozen spec.

A spec can be written by hand as a TOML or JSON file with the fields of :class:`RunSpec`. An agent
may be written as on the command line (see :func:`parse_agent`). ``datasets`` may be one name or a
list of names for all benchmarks. ``name`` defaults to the name of the file.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.arguments import path_from, shown, take_fields
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.core.measure import Convention
from tradeassay.core.registry import did_you_mean, newest
from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.agents.own_file import is_own_file, own_agent
from tradeassay_bench.benchmarks.benchmark import benchmarks as registered
from tradeassay_bench.benchmarks.code_protocol import CodeSpec, find_protocol
from tradeassay_bench.core.files import NAME_LENGTH, safe_name as safe_name
from tradeassay_bench.core.run_secret import refuse_bad_secret
from tradeassay_bench.core.time import parse_day

ParamValue = bool | int | float | str

MOST_EPISODES = 50_000
MOST_SETTINGS = 1_000
"""The maximum numbers of episodes and of settings in one run, checked before the grid is built."""
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.=+-]*(_[A-Za-z0-9.=+-]+)*")


class AgentSpec(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An agent: its registered name, its parameters and its label.

    ``label`` is the name of the agent in tables. It defaults to the registered name with the
    parameters.
    """

    name: str
    params: dict[str, ParamValue] = {}
    label: str | None = None

    @property
    def title(self) -> str:
        """Return the label, or the default label if there is none."""
        if self.label is not None:
            return self.label
        parts = (
            self.name,
            *(f"{key}={_shown(value)}" for key, value in sorted(self.params.items())),
        )
        return safe_name("-".join(parts))


class Window(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first and the last trading day, as ISO dates, both included."""

    first: str
    last: str

    def __post_init__(self) -> None:
        if parse_day(self.first) > parse_day(self.last):
            raise UserError(
                f"the window ends on {self.last}, before it starts on {self.first}",
                hint="swap the two days",
            )


_RECORDED_NAME = "slug"
"""The key of a run's name in manifests. Recordings hash this key, so it must not change."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: every agent on every data set of every benchmark with every seed.

    ``datasets`` maps benchmarks to the data sets that replace their own. ``window`` replaces the
    first and the last day of every benchmark. Alternatively ``windows`` lists named windows, such
    as ``W4``.

    ``protocol`` changes the options of the conversation with models (``mask``, ``mode`` ...). A
    list of values, or of windows, adds a dimension to the grid. The baseline agent of each
    benchmark always runs as well.

    ``secret`` seeds the random draws, for example of aliases. If it is unset, a secret is drawn
    when the run starts. ``index`` replaces the index with which results are compared (``none`` for
    no index). ``universe`` replaces the stocks that may be bought.

    Raises :class:`UserError` for an empty list, a repeated value, a name that is not a valid folder
    name, a negative seed, and a grid that is too large.
    """

    name: str = msgspec.field(name=_RECORDED_NAME)
    benchmarks: tuple[str, ...]
    agents: tuple[AgentSpec, ...]
    datasets: dict[str, tuple[str, ...]] = {}
    seeds: tuple[int, ...] = (0,)
    window: Window | None = None
    convention: Convention = "corrected"
    bootstrap: BootstrapConfig = msgspec.field(default_factory=BootstrapConfig)
    protocol: dict[str, ParamValue | tuple[ParamValue, ...]] = {}
    windows: tuple[str, ...] = ()
    secret: str | msgspec.UnsetType = msgspec.UNSET
    index: str | msgspec.UnsetType = msgspec.UNSET
    universe: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        take_fields(self)
        if self.secret:
            refuse_bad_secret(self.secret)
        hint = f"use up to {NAME_LENGTH} ASCII letters, digits, dots, dashes and single underscores"
        if not _SLUG.fullmatch(self.name) or len(self.name) > NAME_LENGTH:
            raise UserError(f"name '{self.name}' is not a valid folder name", hint=hint)
        for agent in self.agents:
            if not _LABEL.fullmatch(agent.title) or len(agent.title) > NAME_LENGTH:
                raise UserError(
                    f"agent label '{agent.title}' is not a valid folder name", hint=hint
                )
        _some_and_once("benchmarks", self.benchmarks)
        _some_and_once(
            "agents",
            (agent.title for agent in self.agents),
            hint="give the agents different labels",
        )
        _some_and_once("seeds", self.seeds)
        for benchmark, names in self.datasets.items():
            if benchmark not in self.benchmarks:
                raise UserError(
                    f"datasets contains the benchmark '{benchmark}', which is not in the run",
                    hint=f"benchmarks of this spec: {', '.join(self.benchmarks)}",
                )
            _some_and_once(f"datasets for {benchmark}", names)
        for key, values in self.protocol.items():
            if isinstance(values, tuple):
                _some_and_once(f"protocol.{key}", map(_shown, values))
        if self.windows:
            _some_and_once("windows", self.windows)
            if self.window is not None:
                raise UserError(
                    "a window and named windows are both given", hint="leave one of them out"
                )
        if not 0 <= min(self.seeds) <= max(self.seeds) < 2**63:
            raise UserError("a seed is negative or has more than 63 bits", hint="use 0, 1, 2 ...")
        lists = (len(values) for values in self.protocol.values() if isinstance(values, tuple))
        settings = math.prod(lists) * max(1, len(self.windows))
        data = sum(len(self.datasets.get(name, ("",))) for name in self.benchmarks)
        episodes = data * settings * len(self.agents) * len(self.seeds)
        if settings > MOST_SETTINGS or episodes > MOST_EPISODES:
            raise UserError(
                f"a grid of {settings:,} settings and {episodes:,} episodes is too large",
                hint=f"split it into runs of at most {MOST_SETTINGS:,} and {MOST_EPISODES:,}",
            )

    @property
    def variants(self) -> tuple[dict[str, ParamValue], ...]:
        """Return all combinations of the values in ``protocol``, in a fixed order.

        If ``protocol`` is empty, the result is one empty combination.
        """
        keys = sorted(self.protocol)
        lists = [
            value if isinstance(value, tuple) else (value,)
            for value in (self.protocol[key] for key in keys)
        ]
        return tuple(dict(zip(keys, chosen, strict=True)) for chosen in itertools.product(*lists))


def work_sha256(spec: RunSpec) -> str:
    """Return the hash of the work that a spec describes.

    The name is not hashed. ``protocol`` and ``windows`` are not hashed if they are empty, so that
    a run without models has the same hash as without these fields.
    """
    fields = msgspec.to_builtins(msgspec.structs.replace(spec, name="x"))
    return sha256_of(
        {key: value for key, value in fields.items() if value or key not in ("protocol", "windows")}
    )


def model_agent(name: str) -> AgentSpec:
    """Return the agent for a model. Its label is derived from the name of the model."""
    label = safe_name(name.replace("/", "-").replace(":", "-"))
    return AgentSpec(name="model", params={"model": name}, label=label)


def parse_agent(text: str) -> AgentSpec:
    """Parse ``name:key=value,...`` or ``path.py:Class,key=value,...``.

    The parameter ``label`` sets the label of the agent. Without it, some agents get a label that
    identifies a host, a class, a script or a trained model. Raises :class:`UserError` if the text
    is malformed.
    """
    own = is_own_file(text)
    if text.endswith(".py") and ":" not in text:
        raise UserError(f"'{text}' has no class name", hint=f"write {text}:CLASS")
    name, _, rest = text.partition("," if own else ":")
    name = name.strip()
    params: dict[str, ParamValue] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals and next(reversed(params), "") == "env":
            # The value of ``env`` is a list with commas: ``env=A,B``.
            params["env"] = f"{params['env']},{key.strip()}"
            continue
        if not equals or not key or not value:
            what = f"'{part}' in agent '{text}' is not a parameter"
            raise UserError(what, hint="write name:key=value,key=value")
        params[key.strip()] = parse_value(value.strip())
    label = params.pop("label", None)
    if own:
        label = label or name.rpartition(":")[2]
        name, params = own_agent(name, params)
    elif label is None and name == "factor-model":
        from tradeassay_bench.agents.factor_models.fitting import list_trained

        # The label of a trained factor model is its kind and the start of its key.
        wanted = str(params.get("key", ""))
        trained = next(
            (
                candidate
                for candidate in list_trained()
                if wanted and candidate.key.startswith(wanted)
            ),
            None,
        )
        if trained is not None:
            shuffled = "-shuffled" if trained.recipe.shuffled else ""
            label = f"{trained.recipe.model}{shuffled}-{trained.key[:6]}"
    elif label is None and name == "http":
        host = str(params.get("url", "")).partition("://")[2].partition("/")[0]
        label = re.sub(r"[^A-Za-z0-9.]+", "-", host).strip("-.") or None
    elif label is None and name in ("pipe", "python"):
        # The label of a user's own agent is its class, its script or its program.
        words = (
            str(params.get("command" if name == "pipe" else "class", "")).rpartition(":")[2].split()
        )
        scripts = [word for word in words if Path(word).suffix] or words
        label = Path(scripts[0]).stem if scripts else None
    return AgentSpec(name=name, params=params, label=None if label is None else str(label))


def parse_value(text: str) -> ParamValue:
    """Return the value of a parameter on the command line: a boolean, a number or text.

    Raises :class:`UserError` for NaN and infinities.
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if not math.isfinite(number):
            raise UserError(f"{text:.40} is not a finite number", hint="give a number")
        return number
    return text


def variant_name(settings: Mapping[str, ParamValue], window: str | None) -> str | None:
    """Return the part of an episode's key for its options and window; None without both."""
    parts = [f"{key}={_shown(value)}" for key, value in sorted(settings.items())]
    parts += [window] if window is not None else []
    return safe_name("+".join(parts)) if parts else None


def datasets_for(
    benchmarks: Collection[str], names: str | Iterable[str] | Mapping[str, object]
) -> dict[str, object]:
    """Return the data sets of each benchmark, from one name, a list of names, or a mapping.

    A name or a list applies to all ``benchmarks``. In a mapping the ids of benchmarks may omit
    their version. Raises :class:`UserError` for any other type.
    """
    if isinstance(names, Mapping):
        return {
            newest(benchmark, benchmarks): [value] if isinstance(value, str) else value
            for benchmark, value in names.items()
        }
    if not isinstance(names, Iterable):
        raise UserError(
            f"dataset cannot be {shown(names)}", hint="give a name, a path, or a list of them"
        )
    listed = [names] if isinstance(names, str) else list(names)
    return dict.fromkeys(benchmarks, listed)


def _shown(value: ParamValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _some_and_once(
    what: str, values: Iterable[object], *, hint: str = "remove the second one"
) -> None:
    """Check that there is at least one value and that no value is repeated.

    Raises :class:`UserError` otherwise. ``hint`` is the hint for a repeated value.
    """
    # Case is ignored because keys become folders, and some file systems are case-insensitive.
    seen: set[object] = set()
    for value in values:
        folded = value.casefold() if isinstance(value, str) else value
        if folded in seen:
            raise UserError(f"{what}: '{value}' is given twice", hint=hint)
        seen.add(folded)
    if not seen:
        raise UserError(f"{what}: no value is given", hint="give at least one value")


def load_spec(path: Path | str, *, name: str | None = None) -> RunSpec:
    """Return the spec of a trading run in a file. ``name`` replaces the name in the file.

    Raises :class:`UserError`, which names the file and the invalid key.
    """
    path = path_from("a spec file", path)
    raw = dict(_parse(path))
    if name is not None:
        raw["name"] = name
    elif _RECORDED_NAME not in raw:  # a sealed spec has its recorded name
        raw.setdefault("name", path.stem)
    return spec_from(raw, where=str(path))


def load_code_spec(path: Path) -> CodeSpec | None:
    """Return the spec of a run of programs in a file, which has one ``benchmark``.

    Returns None for a different kind of spec. Raises :class:`UserError`, which names the file and
    the invalid key.
    """
    raw = dict(_parse(path))
    if not isinstance(raw.get("benchmark"), str):
        return None
    kind = find_protocol(raw["benchmark"]).Spec
    _known_keys(str(path), "", raw, kind)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise _readable(error, str(path)) from error


def spec_from(raw: Mapping[str, Any], *, where: str = "spec") -> RunSpec:
    """Return the spec of a trading run from plain values, as read from a file.

    ``where`` is the source in error messages. Raises :class:`UserError`, which names the invalid
    key.
    """
    values = dict(raw)
    _known_keys(where, "", values, RunSpec)
    if "name" in values:
        values[_RECORDED_NAME] = values.pop("name")
    for key in ("benchmarks", "agents", "seeds", "windows"):
        if isinstance(values.get(key), str | int | Mapping):
            values[key] = [values[key]]
    if isinstance(agents := values.get("agents"), list | tuple):
        values["agents"] = [
            msgspec.to_builtins(parse_agent(agent)) if isinstance(agent, str) else agent
            for agent in agents
        ]
        for index, agent in enumerate(values["agents"]):
            _known_keys(where, f"agents[{index}].", agent, AgentSpec)
    _known_keys(where, "window.", values.get("window"), Window)
    _known_keys(where, "bootstrap.", values.get("bootstrap"), BootstrapConfig)
    if isinstance(names := values.get("benchmarks"), list | tuple):
        names = [registered.full_name(name) if isinstance(name, str) else name for name in names]
        values["benchmarks"] = names
        if "datasets" in values:
            values["datasets"] = datasets_for(names, values["datasets"])
    try:
        return msgspec.convert(values, RunSpec)
    except msgspec.ValidationError as error:
        raise _readable(error, where) from error
    except UserError as error:
        raise UserError(f"{where}: {error.message}", hint=error.hint) from error


def _parse(path: Path) -> Mapping[str, Any]:
    """Return the content of a TOML or JSON file. Raises :class:`UserError` if it is invalid."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        hint = "give the path of a .toml or .json spec"
        raise UserError(f"cannot read {path}: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text", hint="save it as UTF-8") from error
    try:
        raw = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # nested too deeply
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise UserError(
            f"{path} is not valid {kind}: {error}", hint="correct the line in the message"
        ) from error
    if not isinstance(raw, Mapping):
        raise UserError(f"{path} is not a table of keys", hint="start with: benchmarks = [...]")
    return raw


def _known_keys(where: str, prefix: str, values: object, kind: type[msgspec.Struct]) -> None:
    """Check that a mapping contains only fields of ``kind``.

    Raises :class:`UserError` for the first unknown key. Values that are not mappings are ignored,
    because the decoder reports them.
    """
    if not isinstance(values, Mapping):
        return
    fields = msgspec.structs.fields(kind)
    known = [field.name for field in fields]
    recorded = {field.encode_name for field in fields}
    for key in values:
        if key not in known and key not in recorded:
            hint = did_you_mean(str(key), known, f"known keys: {', '.join(known)}")
            raise UserError(f"{where}: unknown key '{prefix}{key}'", hint=hint)


def _readable(error: msgspec.ValidationError, where: str) -> UserError:
    """Return a decoding error as an error about a key of the spec in ``where``."""
    # The text of msgspec has the form "Expected `int`, got `str` - at `$.seeds[0]`".
    what, _, place = str(error).partition(" - at `$")
    what, place = what.replace("`", "'"), place.removeprefix(".").removesuffix("`")
    if missing := re.fullmatch(r"Object missing required field '(\w+)'", what):
        inside = f"{place}." if place else ""
        return UserError(
            f"{where}: '{inside}{missing[1]}' is missing", hint=f"add {missing[1]} = ..."
        )
    wrong = f"{where}: '{place}' is wrong" if place else f"{where} is wrong"
    return UserError(wrong, hint=what[:1].lower() + what[1:])
