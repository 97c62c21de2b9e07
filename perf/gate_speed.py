"""How long a whole gate run takes: three seeds, the leak gate, all micro-scenarios at every bar; 500 bars.

Bar: under 3 s. Prints processor seconds (children and host) and the time on the clock for each reference.

    python perf/gate_speed.py [--workers 2] [--bars 500] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.code.gates import pass_gates
from tradeassay.code.submission import submission_config
from tradeassay.sandbox import SandboxPool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--bars", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    lines = []
    with SandboxPool(submission_config(), workers=options.workers) as pool:
        for id in STRATEGIES:
            spec, reference = load_spec(id), load_reference(id)
            bars = spec.practice_bars(options.bars)
            clock, host = time.monotonic(), time.process_time()
            report = pass_gates(reference, spec, pool, bars=bars).report
            lines.append(
                {
                    "strategy": id,
                    "passed": report.passed,
                    "runs": report.runs,
                    "children_cpu_s": report.cpu_s,
                    "host_cpu_s": round(time.process_time() - host, 3),
                    "wall_s": round(time.monotonic() - clock, 3),
                }
            )
    cpu = [line["children_cpu_s"] + line["host_cpu_s"] for line in lines]
    result = {
        "bars": options.bars,
        "workers": options.workers,
        "median_cpu_s": round(statistics.median(cpu), 3),
        "largest_cpu_s": round(max(cpu), 3),
        "median_wall_s": round(statistics.median(line["wall_s"] for line in lines), 3),
        "largest_wall_s": round(max(line["wall_s"] for line in lines), 3),
        "lines": lines,
    }
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        for line in lines:
            print(
                f"{line['strategy']:22} {line['runs']:4} runs {line['children_cpu_s']:6.2f} s in children "
                f"{line['host_cpu_s']:5.2f} s in the host {line['wall_s']:6.2f} s on the clock"
            )
        print({name: value for name, value in result.items() if name != "lines"})
    return 0 if all(line["passed"] for line in lines) and result["largest_wall_s"] < 3.0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
