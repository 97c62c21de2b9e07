"""Measure the size and speed of report pages: bytes, first paint, loaded, and height on a phone.

    python perf/page_load.py runs/*/report.html site/*.html      # needs Chromium
    python perf/page_load.py --long                              # also a code page of 3,456
    episodes

Headless Chromium opens every page from the disk, three times with an empty cache, on desktop (1280)
and on a phone (390). The best of three counts. "sideways" is how many pixels the page is wider than
the phone.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))  # models that misbehave

import scripted_misfits  # noqa: F401  # adds models

from arena_browser import browser
from machine import conditions

MEASURED = """
const paint = performance.getEntriesByName('first-contentful-paint')[0];
const page = performance.getEntriesByType('navigation')[0];
return {paint: paint ? paint.startTime : null, loaded: page.loadEventEnd,
        height: document.documentElement.scrollHeight,
        sideways: document.documentElement.scrollWidth - window.innerWidth};
"""


def opened(driver: Any, page: Path, width: int) -> dict[str, Any]:
    """Return the fastest of three visits."""
    from selenium.webdriver.support.ui import WebDriverWait

    found = []
    for _ in range(3):
        driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        driver.get(page.resolve().as_uri())
        WebDriverWait(driver, 60).until(
            lambda one: one.execute_script(
                "return performance.getEntriesByType('navigation')[0].loadEventEnd > 0"
            )
        )
        found.append(driver.execute_script(MEASURED))
    return min(found, key=lambda one: one["loaded"])


def long_page(folder: Path) -> Path:
    """Write the page of 3,456 episodes: 144 tasks with 24 seeds. It contains no programs, so it
    needs no sandbox.
    """
    from tradeassay_bench.report import write_code_html
    from tradeassay_bench.runs import CodeRun, run
    from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec

    spec = QuantCodeSpec(models=("scripted/coder-silent",), seeds=tuple(range(24)))
    done = run(spec, folder / "long")
    assert isinstance(done, CodeRun)
    return write_code_html(done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--long", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages = [*asked.pages, *([long_page(Path(folder))] if asked.long else [])]
        driver = browser(f"{folder}/profile")
        print("| page | MB | first paint | loaded | on a phone | phone's height | sideways |")
        print("|---|---|---|---|---|---|---|")
        for page in pages:
            wide, narrow = opened(driver, page, 1280), opened(driver, page, 390)
            print(
                f"| {page.parent.name}/{page.name} | {page.stat().st_size / 1e6:.2f} | "
                f"{_ms(wide['paint'])} | "
                f"{_ms(wide['loaded'])} | {_ms(narrow['loaded'])} | {narrow['height']:,} px | "
                f"{max(0, narrow['sideways'])} px |"
            )
        version = driver.capabilities["browserVersion"]
        print(f"\nChromium {version}, {platform.machine()}, {conditions()}")
        driver.quit()


def _ms(value: float | None) -> str:
    return "none" if value is None else f"{value:,.0f} ms"


if __name__ == "__main__":
    main()
