"""Measure the arena's pages in a real browser: time to first paint, and bytes transferred.

    python perf/arena_browser.py                      # plays a short season, then measures (needs
    Chromium)
    python perf/arena_browser.py --db arena.db --shots shots/    # your own arena, with pictures of
    every page

Headless Chromium opens each page with an empty cache, on desktop and phone. Bytes are the
compressed bytes on the network.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from arena_pages import await_server

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--lang=en-US",
)
TIMES = """
const paint = performance.getEntriesByName('first-contentful-paint')[0];
const page = performance.getEntriesByType('navigation')[0];
const files = performance.getEntriesByType('resource');
return {
  paint: paint ? paint.startTime : null, bytes: page.transferSize, plain: page.decodedBodySize,
  shift: window.__shift || 0,
  files: files.map((one) => [one.name, one.transferSize, one.decodedBodySize]),
};
"""
SHIFT = """
window.__shift = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.__shift += one.value;
}).observe({type: 'layout-shift', buffered: true});
"""
READY = "return document.documentElement.dataset.ready === 'yes'"


def browser(profile: str) -> Any:
    """Return a headless Chromium. Raises SystemExit if there is none."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise SystemExit("no Chromium here (apt-get install chromium chromium-driver)")
    options = Options()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    made = webdriver.Chrome(options=options, service=Service(driver))
    made.execute_cdp_cmd("Network.enable", {})
    made.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SHIFT})
    return made


def visit(
    driver: Any, address: str, width: int, picture: Path | None, *, dark: bool = False
) -> dict[str, Any]:
    """Open a page with an empty cache and return the browser's measurements."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    driver.get(address)
    end = time.monotonic() + 20
    while not driver.execute_script(READY) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)  # a paint is reported a frame later
    found: dict[str, Any] = driver.execute_script(TIMES)
    found["wider"] = driver.execute_script("return document.documentElement.scrollWidth") - width
    found["own"] = found["bytes"] + sum(sent for _, sent, _ in found["files"])
    found["own_plain"] = found["plain"] + sum(plain for _, _, plain in found["files"])
    if picture is not None:
        import base64

        picture.parent.mkdir(parents=True, exist_ok=True)
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        picture.write_bytes(base64.b64decode(shot["data"]))
    return found


def addresses(folder: Path, prefix: str) -> dict[str, str]:
    """Return one address of every kind of page of the newest season."""
    found = {"seasons": f"{prefix}/seasons/", "health": "/health"}
    seasons = json.loads((folder / "seasons/index.json").read_bytes())["seasons"]
    if not seasons:
        return {"first": f"{prefix}/", **found}
    there = folder / "seasons" / seasons[0]["id"]
    home = f"{prefix}/seasons/{seasons[0]['id']}/"
    found |= {"first": home}
    found |= {name: f"{home}{name}/" for name in ("feed", "information", "rules", "published")}
    for kind, pattern in (
        ("asset", "assets/*/"),
        ("entry", "entries/*/"),
        ("item", "items/*/"),
        ("round", "assets/*/20*/"),
    ):
        some = sorted(there.glob(pattern), key=lambda one: (one / "index.html").stat().st_size)
        if some:
            found[kind] = f"{home}{some[-1].relative_to(there)}/"  # the largest of its kind
    return found


def main() -> None:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("--db", help="an arena's database; without one a short season is played")
    ask.add_argument("--shots", type=Path, help="write pictures of every page here")
    ask.add_argument("--lang", default="en", choices=("en", "zh"))
    ask.add_argument("--dark", action="store_true")
    ask.add_argument("--only", nargs="*", help="these pages alone")
    ask.add_argument("--port", type=int, default=8793)
    chosen = ask.parse_args()
    with tempfile.TemporaryDirectory() as work:
        db = chosen.db or f"{work}/arena.db"
        arena = [sys.executable, "-m", "tradeassay", "arena"]
        if chosen.db is None:
            subprocess.run(
                [*arena, "run", "--replay", "synthetic", "--until", "2022-05-20", "--db", db],
                check=True,
            )
        folder = Path(work) / "site"
        subprocess.run(
            [sys.executable, "-m", "tradeassay", "site", db, "-o", str(folder)], check=True
        )
        served = ["--db", db, "--pages", str(folder), "--port", str(chosen.port)]
        server = subprocess.Popen([*arena, "serve", *served])
        driver = None
        try:
            base = f"http://127.0.0.1:{chosen.port}"
            await_server(base)
            driver = browser(f"{work}/profile")
            print(
                f"Chromium {driver.capabilities['browserVersion']}, Python "
                f"{platform.python_version()}"
            )
            driver.get(f"{base}/healthz")  # the browser's own start is no page's fault
            prefix = "" if chosen.lang == "en" else f"/{chosen.lang}"
            _measure(driver, base, addresses(folder, prefix), chosen)
        finally:
            if driver is not None:
                driver.quit()
            server.terminate()
            server.wait(20)


def _measure(driver: Any, base: str, pages: dict[str, str], chosen: argparse.Namespace) -> None:
    head = ("page", "width", "paint ms", "kB sent", "kB plain", "shift", "overflow px")
    print(("{:<12}" + "{:>13}" * 6).format(*head))
    worst, largest = 0.0, 0.0
    for name, path in pages.items():
        if chosen.only and name not in chosen.only:
            continue
        for width in (1280, 390):
            picture = (
                None if chosen.shots is None else chosen.shots / f"{name}-{width}-{chosen.lang}.png"
            )
            found = visit(driver, f"{base}{path}", width, picture, dark=chosen.dark)
            worst, largest = max(worst, found["paint"] or 0.0), max(largest, found["own_plain"])
            numbers = (
                found["paint"] or float("nan"),
                found["own"] / 1000,
                found["own_plain"] / 1000,
            )
            rest = (round(found["shift"], 3), found["wider"])
            print(
                ("{:<12}{:>13}" + "{:>13.0f}" * 3 + "{:>13}" * 2).format(
                    name, width, *numbers, *rest
                )
            )
    print(f"first paint at worst {worst:.0f} ms (bar 1000): {'met' if worst < 1000 else 'NOT met'}")
    print(
        f"largest page {largest / 1000:.0f} kB, uncompressed (bar 300): "
        f"{'met' if largest < 300_000 else 'NOT met'}"
    )


if __name__ == "__main__":
    main()
