"""The picture in README.md: the page as a new user sees it."""

import os
from pathlib import Path
from urllib.parse import urlencode

import pytest

from analytics_service.sources.simulated import RICH_ADDRESS
from tests.acceptance.browser import Browser
from tests.acceptance.conftest import Service, stop
from tests.processes import until

# A README is read on slow connections, too.
_MOST_BYTES = 200_000
_VIEW = {"view": "asset", "asset": "native;ahel", "candles": "1"}


@pytest.mark.slow
def test_the_picture_shows_a_week_of_candles(own: Service, browser: Browser, tmp_path: Path) -> None:
    """Written to the folder of artefacts, from where a person who likes it copies it to analytics_service/web."""
    own.source = "simulated"
    process = own.up()
    until(lambda: own.get("/api/v1/status/health")[1]["data"]["filling"] is False)
    page = browser.open(f"http://{own.bind}/?{urlencode(_VIEW)}", size=(1200, 1140))
    page.wait_for_function(
        """() => !document.body.textContent.includes("Loading…")
            && [...document.querySelectorAll(".chart")].every((chart) => chart.querySelector(".main-svg"))"""
    )
    picture = Path(os.environ.get("TEST_ARTIFACTS", tmp_path)) / "page.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=picture)
    assert browser.said == []
    assert picture.stat().st_size <= _MOST_BYTES
    assert own.get(f"/api/v1/users/{RICH_ADDRESS}/user?at=now-30d")[0] == 200
    assert stop(process) == 0
