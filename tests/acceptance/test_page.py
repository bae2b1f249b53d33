"""The page at /, in a browser: what people see of the running service, and how they get about in it."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from analytics_service.sources.simulated.universe import ID_OF
from tests.acceptance.browser import PHONE, WIDE, Browser, Colors, barriers, look
from tests.acceptance.conftest import Service, kill, stop
from tests.processes import slack, until

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
AWAY = "The service cannot answer right now. Try again in a minute."
ONLY_SOME = "This service knows the positions of some addresses only."
MINUS = "\N{MINUS SIGN}"
ASSET = VIEWS["asset"] | CLOSED | {"tz": "UTC"}
DESK = (1920, 1080)
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


class Visit:
    """A browser at the page of a service."""

    def __init__(self, browser: Browser, service: Service) -> None:
        self.browser = browser
        self.service = service

    def open(self, query: dict[str, str], **how: Any) -> Page:
        """The page at a query, when everything has been drawn."""
        page = self.browser.open(self.url(query), **how)
        self.wait(page)
        return page

    def url(self, query: dict[str, str]) -> str:
        """The address of the page with a query."""
        return f"http://{self.service.bind}/?{urlencode(query)}"

    @staticmethod
    def wait(page: Page) -> None:
        """Return when nothing is loading any more."""
        page.wait_for_function(
            """() => !document.body.textContent.includes("Loading…")
                && [...document.querySelectorAll(".chart")].every(
                    (chart) => chart.querySelector(".main-svg, .notice"))"""
        )

    def data(self, url: str) -> Any:
        """The data that the API has at an address."""
        parts = urlsplit(url)
        status, body = self.service.get(f"{parts.path}?{parts.query}")
        assert status == 200, body
        return body["data"]


@pytest.fixture
def visit(browser: Browser, service: Service) -> Iterator[Visit]:
    """A visit to the service that all tests share."""
    yield Visit(browser, service)


# When the imported prices end, and how many days before each price is. Nobody quotes C in the last week.
PRICES_END = int(datetime(2023, 11, 14, 12, 30, tzinfo=UTC).timestamp())
PRICES = {"A": {30: 1, 1: 4, 0: 5}, "B": {30: 100, 1: 20, 0: 10}, "C": {30: 10, 10: 30}}
# Rates end three months later; another asset of theirs has the symbol of A, and C cannot be borrowed.
RATES_END = int(datetime(2024, 2, 20, 6, tzinfo=UTC).timestamp())
RATES = {"lend": {"0xb": "0.01", "0xc": "0.03", "0xd": "0.02"}, "borrow": {"0xb": "0.02", "0xd": "0.04"}}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service that has imported prices, rates and total values locked, and no source."""
    folder = tmp_path_factory.mktemp("imported")
    running = Service(folder / "data", source="none", workers=1)
    names = ("prices", "assets", "others", "lend", "borrow", "tvl")
    prices, assets, others, lend, borrow, tvl = (folder / f"{name}.csv" for name in names)
    rows = [f"{name},{PRICES_END - day * 86_400},{usd}" for name, days in PRICES.items() for day, usd in days.items()]
    prices.write_text("\n".join(["asset,time,value", *rows, ""]))
    assets.write_text("symbol,address,decimals\nA,0xa,6\nB,0xb,6\nC,0xc,6\n")
    others.write_text("symbol,address,decimals\nB,0xb,6\nC,0xc,6\nA,0xd,6\n")
    for path, rates in zip((lend, borrow), RATES.values(), strict=True):
        path.write_text("asset,time,value\n" + "".join(f"{key},{RATES_END},{apr}\n" for key, apr in rates.items()))
    tvl.write_text("time,value\n2024-01-01,1000000\n2024-01-31,1500000.5\n")
    try:
        process = running.up()
        for arguments in (
            ("price", str(prices), "--assets", str(assets)),
            ("lend-rate", str(lend), "--assets", str(others)),
            ("borrow-rate", str(borrow), "--assets", str(others)),
            ("tvl", str(tvl)),
        ):
            running.bring(*arguments)
        # The worker looks once a second.
        until(lambda: running.get("/api/v1/markets/history/tvl?start=2024-01-01&end=2024-02-01&period=d")[0] == 200)
        yield running
        stop(process)
    finally:
        kill(running)


# Of each of many assets: its price, once a week, rises by a hundredth of a percent a day times its number.
MANY, DAYS = 300, 365
DEPOSITS = [Decimal((number * 7_919) % 10_007 + 1) for number in range(MANY)]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service that has imported the prices of a year's weeks and the deposits of two days of many assets."""
    folder = tmp_path_factory.mktemp("crowd")
    running = Service(folder / "data", source="none", workers=1)
    midnight = int(NOW.timestamp()) // 86_400 * 86_400
    prices, assets, deposits = (folder / f"{name}.csv" for name in ("prices", "assets", "deposits"))
    ids = [f"S{number},{number + 1:#042x}" for number in range(MANY)]
    assets.write_text("\n".join(["symbol,address,decimals", *(f"{each},6" for each in ids), ""]))
    rows = (
        f"S{number},{midnight - day * 86_400},{1 + (DAYS - day) * number / 10_000}"
        for number in range(MANY)
        for day in range(0, DAYS, 7)
    )
    prices.write_text("\n".join(["asset,time,value", *rows, ""]))
    lent = (f"S{number},{midnight - day * 86_400},{usd + day}" for number, usd in enumerate(DEPOSITS) for day in (0, 1))
    deposits.write_text("\n".join(["asset,time,value", *lent, ""]))
    try:
        process = running.up()
        for arguments in (("price", str(prices), "--assets", str(assets)), ("deposits", str(deposits))):
            running.bring(*arguments)
        until(lambda: running.get("/api/v1/markets/history/deposits?start=0&end=now&period=y&asset_ids=S1")[0] == 200)
        yield running
        stop(process)
    finally:
        kill(running)


@pytest.fixture
def old(browser: Browser, imported: Service) -> Iterator[Visit]:
    """A visit to a service whose data ended long ago."""
    yield Visit(browser, imported)


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
def test_every_view_is_complete_silent_and_without_barriers(
    visit: Visit, view: str, size: tuple[int, int], colors: Colors
) -> None:
    """Only views with charts load what draws them and, where there is room, have a range to choose."""
    page = visit.open(VIEWS[view], size=size, color_scheme=colors)
    assert visit.browser.said == []
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


def test_numbers_and_candles_of_a_chart_are_those_of_the_api_and_copied_code_asks_for_them(visit: Visit) -> None:
    page = visit.open(ASSET)
    [series] = (data := visit.data(source(page)))["series"]
    times = [datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S") for t in data["t"]]
    columns = [series["o"], series["h"], series["l"], series["c"], [str(n) for n in series["n"]]]
    assert any(series["c"])
    shown = [["\N{EN DASH}" if value is None else value for value in row] for row in zip(times, *columns, strict=True)]
    assert numbers(page) == shown
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    assert "\t".join(shown[-1]) in page.evaluate("navigator.clipboard.readText()")
    # Candles lie in the middle of their buckets.
    middle = datetime.fromtimestamp((data["t"][0] + data["t"][1]) / 2, UTC)
    drawn = page.locator(".chart").first.evaluate("(chart) => chart.data[0].x")
    assert drawn[0] == middle.strftime("%Y-%m-%d %H:%M:%S")
    panel = page.locator(".panel:has(.chart)").first
    parquet = panel.get_by_role("link", name="Parquet").get_attribute("href")
    expected = {
        "curl": f'curl "{source(page)}"',
        "pandas": f'import pandas as pd\n\ndf = pd.read_parquet("{parquet}")',
        "Polars": f'import polars as pl\n\ndf = pl.read_parquet("{parquet}")',
    }
    for name, code in expected.items():
        panel.get_by_role("button", name=f"Copy as {name}").click()
        expect(panel.get_by_role("button", name=f"Copy as {name}")).to_have_count(0)
        assert page.evaluate("navigator.clipboard.readText()") == code
    assert {**query(source(page)), "format": "parquet"} == query(str(parquet))


def test_a_brush_over_a_chart_sets_the_range_of_the_whole_page_until_a_double_click(visit: Visit) -> None:
    page = visit.open(ASSET)
    box = page.locator(".chart").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 90, steps=5)
    page.mouse.up()
    page.wait_for_url(lambda url: query(url)["start"] > CLOSED["start"] and query(url)["end"] < CLOSED["end"])
    visit.wait(page)
    shown = query(page.url)
    for chart in range(3):
        assert {name: query(source(page, chart))[name] for name in ("start", "end")} == {
            "start": shown["start"],
            "end": shown["end"],
        }
    expect(page.get_by_role("button", name="Zoom out").first).to_be_visible()
    page.locator(".chart").first.dblclick()
    page.wait_for_url(lambda url: query(url)["start"] == CLOSED["start"])
    expect(page.get_by_role("button", name="Zoom out")).to_have_count(0)
    visit.wait(page)
    assert query(source(page))["start"] == CLOSED["start"]
    page.go_back()
    visit.wait(page)
    assert query(page.url)["start"] == query(source(page))["start"] == shown["start"]
    # The library writes midnight as a date, which would mean the end of the day to the API.
    brushed = {"xaxis.range[0]": "2026-01-02 12:30:00.1234", "xaxis.range[1]": "2026-01-04"}
    page.locator(".chart").first.evaluate("(chart, brushed) => { chart.emit('plotly_relayout', brushed); }", brushed)
    page.wait_for_url(lambda url: query(url)["start"] == "2026-01-02T12:30:00")
    assert query(page.url)["end"] == "2026-01-04T00:00:00"


