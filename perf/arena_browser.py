"""The arena's pages in a real browser: when the first thing is painted, and how many bytes that took.

    python perf/arena_browser.py                      # plays a short season, then measures (needs Chromium)
    python perf/arena_browser.py --db arena.db --shots shots/    # an arena of yours, with pictures of every page

Each page is opened with an empty cache by headless Chromium, wide and as a phone. Bytes are what crossed the wire,
compressed; "own" leaves plotly.js out, which a browser keeps for a year.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from arena_pages import await_server

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--lang=en-US",
)  # fmt: skip
TIMES = """
const paint = performance.getEntriesByName('first-contentful-paint')[0];
const page = performance.getEntriesByType('navigation')[0];
const files = performance.getEntriesByType('resource').filter((one) => !one.name.includes('/events/stream'));
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
    """Return a headless Chromium; raises SystemExit where there is none."""
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


def visit(driver: Any, address: str, width: int, picture: Path | None, *, dark: bool = False) -> dict[str, Any]:
    """Open a page with an empty cache and return what the browser measured."""
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
    found["plotly"] = sum("/plotly" in urlsplit(name).path for name, _, _ in found["files"])
    own = [(sent, plain) for name, sent, plain in found["files"] if "/plotly" not in urlsplit(name).path]
    found["own"] = found["bytes"] + sum(sent for sent, _ in own)
    found["own_plain"] = found["plain"] + sum(plain for _, plain in own)
    if picture is not None:
        import base64

        picture.parent.mkdir(parents=True, exist_ok=True)
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        picture.write_bytes(base64.b64decode(shot["data"]))
    return found


def addresses(base: str) -> dict[str, str]:
    """Return one address of every page of the newest season."""
    import httpx

    found = {"seasons": "/seasons", "health": "/health"}
    with httpx.Client(base_url=base, timeout=60) as client:
        seasons = client.get("/api/seasons").json()["seasons"]
        if not seasons:
            return {"first": "/", **found}
        home = f"/season/{seasons[0]['id']}"
        facts = client.get(f"/api/seasons/{seasons[0]['id']}/rules").json()
        pages = ("timeline", "split", "feed", "information", "rules", "published")
        found |= {"first": home, **{name: f"{home}/{name}" for name in pages}}
        found["entry"] = f"{home}/entries/{facts['entries'][0]['id']}"
        made = client.get(f"/api/seasons/{seasons[0]['id']}/decisions?limit=60").json()["items"]
        talked = max(made, key=lambda one: one["calls"] or 0, default=None)
        if talked is not None:
            found["decision"] = f"{home}/decisions/{talked['id']}"
        told = client.get(f"/api/seasons/{seasons[0]['id']}/items?limit=1").json().get("items")
        if told:
            found["item"] = f"{home}/items/{told[0]['id']}"
    return found


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
                [*arena, "run", "--replay", "synthetic", "--until", "2022-05-20", "--db", db], check=True
            )
        server = subprocess.Popen([*arena, "serve", "--db", db, "--port", str(chosen.port)])
        driver = None
        try:
            base = f"http://127.0.0.1:{chosen.port}"
            await_server(base)
            driver = browser(f"{work}/profile")
            print(f"Chromium {driver.capabilities['browserVersion']}, Python {platform.python_version()}")
            driver.get(f"{base}/healthz")  # the browser's own start is no page's fault
            _measure(driver, base, chosen)
        finally:
            if driver is not None:
                driver.quit()
            server.terminate()
            server.wait(20)


def _measure(driver: Any, base: str, chosen: argparse.Namespace) -> None:
    head = ("page", "width", "paint ms", "own kB sent", "own kB plain", "plotly", "shift", "overflow px")
    print(("{:<12}" + "{:>13}" * 7).format(*head))
    worst, largest = 0.0, 0.0
    for name, path in addresses(base).items():
        if chosen.only and name not in chosen.only:
            continue
        for width in (1280, 390):
            picture = None if chosen.shots is None else chosen.shots / f"{name}-{width}-{chosen.lang}.png"
            mark = "&" if "?" in path else "?"
            found = visit(driver, f"{base}{path}{mark}lang={chosen.lang}", width, picture, dark=chosen.dark)
            worst, largest = max(worst, found["paint"] or 0.0), max(largest, found["own_plain"])
            numbers = (found["paint"] or float("nan"), found["own"] / 1000, found["own_plain"] / 1000)
            rest = (found["plotly"], round(found["shift"], 3), found["wider"])
            print(("{:<12}{:>13}" + "{:>13.0f}" * 3 + "{:>13}" * 3).format(name, width, *numbers, *rest))
    print(f"first paint at worst {worst:.0f} ms (bar 1000): {'met' if worst < 1000 else 'NOT met'}")
    print(f"largest page without plotly {largest / 1000:.0f} kB, uncompressed (bar 300): "
          f"{'met' if largest < 300_000 else 'NOT met'}")  # fmt: skip


if __name__ == "__main__":
    main()
