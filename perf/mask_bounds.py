"""What can be known in spite of a mask? Measures it, and writes the record that pages quote.

Every program of ``memory probe`` attacks the mask ``blinded``, as published and fully hardened, on
synthetic A-shares, on synthetic US stocks and on the real US panel. The hardened mask gets more
pairs, because a day within a session is guessed by chance in 7 of 1,000 only. ``python
perf/mask_bounds.py`` writes ``packages/tradeassay-bench/src/tradeassay_bench/masking/bounds.toml``;
``--probes`` says how many pairs of stock and day are asked for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tradeassay_bench.examine.probe import ProbeConfig, probe_mask

BENCH = Path(__file__).parents[1] / "packages" / "tradeassay-bench" / "src" / "tradeassay_bench"
FILE = BENCH / "masking" / "bounds.toml"
BENCHMARKS = ("ktdfin-v1", "ktdfin-us-v1", "ktdfin-us-real-v1")
ARMS = {"plain": "blinded", "scrubbed": "blinded+rebase_prices+scale_volumes+scrub_news"}
SHOWN = ("top_1", "top_5", "date_1", "date_7")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, default=200)
    parser.add_argument("--hardened", type=int, default=1000, help="pairs for the hardened mask")
    options = parser.parse_args()
    lines = [
        "# Written by perf/mask_bounds.py: the most that any attacking program knew.",
        "bound = [",
    ]
    for benchmark in BENCHMARKS:
        found = []
        for arm, probes in zip(ARMS, (options.probes, options.hardened), strict=True):
            config = ProbeConfig(probes=probes, hardenings=(arm,))
            bounds = probe_mask(benchmark, (), config=config).bounds
            found += [(one, probes) for one in bounds if one.metric in SHOWN]
        for one, probes in found:
            archive = "true" if one.archive else "false"
            said = (
                f'arm = "{ARMS[one.hardening]}", benchmark = "{benchmark}", metric = "{one.metric}"'
            )
            said += (
                f', archive = {archive}, attacker = "{one.attacker}", share = '
                f"{one.share.value or 0.0:.4f}"
            )
            said += f", low = {one.share.low or 0.0:.4f}, high = {one.share.high or 0.0:.4f}"
            said += f", times_chance = {one.times_chance:.3f}, probes = {probes}"
            lines.append(f"    {{ {said} }},")
            print(said, flush=True)
    lines.append("]")
    FILE.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
