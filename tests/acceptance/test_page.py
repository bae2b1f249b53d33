"""The page at / in a browser: what all of its views share, such as ranges, messages, keys and redrawing."""

import re
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Route, expect

from tests.acceptance.browser import PHONE, WIDE, Browser, Colors, barriers, look
from tests.acceptance.conftest import Service
from tests.acceptance.visit import (
    AWAY,
    CLOSED,
    RECEIPT,
    STAKED,
    VIEWS,
    Visit,
    answer_with,
    away,
    failure,
    numbers,
    query,
    source,
)
from tests.processes import until

DESK = 1920
# What is wider than its panel, other than tables, which scroll; and what ends a row that is not filled.
CUT = """(main) => [...main.querySelectorAll(".panel, .tile, form, .tools, select")]
    .filter((part) => part.checkVisibility())
    .filter((part) => part.scrollWidth > part.clientWidth + 1 || part.getBoundingClientRect().right > innerWidth)
    .map((part) => part.outerHTML.slice(0, 99))"""
SHORT_ROWS = """(main) => [...main.querySelectorAll(".tiles, .pair")].filter((row) => {
    const last = [...row.querySelectorAll(":scope > :not(.parts), .parts > *")].at(-1);
    return last && row.getBoundingClientRect().right - last.getBoundingClientRect().right > 2;
}).map((row) => row.outerHTML.slice(0, 99))"""
IS_WHOLE = "(link) => link.getBoundingClientRect().right <= link.closest('nav').getBoundingClientRect().right"
# How much of what the viewer saw has moved while the page was loaded.
SHIFTED = """() => new Promise((done) => {
    const sum = (list) => list.getEntries().reduce((all, { value }) => all + value, 0);
    new PerformanceObserver((list) => done(sum(list))).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(0), 200);
})"""


@pytest.fixture
def visit(browser: Browser, service: Service) -> Visit:
    return Visit(browser, service)


# Each view in one way; the other ways are slow.
LOOKS: list[tuple[str, tuple[int, int], Colors]] = [
    ("overview", WIDE, "light"),
    ("markets", PHONE, "dark"),
    ("risk", WIDE, "dark"),
    ("asset", PHONE, "light"),
    ("address", PHONE, "dark"),
]
OTHER_LOOKS = [(view, size, colors) for view in VIEWS for size, colors in ((WIDE, "light"), (PHONE, "dark"))]


@pytest.mark.parametrize(
    ("view", "size", "colors"),
    [*LOOKS, *(pytest.param(*look, marks=pytest.mark.slow) for look in OTHER_LOOKS if look not in LOOKS)],
)
def test_every_view_is_complete_silent_without_barriers_and_not_cut_at_any_width(
    visit: Visit, view: str, size: tuple[int, int], colors: Colors
) -> None:
    """Only views with charts load what draws them and, where there is room, have a range to choose. What is wider than
    its place scrolls by itself."""
    page = visit.open(VIEWS[view], size=size, color_scheme=colors)
    assert barriers(page) == []
    assert page.get_by_text("SIMULATED", exact=True).is_visible()
    assert page.locator(".notice.bad").count() == 0
    if size == PHONE:
        # The header is one line.
        assert page.locator("header").evaluate("(header) => header.offsetHeight") < 50
        assert page.get_by_role("link", name="Address", exact=True).evaluate(IS_WHOLE)
    else:
        assert page.get_by_role("button", name="30 d").is_visible() == (view != "markets")
    # Nothing comes from elsewhere.
    assert {urlsplit(url).netloc for url in visit.browser.asked} == {visit.service.bind}
    assert any("plotly" in url for url in visit.browser.asked) == (view != "markets")
    asked = [url for url in visit.browser.asked if "/api/" in url and not url.endswith("/status/health")]
    assert len({*asked}) == len(asked)
    assert page.evaluate(SHIFTED) < 0.01
    # From the nearest width on, since each one costs a drawing of the charts.
    for width in sorted((DESK, 768, PHONE[0]), key=lambda width: abs(width - size[0])):
        look(page, (width, size[1]), colors)
        # Charts follow a moment later.
        page.wait_for_function(f"() => !({CUT})(document.querySelector('main')).length")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("main").evaluate(SHORT_ROWS) == []
    assert visit.browser.said == []


