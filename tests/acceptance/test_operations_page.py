"""The page of operators, in a browser."""

import json
import urllib.request
from contextlib import suppress

import pytest
from playwright.sync_api import Page, Route, expect

from analytics_service.store.server import read_running
from jobs.registry import JOBS
from tests.acceptance.browser import COLORS, PHONE, WIDE, Browser, barriers, look
from tests.acceptance.conftest import Service
from tests.acceptance.test_hanging_store import stopped
from tests.processes import PATIENCE, until

pytestmark = pytest.mark.slow
SECTIONS = ["Problems", "Doubts", "Jobs", "Prices", "Workers", "Imports and backfills", "Disk by table"]
EVERY = 10_000
# Of documents that do not come, chromium itself says that.
UNANSWERED = "error: Failed to load resource: net::ERR_FAILED"


def opened(browser: Browser, service: Service, size: tuple[int, int] = WIDE) -> Page:
    """The page with all that it shows, and with a clock that the test moves on."""
    page = browser.open("about:blank", size)
    page.clock.install()
    page.goto(f"http://{service.metrics_bind}/")
    # It has drawn its first document.
    page.get_by_role("heading", level=1).wait_for()
    while page.get_by_role("table", name="Jobs:").count() == 0:
        # On a busy machine, the store may take its time to tell for the first time.
        later(page)
    return page