def test_arrow_keys_move_one_crosshair_through_all_charts_and_enter_zooms(visit: Visit) -> None:
    page = visit.open(ASSET)
    times = numbers(page)
    page.locator(".chart").first.focus()
    page.keyboard.press("Home")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    tooltips = page.locator(".tooltip").all_text_contents()
    # Price, rates and utilization have buckets of the same width.
    assert [text[:16] for text in tooltips[:3]] == [times[4][0][:16]] * 3
    page.keyboard.press("Enter")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: query(url)["start"] != CLOSED["start"])
    shown = query(page.url)
    end = datetime.fromisoformat(times[15][0]) - timedelta(seconds=1)
    assert [shown["start"], shown["end"]] == [times[4][0].replace(" ", "T"), end.isoformat()]


def test_the_bucket_that_is_not_over_is_told_and_another_zone_shows_the_same_instants(visit: Visit) -> None:
    page = visit.open(VIEWS["asset"] | {"range": "30d", "tz": "UTC"})
    tooltip = page.locator(".tooltip").first
    expect(page.locator(".legend").first).to_contain_text("in progress")
    page.locator(".chart").first.focus()
    page.keyboard.press("End")
    expect(tooltip).to_contain_text(re.compile(r"^[-0-9]{10}( \d\d:\d\d)?, in progressOpen\$"))
    page.keyboard.press("Home")
    expect(tooltip).not_to_contain_text("in progress")
    page.get_by_label("Zone").select_option("America/New_York")
    visit.wait(page)
    assert query(page.url)["tz"] == "America/New_York"
    url = source(page)
    assert query(url)["tz"] == "America/New_York"
    zone = ZoneInfo("America/New_York")
    expected = [datetime.fromtimestamp(t, zone).strftime("%Y-%m-%d %H:%M:%S") for t in visit.data(url)["t"]]
    assert [row[0] for row in numbers(page)] == expected


def test_what_is_missing_is_a_gap_and_an_asset_has_one_colour_in_all_charts(visit: Visit) -> None:
    page = visit.browser.open("about:blank")

    def with_gaps(route: Route) -> None:
        answer = route.fetch().json()
        for series in answer["data"]["series"]:
            series["v"] = [None if place in (0, 1, 50) else "1" for place in range(len(answer["data"]["t"]))]
        route.fulfill(json=answer)

    page.route(re.compile("/markets/history/deposits.*period=auto"), with_gaps)
    page.goto(visit.url({"tz": "UTC"} | CLOSED))
    visit.wait(page)
    drawn = "(chart) => chart.data"
    marks = [page.locator(f"#chart-{name}-by-asset ~ .below .mark") for name in ("deposits", "debt")]
    assert [mark.all_inner_texts() for mark in marks] == [["Gap: no data"], []]
    charts = [page.locator(f"#chart-{name}-by-asset").evaluate(drawn) for name in ("deposits", "debt")]
    first = charts[0][0]["name"]
    buckets = len(visit.data(source(page, 1))["t"])
    assert [len(trace["x"]) for trace in charts[0] if trace["name"] == first] == [48, buckets - 51]
    colors = [{trace["name"]: trace["fillcolor"] for trace in traces} for traces in charts]
    both = colors[0].keys() & colors[1].keys() - {"Others"}
    assert len(both) > 2
    assert all(colors[0][name] == colors[1][name] for name in both)
    assert len({*colors[0].values()}) == len(colors[0])


def test_focus_stays_in_the_view_when_a_button_of_it_draws_it_again_and_going_back_scrolls_back(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    # Charts are drawn in browsers without it, too.
    page.add_init_script("delete globalThis.requestIdleCallback")
    page.goto(visit.url(ASSET))
    visit.wait(page)
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    page.get_by_role("button", name="Candles").click()
    visit.wait(page)
    assert page.evaluate("document.activeElement.id") == "main"
    page.evaluate("() => new Promise((done) => { onscrollend = done; scrollTo(0, 500); }).then(() => null)")
    page.get_by_role("link", name="All markets").evaluate("(link) => link.click()")
    expect(page.get_by_role("table")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    page.wait_for_function("() => scrollY === 500")


def test_a_custom_range_is_shown_a_backward_one_refused_and_a_future_one_left_for_the_newest(visit: Visit) -> None:
    page = visit.open({"tz": "UTC"})
    page.get_by_text("Custom").click()
    page.get_by_label("From").fill(CLOSED["end"])
    page.get_by_label("to", exact=True).fill(CLOSED["start"])
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_have_text("The range ends before it begins.")
    page.get_by_label("From").fill(CLOSED["start"])
    page.get_by_label("to", exact=True).fill(CLOSED["end"])
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(lambda url: query(url).get("start", "").startswith(CLOSED["start"][:16]))
    visit.wait(page)
    assert query(source(page))["end"].startswith(CLOSED["end"][:16])
    page.get_by_label("From").fill("2100-01-01T00:00:00")
    page.get_by_label("to", exact=True).fill("2100-01-02T00:00:00")
    page.get_by_role("button", name="Show").click()
    visit.wait(page)
    notice = page.locator(".chart .notice").first.inner_text()
    assert notice.startswith("There is no data in this range. The newest data is from ")
    page.get_by_role("button", name="Show the newest data").first.click()
    visit.wait(page)
    newest = {name: datetime.fromisoformat(query(source(page))[name]) for name in ("start", "end")}
    assert notice.endswith(f" {newest['end']:%Y-%m-%d %H:%M}.")
    assert newest["end"] - newest["start"] == timedelta(days=1)
    expect(page.locator(".chart .main-svg").first).to_be_visible()


def test_what_the_api_would_not_take_counts_for_nothing_in_the_address(visit: Visit) -> None:
    refused = {"range": "toString", "tz": "+01:00", "start": "2017", "end": "2019"}
    page = visit.open(VIEWS["asset"] | refused)
    # Beside times there is a zone, so that they are the same instants for all.
    assert query(page.url)["tz"] == page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    url = source(page)
    assert (query(url)["start"], query(url)["end"]) == ("now-7d", "now")
    assert visit.data(url)["series"]


def test_a_backward_range_in_the_address_is_said_to_be_one_once(visit: Visit) -> None:
    page = visit.open(VIEWS["asset"] | {"start": "2026-02-02T00:00", "end": "2026-02-01", "tz": "UTC"})
    expect(page.locator("main [role=alert]")).to_have_text("The range ends before it begins. Choose another range.")
    expect(page.locator(".chart")).to_have_count(0)
    assert visit.browser.said == []
    # A date that ends a range ends with its last second.
    page = visit.open(VIEWS["asset"] | {"start": "2026-02-02T10:00", "end": "2026-02-02", "tz": "UTC"})
    expect(page.locator(".chart").first).to_be_visible()


def test_a_failed_chart_says_why_and_what_the_service_is_too_busy_for_is_asked_for_again_when_it_says(
    visit: Visit,
) -> None:
    """The failed one is beside the others and can be tried again."""
    page = visit.browser.open("about:blank")
    pattern = re.compile("/markets/history/deposits")
    page.route(pattern, lambda route: failure(route, 503, "unavailable", "The store is away."))
    refusals = [{"Retry-After": "1"}] * 2

    def busy(route: Route) -> None:
        if refusals:
            route.fulfill(status=503, headers=refusals.pop())
        else:
            route.continue_()

    page.route(re.compile("/markets/history/debt"), busy)
    page.goto(visit.url({}))
    visit.wait(page)
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


def test_charts_show_symbols_as_they_are_written_and_the_size_of_their_answers(visit: Visit) -> None:
    """As JSON may end with spaces, it can be made 33.5 times 1,024."""
    symbols = ["A<b>B</b><sub>C</sub>", '<a href="https://evil.example">D</a>', "E&lt;F &amp; %{x}"]
    page = visit.browser.open("about:blank")

    def renamed(route: Route) -> None:
        answer = route.fetch().json()
        del answer["data"]["series"][len(symbols) :]
        for series, symbol in zip(answer["data"]["series"], symbols, strict=True):
            series["symbol"] = symbol
        route.fulfill(json=answer)

    page.route(re.compile("/markets/history/deposits.*period=auto"), renamed)
    long = re.compile("/history/tvl.*period=auto")
    page.route(long, lambda route: route.fulfill(body=route.fetch().text().ljust(34_304)))
    page.goto(visit.url({}))
    visit.wait(page)
    panel = page.locator(".panel", has_text="Deposits by asset")
    assert sorted(panel.locator(".legend button").all_text_contents()) == sorted(symbols)
    assert panel.locator(".main-svg").locator("a, [style*=bold], [baseline-shift]").count() == 0
    page.get_by_text("Data", exact=True).first.click()
    expect(page.locator(".source").first).to_contain_text("33.5 KiB in ")


@pytest.mark.slow
def test_a_charting_library_that_could_not_be_loaded_is_loaded_anew(visit: Visit) -> None:
    # The tab that tests share has it in its cache.
    page = visit.browser.new_tab()
    library = re.compile("plotly")
    page.route(library, lambda route: route.abort())
    page.goto(visit.url(VIEWS["asset"]))
    again = page.get_by_role("button", name="Try again")
    again.first.wait_for()
    expect(page.get_by_role("alert").first).to_have_text("The charting library could not be loaded.")
    page.unroute(library)
    again.first.click()
    page.locator(".main-svg").first.wait_for()


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
        pytest.param("markets", "There are no prices and markets yet.", marks=pytest.mark.slow),
        pytest.param("asset", "There are no assets yet.", marks=pytest.mark.slow),
        pytest.param("address", "This service has no positions of addresses.", marks=pytest.mark.slow),
    ],
)
def test_an_empty_store_is_announced_without_asking_for_what_is_not_there(
    visit: Visit, view: str, message: str
) -> None:
    page = visit.browser.open("about:blank")
    nothing = {"healthy": False, "faults": [], "simulated": False, "sources": [], "snapshots": []}
    nothing["store"] = {"reachable": True, "schema_current": True}
    page.route(re.compile("/status/health"), lambda route: route.fulfill(json={"data": nothing}))
    page.goto(visit.url(VIEWS[view]))
    expect(page.locator("main .notice")).to_contain_text(message)
    assert visit.browser.said == []


