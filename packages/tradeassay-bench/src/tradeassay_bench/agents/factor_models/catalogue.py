"""Define the eighteen models of KTD-Fin: their Qlib classes and their settings.

Qlib provides the classes and their training loops. The settings are ours: the sizes of Qlib's
examples, reduced to nine factors. (The paper used the settings of Qlib's model zoo unchanged, but
pyqlib does not include them.) ``small`` models train in seconds, for trials. ``qlib`` models have
the defaults of Qlib's classes, except where the data, the seed or the machine require another
value.
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
"""Number of sessions of factors in the input of a sequence model, by size. All other models use
only the last session. Qlib's own data has sixty sessions.
"""


class FactorModel(msgspec.Struct, frozen=True, kw_only=True):
    """One of the eighteen models.

    ``module`` and ``cls`` name its module and class in Qlib, ``packages`` the packages required for
    it. ``sequence`` models use a window of sessions. ``full`` and ``small`` are arguments of the
    class, ``fit`` arguments of its ``fit`` method. ``forced`` contains the only arguments that
    differ from Qlib's defaults: nine features, no files, no output, repeatable bits. ``torch``
    models can train on a GPU. Their ``batch_size`` and ``seed`` come from the training settings.
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
        """Return the number of sessions in the model's input."""
        return WINDOW[size] if self.sequence else 1

    def settings(self, size: Size) -> Settings:
        """Return the arguments of the class for a size.

        ``small`` overrides some of the ``full`` arguments. ``qlib`` contains only the forced ones.
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

    Raises :class:`UserError` with similar names for an unknown name.
    """
    try:
        return FACTOR_MODELS[name]
    except KeyError:
        hint = did_you_mean(name.lower(), FACTOR_MODELS, f"one of {', '.join(FACTOR_MODELS)}")
        raise UserError(f"unknown factor model '{name}'", hint=hint) from None
