"""The eighteen models of KTD-Fin: their classes in Qlib and their settings here.

The classes and their training loops are Qlib's. The settings are ours: the sizes of Qlib's own
examples, reduced to nine factors. (The paper used the settings of Qlib's model zoo unchanged, but
pyqlib does not ship them.) ``small`` models train in seconds, for trials. ``qlib`` models have the
defaults of Qlib's classes, except where the data, the seed or the machine force another value.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean

Size = Literal["full", "small", "qlib"]
Settings = dict[str, Any]

WINDOW: dict[Size, int] = {"full": 20, "small": 5, "qlib": 60}
"""Sessions of factors that a sequence model sees. Other models see the last one. Qlib's own data
has sixty."""


class FactorModel(msgspec.Struct, frozen=True, kw_only=True):
    """One of the eighteen models.

    ``module`` and ``cls`` are its module and class in Qlib, ``packages`` the packages it computes
    with. ``sequence`` models see a window of sessions. ``full`` and ``small`` are arguments of the
    class, ``fit`` those of its ``fit``. ``forced`` holds the only arguments that differ from Qlib's
    defaults: nine features, no files, no output, repeatable bits. ``torch`` models can train on a
    GPU and take ``batch_size`` and ``seed`` from the training.
    """

    name: str
    title: str
    module: str
    cls: str
    packages: tuple[str, ...]
    sequence: bool = False
    full: Settings = {}
    small: Settings = {}
    forced: Settings = {}
    fit: dict[Size, Settings] = {}

    @property
    def torch(self) -> bool:
        return "torch" in self.packages

    def window(self, size: Size) -> int:
        return WINDOW[size] if self.sequence else 1

    def settings(self, size: Size) -> Settings:
        """Return the arguments of the class for a size.

        ``small`` overrides some of the ``full`` ones. ``qlib`` has only the forced ones.
        """
        if size == "qlib":
            return dict(self.forced)
        return dict(self.full) if size == "full" else {**self.full, **self.small}

    def fit_settings(self, size: Size) -> Settings:
        return dict(self.fit.get(size, {}))


_TEXT = (files(__package__) / "catalogue.toml").read_bytes()
_ALL = msgspec.toml.decode(_TEXT, type=dict[str, tuple[FactorModel, ...]])["model"]
FACTOR_MODELS: dict[str, FactorModel] = {model.name: model for model in _ALL}


def factor_model(name: str) -> FactorModel:
    """Return one of the eighteen models by name.

    Raises :class:`UserError` with near names for an unknown name.
    """
    try:
        return FACTOR_MODELS[name]
    except KeyError:
        hint = did_you_mean(name.lower(), FACTOR_MODELS, f"one of {', '.join(FACTOR_MODELS)}")
        raise UserError(f"unknown factor model '{name}'", hint=hint) from None
