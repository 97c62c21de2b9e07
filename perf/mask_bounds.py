"""What can be known in spite of a mask? Measures it, and writes the record that pages quote.

Every program of ``memory probe`` attacks the mask ``blinded``, as published and fully hardened, on synthetic
A-shares, on synthetic US stocks and on the real US panel. ``python perf/mask_bounds.py`` writes
``src/tradeassay/masking/bounds.toml``; ``--probes`` says how many pairs of stock and day are asked for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tradeassay.assay.probe import ProbeConfig, probe_mask

FILE = Path(__file__).parents[1] / "src" / "tradeassay" / "masking" / "bounds.toml"
BENCHMARKS = ("ktdfin-v1", "ktdfin-us-v1", "ktdfin-us-real-v1")
ARMS = {"plain": "blinded", "scrubbed": "blinded+rebase_prices+scale_volumes+scrub_news"}
SHOWN = ("top_1", "top_5", "date_7")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, default=200)
    options = parser.parse_args()
    lines = ["# Written by perf/mask_bounds.py: the most that any attacking program knew."]
    for benchmark in BENCHMARKS:
        config = ProbeConfig(probes=options.probes, hardenings=tuple(ARMS))
        for one in probe_mask(benchmark, (), config=config).bounds:
            if one.metric not in SHOWN:
                continue
            archive = "true" if one.archive else "false"
            said = f'arm = "{ARMS[one.hardening]}", benchmark = "{benchmark}", metric = "{one.metric}"'
            said += f", archive = {archive}, share = {one.share.value or 0.0:.4f}"
            said += f", times_chance = {one.times_chance:.3f}, probes = {options.probes}"
            lines += ["", "[[bound]]", *said.split(", ")]
            print(said, flush=True)
    FILE.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
