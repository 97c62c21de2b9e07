"""Forged archives, and a forged world of a store: everything but the content is as this package
writes it.
"""

import contextlib
import dataclasses
import json
import zipfile
from unittest import mock

from tradeassay.core.hashing import canonical_json
from tradeassay_bench.data import synthetic
from tradeassay_bench.runs.store.archive import read_members, write_packed


@contextlib.contextmanager
def forged_worlds():
    """Let every synthetic world that is made rise; its store has all hashes of what was made."""
    honest = synthetic.generate

    def better(config):
        world = honest(config)
        bars = {name: field.copy() for name, field in world.panel.bars.items()}
        for name in ("open", "high", "low", "close"):
            bars[name][-480:] *= 1.5
        return dataclasses.replace(world, panel=dataclasses.replace(world.panel, bars=bars))

    with mock.patch.object(synthetic, "generate", better):
        yield


def exchange(seal, name, edit):
    with zipfile.ZipFile(seal) as archive:
        content = {one: archive.read(one) for one in archive.namelist()}
    assert edit(content[name]) != content[name]
    content[name] = edit(content[name])
    with zipfile.ZipFile(seal, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in content.items():
            archive.writestr(one, data)


def relabel(file, edit):
    content = dict(read_members(file))
    label = json.loads(content["recording.json"])
    edit(label)
    content["recording.json"] = canonical_json(label)
    write_packed(file, content)