def later(page: Page, event: str = "requestfinished") -> None:
    """Let ten seconds pass on the page, and wait for the end of its request for a document."""
    with page.expect_event(event, lambda request: request.url.endswith("/operations")) as ended:
        # Its ten seconds begin when it has drawn the document before, which may be yet to come.
        while not ended.is_done():
            page.clock.run_for(EVERY // 10)
            page.wait_for_timeout(20)


def answers(service: Service) -> bool:
    """Whether ClickHouse answers, as the document says. To ask for that costs much less than to have it drawn."""
    with urllib.request.urlopen(f"http://{service.metrics_bind}/operations", timeout=PATIENCE) as response:
        return bool(json.load(response)["data"]["clickhouse"]["alive"])


def test_all_parts_of_the_service_are_shown_without_barriers(service: Service, browser: Browser) -> None:
    page = opened(browser, service)
    expect(page).to_have_title("Operations of the lending market data")
    assert page.get_by_role("heading", level=1).all_inner_texts() == ["Operations"]
    assert page.get_by_role("heading", level=2).all_inner_texts() == SECTIONS
    expect(page.get_by_text("SIMULATED", exact=True)).to_be_visible()
    families = page.get_by_role("table", name="Jobs:").locator("tbody tr td:first-child")
    assert families.all_inner_texts() == list(JOBS)
    assert page.get_by_role("table", name="Workers:").locator("tbody tr").count() == service.workers
    chips = page.get_by_role("list", name="Age of the data").get_by_role("listitem")
    assert [text.split()[0] for text in chips.all_inner_texts()] == families.all_inner_texts()
    sources = page.get_by_role("table", name="The newest imports").locator("tbody tr td:last-child")
    assert set(sources.all_inner_texts()) == {service.source}
    taken = page.locator("meter").evaluate_all("bars => bars.map((bar) => bar.value)")
    assert len(taken) >= 20
    assert taken == sorted(taken, reverse=True)
    assert page.locator("meter").first.get_attribute("max") == str(taken[0])
    for size, colors in zip((WIDE, PHONE), COLORS, strict=True):
        look(page, size, colors)
        assert barriers(page) == []
    assert browser.said == []


def test_doubts_and_late_prices_are_listed(service: Service, browser: Browser) -> None:
    """The price of one asset of the document is as old as five intervals, that of another one a second older."""
    doubt = {"what": "jump", "history": "price", "asset_id": "native;a", "symbol": "AAA", "value": "30", "before": "2"}
    times = {"observed_at": "2026-03-01T12:00:00Z", "before_at": "2026-03-01T11:59:00Z"}

    def change(route: Route) -> None:
        envelope = route.fetch().json()
        document = envelope["data"]
        (every,) = [one["interval_seconds"] for one in document["families"] if one["family"] == "prices"]
        first, second, *_ = document["prices"]
        document["prices"] = [
            first | {"age_seconds": 5 * every},
            second | {"age_seconds": 5 * every + 1, "known": False},
        ]
        route.fulfill(json=envelope | {"data": document | {"doubts": [doubt | times], "doubts_last_day": 12}})

    page = opened(browser, service)
    page.route("**/operations", change)
    later(page)
    doubts = page.get_by_role("region", name="Doubts")
    expect(doubts).to_contain_text("12 within the last day. The newest 1:")
    assert doubts.locator("tbody td").all_inner_texts()[1:6] == ["jump", "price", "AAA", "30", "2"]
    prices = page.get_by_role("region", name="Prices", exact=True)
    expect(prices).to_contain_text("Late: 1 of 2.")
    assert [text for text in prices.locator("tbody td").all_inner_texts() if "too old" in text] == ["no, it is too old"]
    assert barriers(page) == []


def test_a_refresh_moves_neither_the_focus_nor_what_is_scrolled(service: Service, browser: Browser) -> None:
    page = opened(browser, service, size=PHONE)
    jobs = page.get_by_role("region", name="Jobs: last run")
    jobs.evaluate("(region) => { region.focus(); region.scrollLeft = 120; region.firstChild.marked = true; }")
    page.evaluate("scrollTo({ top: 200, behavior: 'instant' })")
    later(page)
    later(page)
    kept = "(region) => [document.activeElement === region, region.scrollLeft, region.firstChild.marked, scrollY]"
    assert jobs.evaluate(kept) == [True, 120, True, 200]


def test_everything_can_be_reached_by_keyboard(service: Service, browser: Browser) -> None:
    page = opened(browser, service)
    reached = []
    for _ in range(10):
        page.keyboard.press("Tab")
        element = "document.activeElement"
        reached.append(page.evaluate(f"{element}.getAttribute('aria-label') ?? {element}.textContent").split(":")[0])
    assert reached == [
        "Skip to content",
        "Dark colours",
        "Jobs",
        "The oldest prices",
        "Workers",
        "The newest imports and backfills",
        "Tables by bytes on disk",
        "This page as JSON",
        "Metrics",
        "Readiness",
    ]


def test_the_theme_is_remembered(service: Service, browser: Browser) -> None:
    page = opened(browser, service)
    page.get_by_role("button", name="Dark colours").click()
    page.reload()
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()


def test_a_service_that_does_not_answer_is_told_and_what_it_told_stays(service: Service, browser: Browser) -> None:
    page = opened(browser, service)
    families = page.get_by_role("table", name="Jobs:").inner_text()
    page.route("**/operations", lambda route: route.abort())
    for _ in range(18):
        later(page, "requestfailed")
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer.")
    # Three minutes by the clock of the page, which goes on by itself, too.
    old = page.get_by_text("The data below is from").locator("b").inner_text()
    assert 3 <= int(old.removesuffix(" min ago")) < 10
    assert page.get_by_role("table", name="Jobs:").inner_text() == families
    page.unroute("**/operations")
    later(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert {said.rpartition(" ")[0] for said in browser.said} == {UNANSWERED}


def test_an_error_of_the_service_is_shown_in_its_words(service: Service, browser: Browser) -> None:
    def fail(route: Route) -> None:
        route.fulfill(status=500, json={"data": None, "error": {"message": "It broke."}})

    page = opened(browser, service)
    page.route("**/operations", fail)
    page.clock.run_for(EVERY)
    expect(page.get_by_role("alert")).to_contain_text("The service answers 500. It broke.")


def test_a_store_that_hangs_is_the_first_problem_and_the_rest_stays(service: Service, browser: Browser) -> None:
    running = read_running(service.data_dir)
    assert running is not None
    page = opened(browser, service)
    families = page.get_by_role("table", name="Jobs:").locator("tbody tr").count()
    problems = page.get_by_role("region", name="Problems")

    def is_told() -> bool:
        later(page)
        return "ClickHouse cannot be read now" in problems.inner_text()

    # On a very busy machine it may have been restarted by then.
    with suppress(ProcessLookupError), stopped(running.server):
        until(lambda: not answers(service), every=0.5)
        until(is_told, every=0.5)
        assert "1 problem" in problems.inner_text()
        assert page.get_by_role("table", name="Jobs:").locator("tbody tr").count() == families
    until(lambda: answers(service), every=0.5)
    until(lambda: not is_told(), every=0.5)
    assert browser.said == []