def test_a_brush_and_arrow_keys_set_the_range_of_the_whole_page_and_going_back_scrolls_back(visit: Visit) -> None:
    page = visit.open(STAKED | CLOSED | {"tz": "UTC", "candles": "1"})
    chart = page.locator(".chart").first
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 90, steps=5)
    page.mouse.up()
    page.wait_for_url(lambda url: query(url)["start"] > CLOSED["start"] and query(url)["end"] < CLOSED["end"])
    visit.wait(page)
    shown = query(page.url)
    for place in range(2):
        assert {name: shown[name] for name in ("start", "end")}.items() <= query(source(page, place)).items()
    chart.dblclick()
    page.wait_for_url(lambda url: query(url)["start"] == CLOSED["start"])
    expect(page.get_by_role("button", name="Zoom out")).to_have_count(0)
    visit.wait(page)
    page.evaluate("() => new Promise((done) => { onscrollend = done; scrollTo(0, 200); }).then(() => null)")
    page.get_by_role("link", name="All markets").evaluate("(link) => link.click()")
    expect(page.get_by_role("table")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    page.wait_for_function("() => scrollY === 200")
    visit.wait(page)
    assert query(page.url)["start"] == query(source(page))["start"] == CLOSED["start"]
    times = numbers(page)
    chart.focus()
    page.keyboard.press("Home")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    # Price and collateral have buckets of the same width.
    assert [text[:16] for text in page.locator(".tooltip").all_text_contents()] == [times[4][0][:16]] * 2
    page.keyboard.press("Enter")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: query(url)["start"] != CLOSED["start"])
    end = datetime.fromisoformat(times[15][0]) - timedelta(seconds=1)
    shown = query(page.url)
    assert [shown["start"], shown["end"]] == [times[4][0].replace(" ", "T"), end.isoformat()]
    visit.wait(page)
    # The library writes midnight as a date, which would mean the end of the day to the API.
    brushed = {"xaxis.range[0]": "2026-01-02 12:30:00.1234", "xaxis.range[1]": "2026-01-04"}
    chart.evaluate("(chart, brushed) => { chart.emit('plotly_relayout', brushed); }", brushed)
    page.wait_for_url(lambda url: query(url)["start"] == "2026-01-02T12:30:00")
    assert query(page.url)["end"] == "2026-01-04T00:00:00"


def test_a_custom_range_is_shown_and_what_cannot_be_shown_is_told(visit: Visit) -> None:
    """What the API would not take counts for nothing. A range of the future offers the newest data."""
    refused = {"range": "toString", "tz": "+01:00", "start": "2017", "end": "2019"}
    page = visit.open(STAKED | refused)
    # Beside times there is a zone, so that they are the same instants for all.
    assert query(page.url)["tz"] == page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert {"start": "now-7d", "end": "now"}.items() <= query(source(page)).items()

    def choose(start: str, end: str) -> None:
        page.get_by_label("From").fill(start)
        page.get_by_label("to", exact=True).fill(end)
        page.get_by_role("button", name="Show", exact=True).first.click()

    page.get_by_label("Zone").select_option("UTC")
    visit.wait(page)
    page.get_by_text("Custom").click()
    choose(CLOSED["end"], CLOSED["start"])
    expect(page.get_by_role("alert")).to_have_text("The range ends before it begins.")
    choose(CLOSED["start"], CLOSED["end"])
    page.wait_for_url(lambda url: query(url).get("start", "").startswith(CLOSED["start"][:16]))
    visit.wait(page)
    assert query(source(page))["end"].startswith(CLOSED["end"][:16])
    choose("2100-01-01T00:00:00", "2100-01-02T00:00:00")
    visit.wait(page)
    notice = page.locator(".chart .notice").first.inner_text()
    assert notice.startswith("There is no data in this range. The newest data is from ")
    page.get_by_role("button", name="Show the newest data").first.click()
    visit.wait(page)
    # Focus stays in the view that a button of it draws again.
    assert page.evaluate("document.activeElement.id") == "main"
    newest = {name: datetime.fromisoformat(query(source(page))[name]) for name in ("start", "end")}
    assert notice.endswith(f" {newest['end']:%Y-%m-%d %H:%M}.")
    assert newest["end"] - newest["start"] == timedelta(days=1)
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    visit.open(STAKED | {"start": "2026-02-02T00:00", "end": "2026-02-01", "tz": "UTC"})
    expect(page.locator("main [role=alert]")).to_have_text("The range ends before it begins. Choose another range.")
    expect(page.locator(".chart")).to_have_count(0)
    assert visit.browser.said == []
    # A date that ends a range ends with its last second.
    visit.open(STAKED | {"start": "2026-02-02T10:00", "end": "2026-02-02", "tz": "UTC"})
    expect(page.locator(".chart").first).to_be_visible()


