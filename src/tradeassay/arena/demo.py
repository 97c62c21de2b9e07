"""A season that needs no key and no data: four architectures with scripted models on replayed synthetic days."""

from __future__ import annotations

from tradeassay.arena.season import Asset, Entry, Season

MODELS = ("scripted/sensible", "scripted/contrarian")
ARCHITECTURES = ("investor", "trade", "hedge-fund", "deep-fund")


def demo_season(seed: int = 7, *, first: str = "2022-03-01", last: str = "2022-12-30", warmup: int = 20) -> Season:
    """Return the demo's season on two stocks and two coins of the synthetic worlds of one seed."""
    return Season(
        id=f"demo-{seed}",
        title="Replayed synthetic days",
        assets=_assets(seed),
        entries=(
            *(
                Entry(id=f"{kind}-{model.removeprefix('scripted/')}", architecture=kind, model=model)
                for kind in ARCHITECTURES
                for model in MODELS
            ),
            Entry(id="trend", architecture="rule", label="Trend rule", params={"rule": "trend"}),
        ),
        first=first,
        last=last,
        warmup=warmup,
    )


def _assets(seed: int) -> tuple[Asset, ...]:
    """Return the first two ordinary instruments of each world, by name."""
    from tradeassay.data import load_dataset

    found: list[Asset] = []
    for kind, preset in (("stock", "us"), ("crypto", "crypto")):
        dataset = f"synthetic/{preset}:{seed}"
        snapshot = load_dataset(dataset)
        view = snapshot.at(0, "close")
        plain = [symbol for symbol in view.symbols if view.instrument(symbol).kind == kind]
        found += [
            Asset(symbol=symbol, kind="stock" if kind == "stock" else "crypto", dataset=dataset)
            for symbol in plain[:2]
        ]
    return tuple(found)
