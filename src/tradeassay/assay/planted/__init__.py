"""Planted agents: the instrument is tested on agents of which the truth is known."""

from __future__ import annotations

from tradeassay.assay.planted.agents import EXPECTED, PLANTS, Plant, PlantConfig, weights_of
from tradeassay.assay.planted.trial import Bench, Confusion, confusion
from tradeassay.assay.planted.world import PlantedWorld, planted_world

__all__ = [
    "EXPECTED",
    "PLANTS",
    "Bench",
    "Confusion",
    "Plant",
    "PlantConfig",
    "PlantedWorld",
    "confusion",
    "planted_world",
    "weights_of",
]