def test_colours_and_zone_follow_the_address_then_what_was_chosen_before(visit: Visit) -> None:
    """The button offers the other colours. The bucket that is not over says so."""
    page = visit.open(VIEWS["markets"], color_scheme="dark")
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    page = visit.open(VIEWS["markets"] | {"theme": "light", "tz": "UTC"}, color_scheme="dark")
    entries = page.evaluate("history.length")
    page.get_by_role("button", name="Dark colours").click()
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    assert "theme" not in query(page.url)
    assert page.evaluate("history.length") == entries
    page.get_by_label("Zone").select_option("America/New_York")
    page = visit.open(STAKED | {"range": "30d", "candles": "1"}, color_scheme="light")
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    url, zone = source(page), ZoneInfo("America/New_York")
    assert query(url)["tz"] == "America/New_York"
    expected = [datetime.fromtimestamp(t, zone).strftime("%Y-%m-%d %H:%M:%S") for t in visit.data(url)["t"]]
    assert [row[0] for row in numbers(page)] == expected
    tooltip = page.locator(".tooltip").first
    expect(page.locator(".legend").first).to_contain_text("in progress")
    page.locator(".chart").first.focus()
    page.keyboard.press("End")
    expect(tooltip).to_contain_text(re.compile(r"^[-0-9]{10}( \d\d:\d\d)?, in progressOpen\$"))
    page.keyboard.press("Home")
    expect(tooltip).not_to_contain_text("in progress")


def test_a_failed_chart_says_why_and_what_the_service_is_too_busy_for_is_asked_for_again_when_it_says(
    visit: Visit,
) -> None:
    """The failed one is beside the others and can be tried again."""
    page = visit.browser.open("about:blank")
    pattern = re.compile("/markets/history/deposits")
    page.route(pattern, away)
    refusals = [{"Retry-After": "1"}] * 2

    def busy(route: Route) -> None:
        if refusals:
            route.fulfill(status=503, headers=refusals.pop())
        else:
            route.continue_()

    page.route(re.compile("/markets/history/debt"), busy)
    visit.open({})
    broken = page.locator(".panel", has_text="Deposits by asset")
    expect(broken.get_by_role("alert")).to_have_text(AWAY)
    assert visit.browser.said
    assert all(pattern.search(said) for said in visit.browser.said)
    assert refusals == []
    other = page.locator(".panel", has_text="Debt by asset")
    assert other.locator(".main-svg").count() > 0
    expect(other.get_by_role("alert")).to_have_count(0)
    page.unroute(pattern)
    broken.get_by_role("button", name="Try again").click()
    broken.locator(".main-svg").first.wait_for()


def test_a_service_that_is_down_and_one_that_hangs_have_messages_of_their_own(visit: Visit) -> None:
    # Its clock stays with the tab.
    page = visit.browser.new_tab()
    page.clock.install()
    page.goto(visit.url(VIEWS["markets"]))
    visit.wait(page)
    everything = re.compile("/api/v1/")
    page.route(everything, lambda route: route.abort())
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    page.unroute(everything)
    page.route(everything, lambda route: None)
    page.get_by_role("button", name="Try again").click()
    page.clock.run_for(16_000)
    expect(page.get_by_role("alert")).to_have_text("The service did not answer within 15 seconds.")
    page.unroute(everything)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("table")).to_be_visible()


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("overview", "This service has no deposits and debt."),
        ("markets", "There are no prices and markets yet."),
        ("asset", "There are no assets yet."),
        ("address", "This service has no positions of addresses."),
    ],
)
def test_an_empty_store_is_announced_without_asking_for_what_is_not_there(
    visit: Visit, view: str, message: str
) -> None:
    page = visit.browser.open("about:blank")
    health = {"healthy": False, "faults": [], "simulated": False, "sources": [], "snapshots": []}
    answer_with(page, "/status/health", health | {"store": {"reachable": True, "schema_current": True}})
    page.goto(visit.url(VIEWS[view]))
    expect(page.locator("main .notice")).to_contain_text(message)
    assert visit.browser.said == []


