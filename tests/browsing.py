"""A real browser for tests of pages, where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSER = os.environ.get("FAIRBITS_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


@contextmanager
def launched() -> Iterator[Any]:
    """A browser without a window; skips the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no chromium on this machine: apt-get install chromium, or set FAIRBITS_BROWSER")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=BROWSER, args=_ARGUMENTS)
        yield made
        made.close()
