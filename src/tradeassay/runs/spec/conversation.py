"""The conversation that models have in an episode: its protocol, its settings, its prompt files."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from tradeassay.benchmarks import Benchmark, ModelProtocol, ProtocolConfig, protocols
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_file, sha256_of
from tradeassay.core.suggest import did_you_mean
from tradeassay.runs.spec.run_spec import ParamValue


class ProtocolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest keeps of a conversation: its settings in full, their hash, and that of every prompt.

    ``code_sha256`` is the hash of the protocol's file when it is not part of tradeassay.
    """

    protocol: str
    config: dict[str, ParamValue | None]
    config_sha256: str
    prompts: dict[str, str]
    code_sha256: str | None = None


def has_conversation(benchmark: Benchmark) -> bool:
    """Return whether models can play a benchmark."""
    return benchmark.protocol in protocols


def protocol_of(benchmark: Benchmark) -> type[ModelProtocol]:
    """Return a benchmark's protocol; raises :class:`UserError` when it has none for models."""
    if not has_conversation(benchmark):
        raise UserError(
            f"benchmark '{benchmark.id}' has no conversation: models cannot play it",
            hint=f"choose one whose protocol is among {', '.join(protocols.names()) or 'none'}",
        )
    return protocols.get(benchmark.protocol)


def with_protocol(benchmark: Benchmark, overrides: Mapping[str, ParamValue]) -> Benchmark:
    """Return a benchmark with the conversation settings in ``overrides``."""
    if not overrides:
        return benchmark
    return msgspec.structs.replace(benchmark, protocol_params={**benchmark.protocol_params, **overrides})


def protocol_config(benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None) -> ProtocolConfig:
    """Return the settings of a benchmark's conversation.

    Raises :class:`UserError` for an unknown setting, with near names, for an invalid value, and for a setting that
    belongs to the benchmark itself.
    """
    config = protocol_of(benchmark).Config
    given = dict(overrides or {})
    known = [field.encode_name for field in msgspec.structs.fields(config)]
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known, f"it has {', '.join(known) or 'none'}")
            raise UserError(f"benchmark '{benchmark.id}' has no setting '{key}'", hint=hint)
    if given.get("convention", benchmark.convention) != benchmark.convention:
        raise UserError(
            f"benchmark '{benchmark.id}' follows the convention '{benchmark.convention}'",
            hint="run the benchmark that follows the other one",
        )
    return _convert(benchmark, config, {**benchmark.protocol_params, **given})


def open_protocol(benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None) -> ModelProtocol:
    """Return a fresh protocol for one episode; raises :class:`UserError` for nonsensical settings."""
    return protocol_of(benchmark)(protocol_config(benchmark, overrides))


def describe_protocol(benchmark: Benchmark) -> ProtocolRecord:
    """Return what a manifest keeps of a benchmark's conversation."""
    kind = protocol_of(benchmark)
    config = protocol_config(benchmark)
    return ProtocolRecord(
        protocol=benchmark.protocol,
        config=msgspec.to_builtins(config),
        config_sha256=sha256_of(config),
        prompts={name: sha256_bytes(_prompt(kind, name)) for name in kind.prompts},
        code_sha256=_code(kind),
    )


def _convert(benchmark: Benchmark, config: type[ProtocolConfig], values: dict[str, ParamValue]) -> ProtocolConfig:
    try:
        return msgspec.convert(values, config, strict=False)
    except msgspec.ValidationError as error:
        where = re.search(r"^(.*) - at `\$\.(\w+)", str(error))
        if where is None:
            raise UserError(f"benchmark '{benchmark.id}': {error}", hint="correct the setting") from error
        complaint, key = where.groups()
        raise UserError(
            f"benchmark '{benchmark.id}' cannot take {key}={values.get(key)!r}",
            hint=_choices(config, key) or complaint.replace("`", "").replace("Expected", "it wants"),
        ) from error


def _choices(config: type[ProtocolConfig], key: str) -> str | None:
    """Return the words that a setting may take, if it is a choice among a few."""
    for field in msgspec.inspect.type_info(config).fields:  # type: ignore[attr-defined]  # a struct has fields
        if field.encode_name == key and isinstance(field.type, msgspec.inspect.LiteralType):
            return f"it is one of {', '.join(map(str, field.type.values))}"
    return None


def _prompt(kind: type[ModelProtocol], name: str) -> bytes:
    """Read a prompt file: below the protocol's top-level package, or next to a module outside any package."""
    package = kind.__module__.partition(".")[0]
    module = sys.modules.get(kind.__module__)
    if module is not None and not module.__package__ and module.__file__:
        return (Path(module.__file__).parent / name).read_bytes()
    return files(package).joinpath(name).read_bytes()


def _code(kind: type[ModelProtocol]) -> str | None:
    if kind.__module__.partition(".")[0] == "tradeassay":
        return None
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return sha256_file(Path(file)) if file and Path(file).is_file() else None
