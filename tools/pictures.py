"""The README's pictures of the page and the explorer, taken again: `python -m tools.pictures [RUN]` (needs chromium).

Without the folder of a run, Census is audited for a minute first.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def photograph(browser: Browser, address: str, file: Path, *, width: int, height: int) -> None:
    """The first screen of a page."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address)
    page.wait_for_timeout(1_500)  # the explorer asks for its first person
    page.screenshot(path=file)
    page.close()


def main(run: Path) -> None:
    if not run.exists():
        subprocess.run([sys.executable, "-m", "fairbits", "audit", "census", "--out", str(run)], check=True)
    command = [sys.executable, "-m", "fairbits", "explore", str(run), "--no-browser"]
    with sync_playwright() as playwright, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as explorer:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        photograph(browser, (run / "report.html").resolve().as_uri(), IMAGES / "report.png", width=1000, height=1500)
        photograph(browser, explorer.stdout.readline().strip(), IMAGES / "explore.png", width=1240, height=1820)
        browser.close()
        explorer.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "census")