def test_where_keys_are_needed_the_page_asks_for_one_and_sends_it_for_files_too(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    sent: set[str | None] = set()

    def guard(route: Route) -> None:
        key = route.request.headers.get("authorization")
        sent.add(key)
        if key != "Bearer right":
            failure(route, 401, "unauthorized", "The API key is not valid.")
        elif "format=csv" in route.request.url:
            failure(route, 429, "rate_limited", "Too many requests.")
        else:
            route.fallback()

    def with_keys(route: Route) -> None:
        """The page as a service with API keys has it."""
        body = route.fetch().text().replace('data-keys="false"', 'data-keys="true"')
        route.fulfill(body=body, content_type="text/html")

    page.route(re.compile("/api/v1/"), guard)
    url = visit.url(RECEIPT)
    page.route(url, with_keys)
    page.goto(url)
    for key in ("wrong", "right"):
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Use it").click()
        if key == "wrong":
            expect(page.locator("main .notice")).to_have_text("The API key is not valid.")
    visit.wait(page)
    expect(page.locator(".chip", has_text="needs a key")).to_have_count(0)
    assert sent >= {"Bearer wrong", "Bearer right"}
    assert "right" not in page.url
    assert page.evaluate("localStorage.length") == 0
    page.get_by_text("Data", exact=True).first.click()
    page.get_by_role("link", name="CSV").first.click()
    expect(page.get_by_role("alert")).to_contain_text("CSV could not be saved: The service received too many requests")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Parquet").first.click()
    assert saving.value.path().read_bytes()[:4] == b"PAR1"


class Watched:
    """Views in a tab whose clock the test moves on, and whether the present one has been drawn again. There are the
    newer snapshots that the test adds, and no others."""

    def __init__(self, visit: Visit) -> None:
        self.page = visit.browser.new_tab()
        self.added = self._pending = 0
        self._status = visit.data("/status/health")
        for event, change in (("request", 1), ("requestfinished", -1), ("requestfailed", -1)):
            self.page.on(event, partial(self._count, change))
        self.page.clock.install()
        self.page.route(re.compile("/status/health"), self._tell)
        self._visit = visit

    def _tell(self, route: Route) -> None:
        snapshots = [one | {"newest": f"2026-01-01T00:00:{self.added:02}Z"} for one in self._status["snapshots"]]
        route.fulfill(json={"data": self._status | {"snapshots": snapshots}})

    def show(self, query: dict[str, str]) -> None:
        """Open a view. From then on, time passes only in `let_pass`."""
        self.page.goto(self._visit.url(query))
        self._visit.wait(self.page)
        self.page.clock.pause_at(self.page.evaluate("Date.now()") / 1000 + 1)
        self.mark()
        # It has looked which snapshots there are.
        self.let_pass(16)

    def mark(self) -> None:
        """Mark the view as it is now, so that it can be seen whether it is drawn again."""
        self.page.evaluate("document.querySelector('main h1').marked = true")

    def is_marked(self) -> bool:
        return bool(self.page.evaluate("document.querySelector('main h1').marked === true"))

    def _count(self, change: int, request: object) -> None:
        self._pending += change

    def let_pass(self, seconds: int) -> None:
        """Second by second, and none while an answer is awaited: it would seem to take longer than it does."""
        for _ in range(seconds):
            self.page.clock.run_for(1000)
            self.page.wait_for_timeout(5)
            while self._pending:
                self.page.wait_for_timeout(5)

    def is_drawn_again(self) -> bool:
        """Whether it was, after another look at the snapshots."""
        self.let_pass(15)
        return not self.is_marked()


def test_a_view_of_the_present_is_drawn_again_while_nobody_uses_it_and_a_hidden_tab_asks_for_nothing(
    visit: Visit,
) -> None:
    watched = Watched(visit)
    page = watched.page
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => globalThis.isAway ?? false })")
    watched.show(VIEWS["markets"])
    page.mouse.move(300, 300)
    watched.added += 1
    watched.let_pass(20)
    assert watched.is_marked(), "it was drawn again under the eyes of someone who uses it"
    until(watched.is_drawn_again)
    visit.wait(page)
    assert page.locator("main h1").count() == 1
    assert page.locator("main .next").count() == 0
    assert visit.browser.said == []
    watched.mark()
    page.get_by_label("Search").focus()
    watched.added += 1
    assert not any(watched.is_drawn_again() for _ in range(3)), "it was drawn again although someone writes"
    page.evaluate("globalThis.isAway = true")
    asked = len(visit.browser.asked)
    watched.let_pass(16)
    assert len(visit.browser.asked) == asked
    with page.expect_request(re.compile("/status/health")):
        page.evaluate("() => { globalThis.isAway = false; document.dispatchEvent(new Event('visibilitychange')); }")
