"""Specs written by hand: a TOML or JSON file with the fields of :class:`RunSpec`.

An agent may be written as its name alone. ``datasets`` may be one name or a list, for all benchmarks. The slug
defaults to the file's name.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.metrics import BootstrapConfig
from tradeassay.runs.spec import AgentSpec, RunSpec, Window, datasets_for

_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?$", re.DOTALL)


def load_spec(path: Path | str, *, slug: str | None = None) -> RunSpec:
    """Read a spec file; raises :class:`UserError` naming the file and the key that is wrong.

    ``slug`` replaces the one in the file.
    """
    path = Path(path)
    raw = dict(_parse(path))
    if slug is not None:
        raw["slug"] = slug
    raw.setdefault("slug", path.stem)
    return spec_from(raw, where=str(path))


def spec_from(raw: Mapping[str, Any], *, where: str = "spec") -> RunSpec:
    """Make a spec of plain values; raises :class:`UserError` naming the key that is wrong, with near names."""
    values = dict(raw)
    _known_keys(where, "", values, RunSpec)
    for key in ("benchmarks", "agents", "seeds", "windows"):
        if isinstance(values.get(key), str | int | Mapping):
            values[key] = [values[key]]
    if isinstance(values.get("agents"), list | tuple):
        values["agents"] = [{"name": agent} if isinstance(agent, str) else agent for agent in values["agents"]]
        for place, agent in enumerate(values["agents"]):
            _known_keys(where, f"agents[{place}].", agent, AgentSpec)
    _known_keys(where, "window.", values.get("window"), Window)
    _known_keys(where, "bootstrap.", values.get("bootstrap"), BootstrapConfig)
    if "datasets" in values and isinstance(values.get("benchmarks"), list | tuple):
        values["datasets"] = datasets_for(values["benchmarks"], values["datasets"])
    try:
        return msgspec.convert(values, RunSpec)
    except msgspec.ValidationError as error:
        raise _readable(error, where) from error
    except UserError as error:
        raise UserError(f"{where}: {error.message}", mend=error.mend) from error


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}", mend="give the path of a .toml or .json spec"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text", mend="save it as UTF-8") from error
    try:
        raw = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise UserError(f"{path} is no valid {kind}: {error}", mend="correct the line it names") from error
    if not isinstance(raw, Mapping):
        raise UserError(f"{path} holds no table of keys", mend="start with: benchmarks = [...]")
    return raw


def _known_keys(where: str, prefix: str, values: object, kind: type[msgspec.Struct]) -> None:
    """Raise for the first key that ``kind`` does not have. What is no mapping is left to the conversion."""
    if not isinstance(values, Mapping):
        return
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in values:
        if key not in known:
            raise UserError(f"{where}: unknown key '{prefix}{key}'", mend=_hint(str(key), known))


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return did_you_mean(name, names, f"known keys: {', '.join(names)}")


def _readable(error: msgspec.ValidationError, where: str) -> UserError:
    match = _PLACE.match(str(error))
    what, place = (match["what"], match["where"]) if match else (str(error), None)
    what = what.replace("`", "'")
    missing = re.fullmatch(r"Object missing required field '(\w+)'", what)
    if missing:
        inside = f"{place}." if place else ""
        return UserError(f"{where}: '{inside}{missing[1]}' is missing", mend=f"add {missing[1]} = ...")
    return UserError(
        f"{where}: '{place}' is wrong" if place else f"{where} is wrong", mend=what[:1].lower() + what[1:]
    )