@pytest.mark.slow
def test_what_is_in_memory_is_shown_while_the_store_cannot_be_reached(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    away = {"healthy": False, "faults": ["the store cannot be reached"], "simulated": True, "sources": ["simulated"]}
    away |= {"snapshots": [], "store": {"reachable": False, "schema_current": False}}
    page.route(re.compile("/status/health"), lambda route: route.fulfill(json={"data": away}))
    page.goto(visit.url(VIEWS["overview"]))
    expect(page.locator(".tile")).to_have_count(6)
    expect(page.locator(".chip")).to_have_text(["store cannot be reached"])


def test_prices_of_three_days_ago_are_late_and_compared_with_those_of_the_day_before(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    newest = datetime(2026, 11, 1, tzinfo=UTC)
    snapshots = [
        {
            "dataset": dataset,
            "newest": newest.isoformat(),
            "age_seconds": age,
            "fresh": fresh,
            "interval_seconds": every,
        }
        for dataset, age, fresh, every in [
            ("prices", 259_200, False, 60),
            ("config", 169_200, True, 86_400),
            ("routes", 86_400, True, None),
        ]
    ]
    lost = {"asset_id": "native;chel", "age_seconds": 7_200}
    health = {"simulated": True, "snapshots": snapshots, "store": {"reachable": True}, "lost_prices": [lost]}
    # Four assets of one symbol; nobody has quoted the last one for three days more.
    names = ("ahel", "bhel", "chel", "dhel")
    assets = [{"asset": {"id": f"native;{name}"}, "metadata": {"symbol": "AHEL"}} for name in names]
    price = {"price": "3", "last_updated_at": newest.isoformat()}
    changes = [price | {"changes": {"24h": change}} for change in ("0.5", "-0.000033", "2", "0")]
    changes[3] |= {"last_updated_at": (newest - timedelta(days=3)).isoformat()}
    week = {"data": {"t": [0, 1, 2], "series": [{"asset": f"native;{name}", "v": ["1", "2", "3"]} for name in names]}}
    page.route(re.compile("/status/health"), lambda route: route.fulfill(json={"data": health}))
    page.route(
        re.compile("/assets/prices"),
        lambda route: route.fulfill(
            json={"data": [asset | {"price": price} for asset, price in zip(assets, changes, strict=True)]}
        ),
    )
    page.route(re.compile("/assets/price-history"), lambda route: route.fulfill(json=week))
    page.goto(visit.url(VIEWS["markets"] | {"tz": "UTC"}))
    visit.wait(page)
    expect(page.locator("tbody td:nth-child(2)")).to_have_text(
        ["$3.00", "$3.00", "$3.00, 2 h old", "$3.00, 3 d older than others"]
    )
    shown = page.locator("tbody td:nth-child(3) span")
    expect(shown).to_have_text(["+50.00%", "0.00%", "\N{EN DASH}", "\N{EN DASH}"])
    expect(shown).to_have_class(["good", "soft", "soft", "soft"])
    expect(page.locator("tbody th")).to_have_text([f"AHEL native;{name}" for name in names])
    # Without snapshots of markets, what is shown may be of any time.
    expect(page.locator("main")).to_contain_text("As of 2026-11-01 00:00 (prices).")
    page.get_by_text("Updated 24 h ago").click()
    expect(page.get_by_role("list", name="Age of the data")).to_be_visible()
    expect(page.locator(".chip")).to_have_text(
        ["prices 3 d, late", "market settings 47 h, fresh", "swap routes 24 h, not scheduled"]
    )


# Prices at the end of the range, and how much they differ from those with which it begins.
@pytest.mark.parametrize(
    ("chosen", "movers"),
    [
        pytest.param("24h", [("B", "$10.00", f"{MINUS}50.00%"), ("A", "$5.00", "+25.00%")], marks=pytest.mark.slow),
        (
            "30d",
            [
                ("A", "$5.00", "+400.00%"),
                ("C", "$30.00, 10 d older than others", "+200.00%"),
                ("B", "$10.00", f"{MINUS}90.00%"),
            ],
        ),
    ],
)
def test_an_overview_without_markets_has_the_largest_moves_up_to_the_end_of_the_prices(
    old: Visit, chosen: str, movers: list[tuple[str, str, str]]
) -> None:
    page = old.open({"range": chosen, "tz": "UTC"})
    panel = page.locator(".panel", has=page.get_by_role("heading", name="Largest price moves Data ends 2023-11-14"))
    assert [tuple(row.split("\t")) for row in panel.locator("tbody").inner_text().split("\n")] == movers
    assert query(source(page))["end"] == str(PRICES_END)


def test_an_overview_without_markets_has_the_newest_rates_and_tells_what_there_is(old: Visit) -> None:
    page = old.open({"tz": "UTC"})
    expect(page.locator(".tile")).to_have_text(
        [
            "Prices3 assets2023-10-15 to 2023-11-14",
            "Lend rates3 assets2024-02-20",
            "Borrow rates2 assets2024-02-20",
        ]
    )
    tables = {
        "Highest lend APRs": "C\t3.00%\nA\t2.00%\nB\t1.00%",
        "Highest borrow APRs": "A\t4.00%\nB\t2.00%",
    }
    for title, rows in tables.items():
        panel = page.locator(".panel", has=page.get_by_role("heading", name=f"{title} Data ends 2024-02-20"))
        assert panel.locator("tbody").inner_text() == rows
    assert barriers(page) == []
    assert old.browser.said == []
    page.get_by_role("table", name="Highest lend APRs").get_by_role("link", name="C", exact=True).click()
    expect(page.locator("h1")).to_contain_text("C")
    expect(page).to_have_title("C · Lending market data")
    assert query(page.url)["asset"] == "C"


def test_imported_sums_are_charted_up_to_their_end(old: Visit) -> None:
    """Although values alone are no snapshot, of which the status tells."""
    page = old.open({"range": "90d", "tz": "UTC"})
    expect(page.locator(".panel h2").last).to_have_text("Total value locked Data ends 2024-01-31")
    assert query(source(page, 3))["end"] == str(int(datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()))
    assert numbers(page, 3)[-1][-1] == "1500000.5"
    # Between the two days nothing was observed.
    assert page.locator(".panel").last.locator(".lines path[style*=dasharray]").count() > 0
    expect(page.locator(".panel").last.locator(".legend .mark")).to_have_text("no new observation")


@pytest.mark.parametrize("chosen", ["7d", "All"])
def test_of_many_assets_the_largest_are_charted_and_all_others_as_one(
    browser: Browser, crowd: Service, chosen: str
) -> None:
    visit = Visit(browser, crowd)
    page = visit.open({"range": chosen, "tz": "UTC"})
    expect(page.locator(".notice")).to_have_count(0)
    expect(page.locator(".tile .value")).to_have_text(f"{MANY} assets")
    charts = page.locator(".panel:has(.chart)")
    expect(charts.locator("h2")).to_have_text(["Largest price moves", "Deposits by asset"])
    # Those of the last numbers have risen most, over any range.
    first = [f"S{number}" for number in range(MANY - 1, MANY - 13, -1)]
    expect(charts.first.get_by_role("link", name=re.compile("^S"))).to_have_text(first)
    largest = sorted(range(MANY), key=lambda number: -DEPOSITS[number])[:12]
    rest = sum(DEPOSITS) - sum(DEPOSITS[number] for number in largest)
    shown = [row[1:-1] for row in numbers(page, 1)]
    heads = ["From", *(f"S{number}" for number in largest), "Others", "All"]
    expect(charts.nth(1).locator("thead th")).to_have_text(heads)
    newest = next(row for row in reversed(shown) if row[0] != "\N{EN DASH}")
    assert newest == [str(value) for value in (*(DEPOSITS[number] for number in largest), rest)]
    # One request says which assets are the largest, the other has their history.
    asked = [url for url in browser.asked if "/history/deposits" in url]
    assert len(asked) == 2
    assert browser.said == []


def test_many_markets_are_shown_a_page_at_a_time_and_searched_as_a_whole(browser: Browser, crowd: Service) -> None:
    page = Visit(browser, crowd).open(VIEWS["markets"])
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(page.get_by_text(f"50 of {MANY} of {MANY} assets")).to_be_visible()
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(100)
    expect(rows.nth(99).locator("svg")).to_have_count(1)
    page.get_by_label("Search").fill(f"s{MANY - 1}")
    expect(rows).to_have_count(1)
    expect(rows.locator("svg")).to_have_count(1)
    expect(page.get_by_role("button", name="More")).to_be_hidden()
    assert browser.said == []


def test_each_chart_of_an_asset_ends_where_its_data_does_and_a_custom_range_where_it_says(old: Visit) -> None:
    page = old.open({"view": "asset", "asset": "b", "range": "90d", "tz": "UTC"})
    headings = page.locator(".panel h2")
    expect(headings).to_have_text(["Price Data ends 2023-11-14", "Lend and borrow APR Data ends 2024-02-20"])
    # The newest price is one of them.
    lowest_and_highest = "$10.00 \N{EN DASH} $20.00 24 h$10.00 \N{EN DASH} $100.00 52 weeks"
    expect(page.locator(".tile").nth(1)).to_contain_text(lowest_and_highest)
    for chart, end in enumerate((PRICES_END, RATES_END)):
        assert {"start": str(end - 90 * 86_400), "end": str(end)}.items() <= query(source(page, chart)).items()
    page = old.open({"view": "asset", "asset": "b", "start": "2023-10-01", "end": "2023-11-01", "tz": "UTC"})
    expect(headings).to_have_text(["Price", "Lend and borrow APR"])


def test_what_is_left_of_a_day_of_25_hours_joins_the_candle_before_it(old: Visit) -> None:
    page = old.browser.open("about:blank")

    def numbered(route: Route) -> None:
        answer = route.fetch().json()
        count = len(answer["data"]["t"])
        columns = {key: [str(place) for place in range(count)] for key in "ohlc"} | {"n": [1] * count}
        answer["data"]["series"] = [{"asset": "token;0xb", "symbol": "B"} | columns]
        route.fulfill(json=answer)

    page.route(re.compile("/assets/price-history.*period=auto"), numbered)
    # Clocks go back on the 29th.
    days = {"start": "2023-10-28", "end": "2023-10-30", "tz": "Europe/Berlin"}
    page.goto(old.url({"view": "asset", "asset": "b", "candles": "1"} | days))
    old.wait(page)
    [*begins, last] = old.data(source(page))["t"]
    [place] = [place for place, after in enumerate([*begins[1:], last]) if after - begins[place] == 3600]
    zone = ZoneInfo(days["tz"])
    kept = [t for t in (*begins, last) if t != begins[place]]
    rows = numbers(page)
    assert [row[0] for row in rows] == [f"{datetime.fromtimestamp(t, zone):%Y-%m-%d %H:%M:%S}" for t in kept]
    assert rows[place - 1][1:] == [*map(str, (place - 1, place, place - 1, place)), "2"]


def test_a_last_price_that_is_older_than_others_has_no_changes(old: Visit) -> None:
    page = old.open({"view": "asset", "asset": "c", "tz": "UTC"})
    tile = page.locator(".tile").first
    expect(tile).to_contain_text("no data since 2023-11-04 12:30, 10 d before the newest prices")
    expect(tile.locator(".changes > span > span:first-child")).to_have_text(3 * ["\N{EN DASH}"])


def test_an_asset_is_chosen_by_symbol_and_by_id_where_two_have_it(old: Visit) -> None:
    page = old.open({})
    field = page.get_by_label("Asset (symbol or id)")
    field.fill("B")
    field.press("Enter")
    expect(page.locator("h1")).to_have_text("B")
    assert query(page.url).items() >= {"view": "asset", "asset": "B"}.items()
    field.fill("a")
    page.get_by_role("button", name="Show", exact=True).last.click()
    expect(page.locator("main .notice")).to_have_text("2 assets have the symbol a. Choose one by its id.")
    assert barriers(page) == []
    field.focus()
    offered = page.locator("datalist option").evaluate_all("(options) => options.map((option) => option.value)")
    assert offered == ["token;0xa", "B", "C", "token;0xd"]
    page.get_by_role("link", name="token;0xd").click()
    expect(page.locator("main code").first).to_have_text("token;0xd")
    field.fill("none")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("There is no asset none.")
    assert old.browser.said == []


@pytest.mark.slow
def test_a_store_of_rates_alone_needs_no_prices_for_its_overview_and_its_assets(old: Visit) -> None:
    page = old.browser.open("about:blank")
    newest = {"newest": datetime.fromtimestamp(RATES_END, UTC).isoformat(), "age_seconds": 10**7, "fresh": True}
    rates = {"dataset": "rates", "interval_seconds": None} | newest
    health = {"simulated": False, "sources": [], "snapshots": [rates], "store": {"reachable": True}}
    page.route(re.compile("/status/health"), lambda route: route.fulfill(json={"data": health}))
    page.goto(old.url({"tz": "UTC"}))
    old.wait(page)
    expect(page.locator(".tile h2")).to_have_text(["Lend rates", "Borrow rates"])
    field = page.get_by_label("Asset (symbol or id)")
    field.fill("C")
    field.press("Enter")
    expect(page.locator(".panel h2")).to_have_text(["Lend and borrow APR Data ends 2024-02-20"])
    assert not [url for url in old.browser.asked if "/api/v1/assets" in url]


def test_an_invalid_address_is_an_error_for_visitors_beside_the_form_to_correct_it(visit: Visit) -> None:
    page = visit.open({"view": "address", "address": "nobody", "tz": "UTC"})
    told = "“nobody” cannot be used. It must be bech32 with a valid checksum, or 0x and 40 hex digits."
    expect(page.get_by_role("alert")).to_have_text(told)
    page.get_by_label("Address", exact=True).fill(RICH)
    page.get_by_role("button", name="Show", exact=True).last.click()
    expect(page.get_by_role("heading", name="Account 0")).to_be_visible()
    assert page.title().startswith("Address · ")


def test_tiles_compare_the_ends_of_the_range_or_whole_days_whatever_the_width_of_the_page(visit: Visit) -> None:
    api = f"http://{visit.service.bind}/api/v1"
    history = visit.data(
        f"{api}/markets/history/tvl?start=now-3h&end=now&period=min&fill=none&limit=200&format=columns"
    )
    values = [(t, Decimal(v)) for t, v in zip(history["t"], history["series"][0]["v"], strict=True) if v is not None]
    # Snapshots are of whole minutes, so these are the values at both ends.
    (start, before), (end, after) = values[0], values[-2]
    part = after / before - 1
    digits = f"{abs(100 * part):.2f}%"
    change = f"{'' if digits == '0.00%' else '+' if part > 0 else MINUS}{digits}"
    value = compact(visit.data(f"{api}/markets?at={end}")["tvl"]["tvl"])
    written = {"start": start, "end": end}
    times = {name: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S") for name, at in written.items()}
    # The last day has only begun.
    liquidations = {"data": {"series": [{"v": ["0", "10", "30", "31"]}]}}
    page = visit.browser.open("about:blank")
    page.route(re.compile("/history/liquidations"), lambda route: route.fulfill(json=liquidations))
    page.route(re.compile("/history/tvl.*period=auto"), doubled_at_the_end)
    visit.open({"tz": "UTC"})
    expect(page.locator(".tile").last).to_contain_text("$20.00day before: $10.00")
    # In fewer and wider buckets.
    visit.open(times | {"tz": "UTC"}, size=PHONE)
    expect(page.locator(".tile").first).to_contain_text(f"{value}{change} over the range")
    shown = f"As of {times['end'].replace('T', ' ')}, the end of the chosen range."
    expect(page.locator("h1 + p")).to_contain_text(shown)
    # Utilization is a percentage itself.
    expect(page.locator(".tile", has_text="Utilization")).to_contain_text(re.compile(r"\d pp over the range"))
    # Liquidations are of now, and the other numbers are not.
    expect(page.locator(".tile", has_text="Liquidations")).to_have_count(0)


def test_a_range_that_begins_before_the_data_says_the_same_as_all_of_the_past(visit: Visit) -> None:
    query = "start=now-3h&end=now&period=min&fill=none&limit=200&format=columns"
    history = visit.data(f"http://{visit.service.bind}/api/v1/markets/history/tvl?{query}")
    [first, *_] = [t for t, v in zip(history["t"], history["series"][0]["v"], strict=True) if v is not None]
    began = datetime.fromtimestamp(first, UTC)
    since = f"since {began:%H:%M}" if began.date() == datetime.now(UTC).date() else f"since {began:%Y-%m-%d %H:%M}"
    for chosen in ("1y", "All"):
        page = visit.open({"range": chosen, "tz": "UTC"})
        expect(page.locator(".tile", has_text=since)).to_have_count(5)
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
            route.continue_()

    page.route(re.compile("/api/v1/"), guard)
    url = visit.url(VIEWS["asset"])
    page.route(url, lambda route: route.fulfill(body=with_keys(route), content_type="text/html"))
    page.goto(url)
    for key in ("wrong", "right"):
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Use it").click()
        if key == "wrong":
            expect(page.locator("main .notice")).to_have_text("The API key is not valid.")
    visit.wait(page)
    # Earlier than at its next look at the service.
    expect(page.locator(".chip", has_text="needs a key")).to_have_count(0, timeout=5_000 * slack())
    assert sent >= {"Bearer wrong", "Bearer right"}
    assert "right" not in page.url
    assert page.evaluate("localStorage.length") == 0
    page.get_by_text("Data", exact=True).first.click()
    page.get_by_role("link", name="CSV").first.click()
    expect(page.get_by_role("alert")).to_contain_text("CSV could not be saved: The service received too many requests")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Parquet").first.click()
    assert saving.value.path().read_bytes()[:4] == b"PAR1"


def test_markets_are_searched_sorted_and_kept_in_the_address(visit: Visit) -> None:
    page = visit.open(VIEWS["markets"] | {"columns": "all"})
    # There is nothing that a range would change.
    expect(page.get_by_role("button", name="30 d")).to_be_hidden()
    rows = page.locator("tbody tr")
    merged = visit.data(f"http://{visit.service.bind}/api/v1/markets/merged?with_value=true")
    debts = {
        market["asset_info"]["metadata"]["symbol"]: float(market["borrow_debt"]["state"]["extra"]["value"]["balance"])
        for market in merged
        if market["borrow_debt"]
    }
    expect(page.get_by_role("columnheader", name="Deposits")).to_have_attribute("aria-sort", "descending")
    for order in ("descending", "ascending"):
        page.get_by_role("button", name="Price").click()
        expect(page.get_by_role("columnheader", name="Price")).to_have_attribute("aria-sort", order)
    expect(page.locator("th[aria-sort$=ending]")).to_have_count(1)
    page.get_by_role("button", name="Debt").click()
    expect(page.get_by_role("columnheader", name="Debt")).to_have_attribute("aria-sort", "descending")
    first = rows.locator("th").all_inner_texts()[: len(debts)]
    assert first == sorted(debts, key=lambda symbol: -debts[symbol])
    page.get_by_label("Search").fill("hus")
    expect(rows).to_have_count(1)
    again = visit.open(query(page.url))
    expect(again.locator("tbody tr")).to_have_count(1)
    expect(again.get_by_role("columnheader", name="Debt")).to_have_attribute("aria-sort", "descending")


def test_markets_show_where_all_value_is_and_what_can_be_borrowed(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    with (
        page.expect_response(re.compile("/markets/merged")) as merged,
        page.expect_response(re.compile("/markets/supply")) as summed,
    ):
        page.goto(visit.url(VIEWS["markets"] | {"columns": "all"}))
    visit.wait(page)
    titles = page.get_by_role("columnheader").all_inner_texts()

    def cells(row: Locator) -> dict[str, str]:
        return dict(zip(titles, (text.strip() for text in row.locator("th, td").all_inner_texts()), strict=True))

    [market] = [one for one in merged.value.json()["data"] if one["asset_info"]["metadata"]["symbol"] == "HEL"]
    lent = market["lend"]["state"]["extra"]["value"]["principal"]
    owed = market["borrow_debt"]["state"]["extra"]["value"]["balance"]
    posted = market["borrow_collateral"]
    assert (
        cells(page.locator("tbody tr", has=page.get_by_role("link", name="HEL", exact=True))).items()
        >= {
            "Available": compact(Decimal(lent) - Decimal(owed)),
            "Collateral": compact(posted["state"]["extra"]["value"]["balance"]),
            "Liquidation LTV": f"{100 * Decimal(posted['config']['liquidation_ltv']):.2f}%",
        }.items()
    )
    sums = summed.value.json()["data"]
    collateral = sums["borrow_collateral"]
    assert (
        cells(page.locator("tfoot tr")).items()
        >= {
            "Deposits": compact(sums["lend"]["principal"]),
            "Debt": compact(sums["borrow_debt"]["balance"]),
            "Available": compact(Decimal(sums["lend"]["principal"]) - Decimal(sums["borrow_debt"]["balance"])),
            "Collateral": compact(collateral["total"]["balance"]),
        }.items()
    )
    expect(page.locator("main p").first).to_have_text(
        f"Total value locked is {compact(sums['tvl']['tvl'])}: {compact(sums['lend']['principal'])} of deposits and "
        f"{compact(collateral['non_receipt']['balance'])} of collateral, each rounded. Another "
        f"{compact(collateral['receipt']['balance'])} of collateral is receipt tokens, which stand for deposits."
    )


def test_markets_fit_the_page_with_the_columns_of_lenders_or_of_borrowers_and_wide_ones_with_all(visit: Visit) -> None:
    page = visit.open(VIEWS["markets"])
    fits = "(table) => table.parentElement.scrollWidth <= table.parentElement.clientWidth"
    table, heads = page.get_by_role("table"), page.get_by_role("columnheader")
    expect(page.get_by_role("button", name="For lenders")).to_have_attribute("aria-pressed", "true")
    expect(heads.filter(has_text="Deposits")).to_have_attribute("aria-sort", "descending")
    expect(heads.filter(has_text="Lend APR")).to_be_visible()
    expect(heads.filter(has_text="Borrow APR")).to_have_count(0)
    assert table.evaluate(fits)
    page.get_by_role("button", name="For borrowers").click()
    expect(heads.filter(has_text="Debt")).to_have_attribute("aria-sort", "descending")
    assert table.evaluate(fits)
    visit.open(query(page.url))
    expect(heads.filter(has_text="Borrow APR")).to_be_visible()
    expect(heads.filter(has_text="Lend APR")).to_have_count(0)
    visit.open(VIEWS["markets"], size=DESK)
    expect(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    assert table.evaluate(fits)
    assert table.evaluate("(table) => table.offsetWidth") > 1800


def test_markets_are_those_of_the_end_of_a_range_that_is_over(visit: Visit) -> None:
    sums = visit.data(f"http://{visit.service.bind}/api/v1/markets/supply?tz=UTC&at={CLOSED['end']}")
    page = visit.open(VIEWS["markets"] | CLOSED | {"tz": "UTC"})
    said = page.locator("main p")
    expect(said.first).to_contain_text(f"As of {CLOSED['end'].replace('T', ' ')}")
    expect(said.nth(1)).to_contain_text(f"Total value locked is {compact(sums['tvl']['tvl'])}:")
    page.get_by_role("link", name="Show now").click()
    visit.wait(page)
    assert {"start", "end"}.isdisjoint(query(page.url))
    expect(said.first).to_contain_text("Total value locked")


@pytest.mark.slow
def test_the_documentation_has_an_address_to_look_at(visit: Visit) -> None:
    page = visit.open({"view": "address"})
    page.locator("main").get_by_role("link", name="API documentation").click()
    page.wait_for_url("**/docs#get_users_address_user")
    example = page.locator("section", has=page.locator("#get_users_address_user")).locator("pre").inner_text()
    [(host, address)] = re.findall(r"curl 'http://([^/]+)/api/v1/users/(\w+)/user\?", example)
    assert host == visit.service.bind
    visit.open({"view": "address", "address": address})
    expect(page.get_by_role("heading", name="Health", exact=True)).to_be_visible()


def test_the_contents_of_docs_are_folded_away_on_phones_only_and_have_no_barriers(visit: Visit) -> None:
    page = visit.browser.open(f"http://{visit.service.bind}/docs", PHONE)
    entry = page.get_by_role("navigation").get_by_role("link", name="/markets/supply")
    contents = page.get_by_text("Contents", exact=True)
    expect(entry).to_be_hidden()
    contents.click()
    entry.click()
    page.wait_for_url("**/docs#get_markets_supply")
    look(page, WIDE, "light")
    expect(contents).to_be_hidden()
    entry.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs#get_markets_supply")
    # axe takes long for hundreds of sections and links that are made alike: the first two under each heading stay.
    alike = "main > section:not(h2 + section, h2 + section + section), nav li:nth-child(n + 3)"
    page.locator(alike).evaluate_all("(elements) => elements.forEach((element) => element.remove())")
    assert page.locator("main > section").count() > 10
    look(page, PHONE, "dark")
    assert barriers(page) == []
    assert visit.browser.said == []


def test_the_table_of_markets_is_a_file_with_exact_values(visit: Visit) -> None:
    """Receipt tokens have the price that they are valued at as collateral, in both."""
    page = visit.browser.open("about:blank")
    with page.expect_response(re.compile("/markets/merged")) as answered:
        page.goto(visit.url(VIEWS["markets"]))
    visit.wait(page)
    values = {
        market["asset_info"]["asset"]["id"]: market["borrow_collateral"]["state"]["extra"]["value"]
        for market in answered.value.json()["data"]
        if market["asset_info"]["classification"]["kind"] == "protocol_receipt_token"
    }
    assert values
    with page.expect_download() as saving:
        page.get_by_role("link", name="CSV").click()
    head, *lines = saving.value.path().read_text().splitlines()
    assert head.startswith("asset_id,Symbol,Price,24 h,Deposits,Debt,")
    saved = dict(line.split(",")[::2][:2] for line in lines)
    priced = {asset["asset"]["id"] for asset in visit.data(f"http://{visit.service.bind}/api/v1/assets/prices")}
    # A snapshot may come in between.
    assert saved.keys() >= priced
    assert all(re.fullmatch(r"\d+(\.\d+)?", saved[asset]) for asset in priced)
    for asset, value in values.items():
        row = page.locator("tbody tr", has=page.locator(f'a[title="{asset}"]'))
        assert row.locator("td").first.inner_text() == value["extra"]["text"]["price"]
        assert saved[asset] == value["price"]
    expect(page.get_by_text("the redemption ratio.")).to_be_visible()


def test_a_slider_shows_what_could_be_liquidated_and_leads_to_the_accounts(visit: Visit) -> None:
    page = visit.open({"view": "risk", "of": "native;ahel"})
    ladder = source(page, 3)
    steps = {Decimal(step["change"]): step for step in visit.data(ladder)["steps"]}
    rows = page.get_by_role("table", name="Accounts that could be liquidated").locator("tbody tr")
    for percent in (-60, -95, 10):
        page.get_by_label("changes by").fill(str(percent))
        accounts = steps[Decimal(percent) / 100]["accounts"]
        told = page.locator("output").inner_text()
        assert (f"+{percent}%" if percent > 0 else f"{MINUS}{-percent}%") in told
        assert f": {accounts} account" in told
        assert re.search(r", at \$([\d,]+\.\d\d|0\.\d{4,}): .* with \$([\d,]+\.\d\d|[\d.]+[kM]) of debt", told)
        expect(rows).to_have_count(min(accounts, 10))
    page.get_by_label("changes by").fill("-95")
    # The chart marks the price, and tells the numbers at the cursor.
    drawn = page.locator("#chart-what-could-be-liquidated-at-other-prices")
    assert drawn.evaluate("(chart) => chart.layout.shapes.map(({x0}) => x0)") == [-0.95]
    drawn.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(drawn.locator(".tooltip")).to_contain_text(f"Change {MINUS}90.00%Price$")
    at = query(ladder)["at"]
    listed = visit.data(
        f"http://{visit.service.bind}/api/v1/analytics/market/borrowers?prices=HEL:-95%25&sort=health&at={at}&limit=10"
    )
    healths = [re.sub(r"(\.\d{3})\d*", r"\1", one["health"]) for one in listed]
    expect(rows.locator("td:nth-child(4)")).to_have_text(healths)
    falling = rows.filter(has_text=f"({MINUS}").first
    falls_at = falling.locator("td").nth(5).inner_text()
    account = str(falling.get_by_role("link").get_attribute("href"))
    # Meanwhile there may be newer prices.
    moment = datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    visit.open(query(account) | {"at": moment, "tz": "UTC"})
    assert page.get_by_role("columnheader", name="Liquidated at").first.is_visible()
    assert page.get_by_role("cell", name=falls_at).first.is_visible()


def test_a_change_of_a_price_is_typed_and_what_cannot_be_one_is_put_right(visit: Visit) -> None:
    page = visit.open({"view": "risk", "of": "native;ahel"})
    field, slider, told = (
        page.get_by_label("Change in percent"),
        page.get_by_label("changes by"),
        page.locator("output"),
    )
    for typed, change in (("-12.5", "-12.5"), ("", "-12.5"), ("500", "100"), ("-40", "-40")):
        field.fill(typed)
        field.press("Enter")
        expect(slider).to_have_value(change)
        expect(field).to_have_value(change)
        expect(field).to_be_focused()
        expect(told).to_contain_text(f"{change.replace('-', MINUS)}%, at $")
    [step] = [one for one in visit.data(source(page, 3))["steps"] if Decimal(one["change"]) == Decimal("-0.4")]
    expect(told).to_contain_text(f": {step['accounts']} account")
    slider.fill("-45")
    expect(field).to_have_value("-45")
    assert query(page.url)["change"] == "-45"
    assert visit.browser.said == []


def test_tokens_with_a_price_of_their_own_follow_an_asset_if_the_viewer_says_so(visit: Visit) -> None:
    page = visit.open({"view": "risk", "of": "native;ahel", "change": "-60"})
    told = page.locator("output")
    expect(page.get_by_text("including stHEL")).to_be_visible()
    with page.expect_response(re.compile("/risk/ladder.*following=native%3Basthel")) as answered:
        page.get_by_label("stHEL too").check()
    [step] = [one for one in answered.value.json()["data"]["steps"] if one["change"] == "-0.6"]
    expect(told).to_contain_text(f": {step['accounts']} account")
    rows = page.get_by_role("table", name="Accounts that could be liquidated").locator("tbody tr")
    expect(rows).to_have_count(min(step["accounts"], 10))
    [listed] = [url for url in visit.browser.asked if "sort=health" in url and "asthel" in url]
    healths = [re.sub(r"(\.\d{3})\d*", r"\1", one["health"]) for one in visit.data(listed)]
    expect(rows.locator("td:nth-child(4)")).to_have_text(healths)
    assert query(page.url)["follow"] == "1"
    # Nothing follows a dollar.
    page.get_by_label("Price of").select_option(ID_OF["USDT"])
    expect(page.get_by_role("checkbox")).to_have_count(0)


def test_every_figure_of_risk_leads_to_its_accounts(visit: Visit) -> None:
    page = visit.open({"view": "risk", "who": "1.5", "tz": "UTC"} | CLOSED)
    given = query(source(page))
    assert given["at"] == CLOSED["end"]
    risk = visit.data(source(page))
    rows = page.get_by_role("table", name="Borrow accounts").locator("tbody tr")
    [bar] = [one for one in risk["histogram"] if one["from"] == "1.5"]
    expect(page.get_by_role("combobox", name="Show", exact=True)).to_have_value("1.5")
    expect(rows).to_have_count(min(bar["accounts"], 10))
    assert all(1.5 <= float(health) < 2 for health in rows.locator("td:nth-child(4)").all_inner_texts())
    for name, part, below in (
        ("At risk", "at_risk", 1.1),
        ("Liquidatable", "liquidatable", 1),
        ("Bad debt", "bad_debt", 1),
    ):
        if count := risk[part]["accounts"]:
            page.locator(".tile", has_text=name).get_by_role("link").click()
            expect(rows).to_have_count(count if part == "bad_debt" else min(count, 10))
            assert all(float(health) < below for health in rows.locator("td:nth-child(4)").all_inner_texts())
    page.locator(".tile", has_text="Debt").first.get_by_role("link").click()
    expect(rows).to_have_count(10)
    page.get_by_role("button", name="More").first.click()
    expect(rows).to_have_count(20)
    api = f"http://{visit.service.bind}/api/v1/analytics/market/borrowers?sort=debt&limit=20&tz=UTC&at={given['at']}"
    shown = rows.get_by_role("link").evaluate_all("(links) => links.map(({title}) => title)")
    assert shown == [one["address"] for one in visit.data(api)]


@pytest.mark.slow
def test_a_ladder_that_failed_is_loaded_again_and_told_where_the_slider_is_by_then(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    pattern = re.compile("/risk/ladder")
    page.route(pattern, lambda route: failure(route, 503, "unavailable", "The store is away."))
    visit.open(VIEWS["risk"])
    panel = page.locator(".panel", has_text="What could be liquidated")
    expect(panel.get_by_role("alert")).to_have_text(AWAY)
    page.get_by_label("changes by").fill("-50")
    page.unroute(pattern)
    panel.get_by_role("button", name="Try again").click()
    expect(page.locator("output")).to_contain_text(f"{MINUS}50%, at $")
    assert not [said for said in visit.browser.said if "uncaught" in said]


def follower(visit: Visit) -> Page:
    """The page of a service that follows some addresses of another deployment."""
    error = {"kind": "entity_not_found", "scope": "user", "message": ONLY_SOME}
    page = visit.browser.open(visit.url({"view": "markets"}))
    page.route(
        re.compile(r"/market/(risk|borrowers)\b"), lambda route: route.fulfill(status=404, json={"error": error})
    )
    return page


def test_where_only_some_addresses_are_known_the_page_says_so_in_place_of_figures_of_all(visit: Visit) -> None:
    """As the service of a follower does. Histories of risk are there."""
    page = follower(visit)
    visit.open(VIEWS["risk"])
    expect(page.locator(".notice")).to_have_text([ONLY_SOME])
    expect(page.locator(".tile")).to_have_count(0)
    expect(page.locator(".panel h2")).to_have_text(["Debt at risk", "Accounts at risk"])
    assert page.locator(".main-svg").count() > 0


@pytest.mark.slow
def test_where_only_some_addresses_are_known_the_health_of_one_is_shown_without_prices(visit: Visit) -> None:
    page = follower(visit)
    visit.open(VIEWS["address"])
    expect(page.get_by_text(f"Liquidation prices are unknown. {ONLY_SOME}")).to_be_visible()
    expect(page.get_by_role("heading", name="Account 0")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Liquidated at")).to_have_count(0)


def test_an_address_is_found_and_shown_as_of_an_earlier_moment_with_older_transactions(visit: Visit) -> None:
    page = visit.open({"view": "address", "tz": "Asia/Tokyo"})
    page.route(re.compile("/tx-history"), thirty_transactions)
    page.get_by_label("Address", exact=True).fill(RICH)
    page.get_by_role("button", name="Show", exact=True).last.click()
    expect(page.get_by_role("heading", name="Account 0")).to_be_visible()
    user = visit.data(f"http://{visit.service.bind}/api/v1/users/{RICH}/user?with_text=true&with_value=true")
    [first, *_] = user["markets"]["borrow"]["accounts"]
    panel = page.locator(".panel", has_text="Account 0").last.inner_text()
    for part in first["collaterals"] + first["debts"]:
        assert part["asset_info"]["metadata"]["symbol"] in panel
    moment = datetime.now(ZoneInfo("Asia/Tokyo")).replace(microsecond=0, second=0)
    page.get_by_label("as of").fill(moment.strftime("%Y-%m-%dT%H:%M:%S"))
    with page.expect_request(lambda request: "/user?" in request.url and "at=" in request.url) as request:
        page.get_by_role("button", name="Show", exact=True).last.click()
    assert query(request.value.url)["at"].startswith(moment.strftime("%Y-%m-%dT%H:%M"))
    moment_and_zone = {"at": query(page.url)["at"], "tz": "Asia/Tokyo"}
    assert moment_and_zone.items() <= query(request.value.url).items()
    page.get_by_role("button", name="Older").click()
    rows = page.get_by_role("table", name="Transactions").locator("tbody tr")
    expect(rows.locator("code")).to_have_text([str(number) for number in range(1, 31)])
    expect(page.get_by_role("button", name="Older")).to_be_hidden()
    for url in [url for url in visit.browser.asked if "/tx-history?" in url][-2:]:
        assert moment_and_zone.items() <= query(url).items()


def test_an_address_shows_its_worth_at_a_moment_and_how_a_chosen_metric_has_changed(visit: Visit) -> None:
    """A tile that cannot be loaded says so beside all else."""
    page = visit.browser.open("about:blank")
    pattern = re.compile("metric=health")
    page.route(pattern, lambda route: failure(route, 503, "unavailable", "The store is away."))
    visit.open(VIEWS["address"] | {"at": CLOSED["end"], "tz": "UTC"})
    tiles = page.locator(".tile")
    expect(tiles.locator("h2")).to_have_text(
        ["Net worth", "Collateral", "Debt", "Deposits", "Least health", "Debt to collateral"]
    )
    moment = f"tz=UTC&period=y&start={CLOSED['end']}&end={CLOSED['end']}"
    [debt] = visit.data(f"http://{visit.service.bind}/api/v1/users/{RICH}/history?{moment}&metric=debt")["points"]
    assert float(tiles.nth(2).locator(".value").inner_text().strip("$k")) == pytest.approx(
        float(debt["v"]) / 1000, rel=0.01
    )
    shown = page.get_by_role("table", name="Health of the borrow accounts").locator("td:nth-child(2)").all_inner_texts()
    least = min((health for health in shown if health != "no debt"), key=float)
    tile = page.locator(".tile", has_text="Least health")
    expect(tile.get_by_role("alert")).to_have_text(AWAY)
    page.unroute(pattern)
    tile.get_by_role("button", name="Try again").click()
    expect(tile.locator(".value")).to_have_text(least)
    page.get_by_role("button", name="Least health").click()
    visit.wait(page)
    assert query(page.url)["metric"] == "health"
    chart = page.locator("#chart-worth-over-time")
    chart.focus()
    page.keyboard.press("End")
    expect(chart.locator(".tooltip")).to_contain_text(re.compile(r"Least health\d"))


def test_sections_of_an_address_are_linked_and_fold_and_its_hashes_are_copied(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    page.route(re.compile("/tx-history"), thirty_transactions)
    page.goto(f"{visit.url(VIEWS['address'])}#wallet")
    visit.wait(page)
    wallet = page.locator("#wallet")
    assert abs(wallet.evaluate("(section) => section.getBoundingClientRect().top")) < 30
    wallet.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(wallet.get_by_role("table")).to_be_hidden()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Wallet").click()
    expect(wallet.get_by_role("table")).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(page.get_by_title(RICH)).to_have_text(f"{RICH[:10]}\N{HORIZONTAL ELLIPSIS}{RICH[-6:]}")
    for name, whole in (("address", RICH), ("transaction", "1")):
        page.get_by_role("button", name=f"Copy {name}").first.click()
        expect(page.get_by_role("button", name="Copied")).to_have_count(1)
        assert page.evaluate("navigator.clipboard.readText()") == whole
        expect(page.get_by_role("button", name="Copied")).to_have_count(0)
    assert barriers(page) == []
    assert visit.browser.said == []


@pytest.mark.parametrize("view", ["markets", "risk", "address"])
def test_nothing_is_cut_at_any_width_and_rows_are_filled(visit: Visit, view: str) -> None:
    """What is wider than its place scrolls by itself."""
    page = visit.open(VIEWS[view], size=DESK)
    for width in (DESK[0], WIDE[0], 768, PHONE[0]):
        look(page, (width, 900), "light")
        # Charts follow a moment later.
        page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("main").evaluate(CUT) == []
        assert page.locator("main").evaluate(SHORT_ROWS) == []


@pytest.mark.slow
def test_a_receipt_of_a_receipt_token_is_liquidated_at_the_price_of_what_both_stand_for(visit: Visit) -> None:
    """The simulated protocol has none, so receipt tokens become such; they get a liquidation LTV of their own."""
    query = VIEWS["address"] | {"at": CLOSED["end"], "tz": "UTC"}
    page = visit.open(query)
    tables = page.get_by_role("table", name=re.compile("^Collateral of account"))
    receipts = tables.locator("tr", has_text=re.compile(r"^r[A-Z]")).locator("td:last-child")
    before = receipts.all_inner_texts()
    assert any("$" in price for price in before)

    def renamed(route: Route) -> None:
        answer = route.fetch()
        user = answer.json()
        for account in user["data"]["markets"]["borrow"]["accounts"]:
            for item in account["collaterals"]:
                if item["asset_info"]["classification"]["kind"] == "protocol_receipt_token":
                    item["asset_info"]["asset"]["id"] += "outer"
                    item["liquidation_ltv"] = "0.8125"
        route.fulfill(response=answer, json=user)

    def more(route: Route) -> None:
        answer = route.fetch()
        assets = answer.json()
        for inner in [*assets["data"]]:
            outer = {
                "asset": {"id": f"{inner['asset']['id']}outer"},
                "classification": {"origin_asset": inner["asset"]},
            }
            assets["data"].append(inner | outer)
        route.fulfill(response=answer, json=assets)

    page.route(re.compile("/user[?]"), renamed)
    page.route(re.compile("/assets[?]"), more)
    visit.open(query)
    expect(receipts).to_have_text(before)
    expect(tables.get_by_text("81.25%")).to_have_count(len(before))


def test_an_asset_begins_with_its_price_its_changes_its_supply_and_its_markets(visit: Visit) -> None:
    """All of one moment: the end of the range."""
    api = f"http://{visit.service.bind}/api/v1"
    moment = f"with_text=true&tz=UTC&at={CLOSED['end']}"
    page = visit.open(ASSET)
    prices = visit.data(f"{api}/assets/prices?changes=24h,7d,30d&{moment}")
    [quote] = [one["price"] for one in prices if one["asset"]["id"] == "native;ahel"]
    changes = ["\N{EN DASH}" if part is None else signed(part) for part in quote["changes"].values()]
    market = visit.data(f"{api}/markets/merged/lookup?with_value=true&symbol=HEL&{moment}")
    lent, posted = market["lend"]["state"]["extra"], market["borrow_collateral"]
    for name, texts in {
        "Price": [quote["extra"]["text"]["price"], *changes],
        "Deposits": [compact(lent["value"]["principal"]), lent["text"]["principal"]],
        "Collateral": [compact(posted["state"]["extra"]["value"]["balance"])],
        "LTV": [posted["config"]["extra"]["text"][name] for name in ("allowable_ltv", "liquidation_ltv")],
        "Lend APR": [market["lend"]["rate"]["extra"]["text"]["apr"]],
    }.items():
        tile = page.locator(".tile").filter(has=page.get_by_role("heading", name=name, exact=True)).inner_text()
        assert all(text in tile for text in texts), (tile, texts)
    # A receipt token has no quote, but the price that it is valued at.
    page.get_by_role("link", name="rHEL", exact=True).click()
    visit.wait(page)
    receipt = visit.data(f"{api}/markets/merged/lookup?with_value=true&symbol=rHEL&{moment}")
    price = receipt["borrow_collateral"]["state"]["extra"]["value"]["extra"]["text"]["price"]
    expect(page.locator(".tile .value").first).to_have_text(price)
    expect(page.locator(".tile .value").nth(1)).to_have_text(lent["text"]["receipt_total_supply"])
    expect(page.locator(".panel h2")).to_have_text(["Collateral"])


def test_an_asset_is_compared_with_another_from_where_both_have_a_price(visit: Visit) -> None:
    page = visit.open(ASSET)
    page.get_by_role("combobox", name="Compare with").select_option("ORB")
    visit.wait(page)
    assert query(page.url)["with"] == "native;uorb"
    hel, orb = visit.data(source(page))["series"]
    assert (hel["asset"], orb["asset"]) == ("native;ahel", "native;uorb")
    pairs = [(Decimal(one), Decimal(other)) for one, other in zip(hel["c"], orb["c"], strict=True) if one and other]
    assert numbers(page)[-1][1:] == [
        signed(str(last / first - 1)) for first, last in zip(pairs[0], pairs[-1], strict=True)
    ]


def test_all_of_the_past_begins_with_the_first_value(old: Visit) -> None:
    page = old.open({"view": "asset", "asset": "b", "range": "All", "tz": "UTC"})
    expect(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    for chart, (first, end) in enumerate(((PRICES_END - 30 * 86_400, PRICES_END), (RATES_END, RATES_END))):
        assert {"start": str(first), "end": str(end)}.items() <= query(source(page, chart)).items()


def test_without_an_address_borrowers_are_offered_and_transactions_are_filtered(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    with page.expect_response(re.compile("/borrowers")) as answered:
        page.goto(visit.url({"view": "address"}))
    visit.wait(page)
    [first, *_] = answered.value.json()["data"]
    link = page.get_by_role("table", name="Largest borrowers").get_by_role("link").first
    borrower = query(str(link.get_attribute("href")))
    assert borrower["address"] == first["address"]
    visit.open(borrower | {"action": "return"})
    expect(page.get_by_role("combobox", name="Action")).to_have_value("return")
    with page.expect_request(re.compile("/tx-history")) as asked:
        page.get_by_role("combobox", name="Action").select_option("Borrow")
    assert query(asked.value.url)["action"] == query(page.url)["action"] == "borrow"
    expect(page.locator(".panel", has_text="Transactions").last).to_contain_text(
        re.compile("Borrow|There are no such transactions.")
    )


@pytest.mark.parametrize("view", [pytest.param("overview", marks=pytest.mark.slow), "risk"])
def test_the_newest_transactions_of_all_are_chosen_and_lead_to_addresses_and_assets(visit: Visit, view: str) -> None:
    page = visit.browser.open("about:blank")
    page.route(re.compile("/market/events"), thirty_transactions)
    visit.open({"view": view, "tz": "UTC"} | CLOSED)
    rows = page.get_by_role("table", name="Latest").locator("tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.first.get_by_role("link", name="1 AHEL")).to_have_attribute("href", re.compile("asset=native%3Bahel"))
    page.get_by_role("button", name="Older").click()
    expect(rows).to_have_count(20)
    with page.expect_request(re.compile("/market/events")) as asked:
        page.get_by_role("combobox", name="Asset").select_option("HEL")
    chosen = {"asset_ids": "native;ahel"} | ({"action": "liquidate"} if view == "risk" else {})
    assert chosen.items() <= query(asked.value.url).items()
    account = rows.first.get_by_role("link", name=re.compile("^ptcl1")).get_attribute("href")
    assert query(str(account))["address"] == RICH
    status, body = visit.service.get("/api/v1/analytics/market/events?limit=10&with_text=true&asset_ids=native;ahel")
    assert status == 200, body


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param({}, "No asset is chosen.", marks=pytest.mark.slow),
        ({"asset": "native;none"}, "There is no asset native;none."),
    ],
)
def test_an_unknown_asset_is_an_error_beside_a_link_to_all_markets(
    visit: Visit, query: dict[str, str], message: str
) -> None:
    page = visit.browser.open(visit.url({"view": "asset"} | query))
    expect(page.get_by_role("alert")).to_have_text(message)
    page.get_by_role("link", name="All markets").click()
    expect(page.get_by_role("table")).to_be_visible()


def test_colours_and_zone_follow_the_address_then_what_was_chosen_before(visit: Visit) -> None:
    """The button offers the other colours."""
    page = visit.open(VIEWS["markets"], color_scheme="dark")
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    page = visit.open(VIEWS["markets"] | {"theme": "light", "tz": "UTC"}, color_scheme="dark")
    entries = page.evaluate("history.length")
    page.get_by_role("button", name="Dark colours").click()
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    assert "theme" not in query(page.url)
    assert page.evaluate("history.length") == entries
    page.get_by_label("Zone").select_option("Asia/Tokyo")
    page = visit.open(VIEWS["asset"] | CLOSED, color_scheme="light")
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    assert query(source(page))["tz"] == "Asia/Tokyo"


def failure(route: Route, status: int, kind: str, message: str) -> None:
    """Answer a request with an error of the API."""
    error = {"kind": kind, "scope": "server", "message": message}
    body = {"data": None, "error": error, "status": status, "status_text": ""}
    route.fulfill(status=status, body=json.dumps(body), content_type="application/json")


def compact(usd: str | Decimal) -> str:
    """USD as the page writes amounts from ten thousand on."""
    value = Decimal(usd)
    unit, name = (1_000_000, "M") if value >= 999_995 else (1_000, "k")
    return f"${(value / unit).quantize(Decimal('0.01'), ROUND_HALF_UP)}{name}" if value >= 10_000 else f"${value:,.2f}"


def signed(fraction: str) -> str:
    """A change as the page writes it: one that rounds to zero has no sign."""
    digits = f"{abs(100 * Decimal(fraction)).quantize(Decimal('0.01'), ROUND_HALF_UP)}%"
    return f"{'' if digits == '0.00%' else MINUS if Decimal(fraction) < 0 else '+'}{digits}"


def doubled_at_the_end(route: Route) -> None:
    """A history whose last bucket ends later than the range, and with another value."""
    answer = route.fetch()
    history = answer.json()
    values = history["data"]["series"][0]["c"]
    values[-1] = str(2 * Decimal(values[-1]))
    route.fulfill(response=answer, json=history)


def thirty_transactions(route: Route) -> None:
    """Answer a request for transactions: a service with two hours of history has none."""
    asked = query(route.request.url)
    previous = int(asked.get("prev_event_uuid", 0))
    text = {"action": "Borrow", "amount": "1 AHEL", "historic_value": "$1"}
    common = {"event_time": NOW.isoformat(), "account_address": RICH, "account_index": 0, "extra": {"text": text}}
    common |= {"asset": {"asset": {"id": "native;ahel"}}, "amount": "1"}
    numbers = range(previous + 1, min(previous + int(asked["limit"]), 30) + 1)
    route.fulfill(json={"data": [common | {"event_uuid": str(number), "tx_hash": str(number)} for number in numbers]})


def with_keys(route: Route) -> str:
    """The page as a service with API keys has it."""
    return route.fetch().text().replace('data-keys="false"', 'data-keys="true"')


def query(url: str) -> dict[str, str]:
    """The query of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


class Watched:
    """Views in a tab whose clock the test moves on, and whether the present one has been drawn again."""

    def __init__(self, visit: Visit) -> None:
        self.page = visit.browser.new_tab()
        self._pending = 0
        for event, change in (("request", 1), ("requestfinished", -1), ("requestfailed", -1)):
            self.page.on(event, partial(self._count, change))
        self.page.clock.install()
        self._visit = visit

    def show(self, query: dict[str, str]) -> None:
        """Open a view."""
        self.page.goto(self._visit.url(query))
        self._visit.wait(self.page)
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

    def add_snapshot(self) -> None:
        code, output = self._visit.service.done("jobs", "once", "prices")
        assert code == 0, output


def test_a_view_that_ends_now_is_drawn_again_while_nobody_uses_or_reads_it(visit: Visit) -> None:
    watched = Watched(visit)
    watched.show(VIEWS["asset"])
    page = watched.page
    page.mouse.move(300, 300)
    watched.add_snapshot()
    watched.let_pass(20)
    assert watched.is_marked(), "it was drawn again under the eyes of someone who uses it"
    until(watched.is_drawn_again)
    visit.wait(page)
    assert page.locator("main h1").count() == 1
    assert page.locator("main .next").count() == 0
    assert visit.browser.said == []
    watched.mark()
    page.locator(".panel summary").first.click()
    page.evaluate("document.activeElement.blur()")
    watched.add_snapshot()
    assert not any(watched.is_drawn_again() for _ in range(2)), "it was drawn again although someone has opened a part"


def test_a_hidden_tab_asks_for_nothing_until_it_is_seen_again(visit: Visit) -> None:
    watched = Watched(visit)
    page = watched.page
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => globalThis.isAway ?? false })")
    watched.show(VIEWS["markets"])
    page.evaluate("globalThis.isAway = true")
    asked = len(visit.browser.asked)
    watched.let_pass(40)
    assert len(visit.browser.asked) == asked
    with page.expect_request(re.compile("/status/health")):
        page.evaluate("() => { globalThis.isAway = false; document.dispatchEvent(new Event('visibilitychange')); }")


@pytest.mark.slow
def test_what_is_over_is_not_drawn_again(visit: Visit) -> None:
    watched = Watched(visit)
    watched.show(ASSET)
    watched.add_snapshot()
    assert not any(watched.is_drawn_again() for _ in range(2))
