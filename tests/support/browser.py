"""A headless Chromium for tests of pages, and a function that opens a page."""

import shutil
from contextlib import contextmanager

import pytest

NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(
        shutil.which("chromium") is None or shutil.which("chromedriver") is None,
        reason="no Chromium here (apt-get install chromium chromium-driver)",
    ),
]
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
    "--lang=en-US",
)
READY = "return document.documentElement.dataset.ready === 'yes'"


@contextmanager
def chromium(profile):
    """Yield a browser with an empty profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    try:
        yield made
    finally:
        made.quit()


def opened(driver, page, width=1280, *, dark=False):
    """Open a file or an address at a width and in a theme, and wait until its scripts are done."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    driver.get(page if isinstance(page, str) else page.as_uri())
    driver.execute_script("try { localStorage.clear() } catch (error) {}")
    WebDriverWait(driver, 120).until(lambda d: d.execute_script(READY))
    return driver
