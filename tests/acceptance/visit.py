"""The page at / of a running service, in a browser: opening it, and reading what it shows."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from time import sleep
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Page, Route

from tests.acceptance.browser import Browser
from tests.acceptance.conftest import Service

RICH = "ptcl1r49rp4udu6l9lxy9l7kzc6uyyhgawun7anz0vd"
VIEWS = {
    "overview": {},
    "markets": {"view": "markets"},
    "risk": {"view": "risk"},
    "asset": {"view": "asset", "asset": "native;ahel", "candles": "1"},
    "address": {"view": "address", "address": RICH},
}
# A time that is over, so that its numbers stay the same. The service has two hours of history.
NOW = datetime.now(UTC)
CLOSED = {
    "start": (NOW - timedelta(minutes=110)).strftime("%Y-%m-%dT%H:%M:00"),
    "end": (NOW - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:00"),
}
ASSET = VIEWS["asset"] | CLOSED | {"tz": "UTC"}
# The asset above has six charts, each of which costs at every drawing: these have one (collateral) and two (the price,
# too).
RECEIPT, STAKED = {"view": "asset", "asset": "rHEL"}, {"view": "asset", "asset": "stHEL"}
AWAY = "The service cannot answer right now. Try again in a minute."
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


class Visit:
    """A browser at the page of a service. In the tab that tests share there are no newer snapshots during a test, for
    which the page would be drawn again beside whoever is slow."""

    def __init__(self, browser: Browser, service: Service) -> None:
        self.browser = browser
        self.service = service
        self._status = ""
        browser.open("about:blank").route(re.compile("/status/health"), self._tell_the_same)

    def _tell_the_same(self, route: Route) -> None:
        if not self._status:
            answer = route.fetch()
            if not answer.ok:
                route.fulfill(response=answer)
                return
            self._status = answer.text()
        route.fulfill(body=self._status, content_type="application/json")

    def open(self, query: dict[str, str], **how: Any) -> Page:
        """The page at a query, when everything has been drawn."""
        page = self.browser.open(self.url(query), **how)
        self.wait(page)
        return page

    def go(self, page: Page, query: dict[str, str]) -> None:
        """Show another query in a page that is open, as a link in it does, and wait until everything has been drawn. It
        costs less than `open`, since the page has the charting library already."""
        follow = "(url) => { history.pushState(null, '', url); dispatchEvent(new PopStateEvent('popstate')); }"
        page.evaluate(follow, self.url(query))
        self.wait(page)

    def url(self, query: dict[str, str]) -> str:
        """The address of the page with a query."""
        return f"http://{self.service.bind}/?{urlencode(query)}"

    @staticmethod
    def wait(page: Page) -> None:
        """Return when nothing is loading any more. A chart has its tooltip as soon as it answers to keys."""
        page.wait_for_function(
            """() => !document.body.textContent.includes("Loading…")
                && [...document.querySelectorAll(".chart")].every(
                    (chart) => chart.querySelector(".tooltip, .notice"))"""
        )

    def data(self, url: str) -> Any:
        """The data that the API has at an address, or at a path of it."""
        parts = urlsplit(url)
        path = parts.path if parts.netloc else f"/api/v1{parts.path}"
        # A busy service puts requests off.
        while (found := self.service.get(f"{path}?{parts.query}"))[0] == 503:
            sleep(1)
        status, body = found
        assert status == 200, body
        return body["data"]


def source(page: Page, chart: int = 0) -> str:
    """The address that a chart says its numbers are from."""
    return page.locator(".panel:has(.chart)").nth(chart).locator(".source code").first.text_content() or ""


def numbers(page: Page, chart: int = 0) -> list[list[str]]:
    """The exact values of the table of numbers under a chart, row by row."""
    panel = page.locator(".panel:has(.chart)").nth(chart)
    panel.get_by_text("Data", exact=True).click()
    read = "(cell) => cell.querySelector('data')?.value ?? cell.textContent"
    cells = f"(body) => [...body.rows].map((row) => [...row.cells].map({read}))"
    rows: list[list[str]] = panel.locator("tbody").evaluate(cells)
    return rows


def query(url: str) -> dict[str, str]:
    """The query of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def three_decimals(health: str) -> str:
    """A health as the page writes it."""
    return re.sub(r"(\.\d{3})\d*", r"\1", health)


def compact(usd: str | Decimal) -> str:
    """USD as the page writes amounts from ten thousand on."""
    value = Decimal(usd)
    unit, name = (1_000_000, "M") if value >= 999_995 else (1_000, "k")
    return f"${(value / unit).quantize(Decimal('0.01'), ROUND_HALF_UP)}{name}" if value >= 10_000 else f"${value:,.2f}"


def signed(fraction: str | Decimal) -> str:
    """A change as the page writes it: one that rounds to zero has no sign."""
    digits = f"{abs(100 * Decimal(fraction)).quantize(Decimal('0.01'), ROUND_HALF_UP)}%"
    return f"{'' if digits == '0.00%' else MINUS if Decimal(fraction) < 0 else '+'}{digits}"


def failure(route: Route, status: int, kind: str, message: str) -> None:
    """Answer a request with an error of the API."""
    error = {"kind": kind, "scope": "server", "message": message}
    body = {"data": None, "error": error, "status": status, "status_text": ""}
    route.fulfill(status=status, body=json.dumps(body), content_type="application/json")


def answer_with(page: Page, path: str, data: Any) -> None:
    """Answer all requests for a path of the API with the same data."""
    page.route(re.compile(path), lambda route: route.fulfill(json={"data": data}))


def edit(page: Page, path: str, change: Callable[[Any], None]) -> None:
    """Change the data that the API answers at a path, unless it cannot answer now."""

    def answer(route: Route) -> None:
        told = route.fetch()
        if not told.ok:
            route.fulfill(response=told)
            return
        body = told.json()
        change(body["data"])
        route.fulfill(response=told, json=body)

    page.route(re.compile(path), answer)


def away(route: Route) -> None:
    """Answer a request as a service that cannot reach its store."""
    failure(route, 503, "unavailable", "The store is away.")


def thirty_transactions(route: Route) -> None:
    """Answer a request for transactions: a service with two hours of history has none."""
    asked = query(route.request.url)
    previous = int(asked.get("prev_event_uuid", 0))
    text = {"action": "Borrow", "amount": "1 AHEL", "historic_value": "$1"}
    common = {"event_time": NOW.isoformat(), "account_address": RICH, "account_index": 0, "extra": {"text": text}}
    common |= {"asset": {"asset": {"id": "native;ahel"}}, "amount": "1"}
    numbers = range(previous + 1, min(previous + int(asked["limit"]), 30) + 1)
    route.fulfill(json={"data": [common | {"event_uuid": str(number), "tx_hash": str(number)} for number in numbers]})
