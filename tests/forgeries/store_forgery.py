"""Forged archives, and a forged world of a store: everything but the content is as this package writes it."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from honest import play

from tradeassay.core.hashing import canonical_json
from tradeassay.data import synthetic
from tradeassay.runs.store.archive import read_members, write_packed


def forge_world(home: Path, root: Path) -> Path:
    """Let a name of a synthetic world rise in a private store, and return a run that was played there."""
    honest = synthetic.generate

    def better(config: Any) -> Any:
        world = honest(config)
        bars = {name: field.copy() for name, field in world.panel.bars.items()}
        for name in ("open", "high", "low", "close"):
            bars[name][-480:] *= 1.5
        return dataclasses.replace(world, panel=dataclasses.replace(world.panel, bars=bars))

    environment = {**os.environ, "TRADEASSAY_HOME": str(home)}
    with mock.patch.object(synthetic, "generate", better), mock.patch.dict(os.environ, environment):
        words = ("run", "daily-us-v1", "-a", "momentum-12-1:k=3", "--first", "2022-01-10", "--last", "2022-01-20")
        return play(root, *words, "--executor", "inline", "--slug", "rule")


def exchange(seal: Path, name: str, edit: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(seal) as archive:
        content = {one: archive.read(one) for one in archive.namelist()}
    assert edit(content[name]) != content[name]
    content[name] = edit(content[name])
    with zipfile.ZipFile(seal, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in content.items():
            archive.writestr(one, data)


def add(seal: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(seal, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)


def relabel(file: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    content = dict(read_members(file))
    label = json.loads(content["recording.json"])
    edit(label)
    content["recording.json"] = canonical_json(label)
    write_packed(file, content)
