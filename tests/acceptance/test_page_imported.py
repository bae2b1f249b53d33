"""The page at / over imported history without a source, whose data ended long ago, and which has many assets."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser import Browser, barriers
from tests.acceptance.conftest import Service, kill, stop
from tests.acceptance.visit import DASH, MINUS, VIEWS, Visit, edit, numbers, query, source
from tests.processes import until

DAY = 86_400
# When prices and deposits end, and how many days before each price is. Nobody quotes C in the last week.
PRICES_END = int(datetime(2023, 11, 14, 12, 30, tzinfo=UTC).timestamp())
PRICES = {"A": {30: 1, 1: 4, 0: 5}, "B": {30: 100, 1: 20, 0: 10}, "C": {30: 10, 10: 30}}
# Of each of many others: its price, once a week, rises by a fiftieth of a percent a day times its number.
MANY, DAYS = 60, 43
DEPOSITS = [Decimal((number * 7_919) % 10_007 + 1) for number in range(MANY)]
# Rates end three months later; another asset of theirs has the symbol of A, and C cannot be borrowed.
RATES_END = int(datetime(2024, 2, 20, 6, tzinfo=UTC).timestamp())
RATES = {"lend": {"0xb": "0.01", "0xc": "0.03", "0xd": "0.02"}, "borrow": {"0xb": "0.02", "0xd": "0.04"}}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service that has imported prices, rates, deposits and total values locked, and has no source."""
    folder = tmp_path_factory.mktemp("imported")
    running = Service(folder / "data", source=None)

    def file(name: str, *lines: str) -> str:
        (folder / name).write_text("\n".join([*lines, ""]))
        return str(folder / name)

    head, described = "asset,time,value", "symbol,address,decimals"
    few = [f"{name},{PRICES_END - day * DAY},{usd}" for name, days in PRICES.items() for day, usd in days.items()]
    many = [
        f"S{number},{PRICES_END - day * DAY},{1 + (DAYS - day) * number / 5_000}"
        for number in range(MANY)
        for day in range(0, DAYS, 7)
    ]
    lent = [f"S{number},{PRICES_END - day * DAY},{usd + day}" for number, usd in enumerate(DEPOSITS) for day in (0, 1)]
    ids = [f"S{number},{number + 4096:#042x},6" for number in range(MANY)]
    assets = file("assets.csv", described, "A,0xa,6", "B,0xb,6", "C,0xc,6", *ids)
    others = file("others.csv", described, "B,0xb,6", "C,0xc,6", "A,0xd,6")
    rates = {
        side: file(side, head, *(f"{key},{RATES_END},{apr}" for key, apr in of.items())) for side, of in RATES.items()
    }
    try:
        process = running.serve()
        until(lambda: running.get("/healthz")[0] == 200)
        running.bring("price", file("prices.csv", head, *few, *many), "--assets", assets)
        running.bring("deposits", file("deposits.csv", head, *lent))
        for side, rows in rates.items():
            running.bring(f"{side}-rate", rows, "--assets", others)
        running.bring("tvl", file("tvl.csv", "time,value", "2024-01-01,1000000", "2024-01-31,1500000.5"))
        # The worker looks once a second.
        until(lambda: running.get("/api/v1/markets/history/tvl?start=2024-01-01&end=2024-02-01&period=d")[0] == 200)
        yield running
        stop(process)
    finally:
        kill(running)


@pytest.fixture
def visit(browser: Browser, imported: Service) -> Visit:
    return Visit(browser, imported)


def test_an_overview_without_markets_tells_what_there_is_up_to_where_each_history_ends(visit: Visit) -> None:
    """Of many assets, the largest are charted, and all others as one."""
    page = visit.open({"range": "30d", "tz": "UTC"})
    expect(page.locator(".tile")).to_have_text(
        [
            f"Prices{MANY + 3} assets2023-10-03 to 2023-11-14",
            "Lend rates3 assets2024-02-20",
            "Borrow rates2 assets2024-02-20",
        ]
    )
    # Prices at the end of the range, and how much they differ from those with which it begins.
    tables = {
        "Largest price moves Data ends 2023-11-14": [
            "A\t$5.00\t+400.00%",
            "C\t$30.00, 10 d older than others\t+200.00%",
            f"B\t$10.00\t{MINUS}90.00%",
        ],
        "Highest lend APRs Data ends 2024-02-20": ["C\t3.00%", "A\t2.00%", "B\t1.00%"],
        "Highest borrow APRs Data ends 2024-02-20": ["A\t4.00%", "B\t2.00%"],
    }
    for title, rows in tables.items():
        panel = page.locator(".panel", has=page.get_by_role("heading", name=title))
        assert panel.locator("tbody").inner_text().split("\n")[:3] == rows
    assert query(source(page))["end"] == str(PRICES_END)
    charts = page.locator(".panel:has(.chart)")
    moved = ["A", "C", "B", *(f"S{number}" for number in range(MANY - 1, 0, -1))][:12]
    expect(charts.first.locator("tbody").last.get_by_role("link")).to_have_text(moved)
    # When they end, which are the largest then, and the history of these.
    assert len([url for url in visit.browser.asked if "/history/deposits" in url]) == 3
    # Sums are charted, although values alone are no snapshot, of which the status tells.
    panel = page.locator(".panel").last
    expect(panel.locator("h2")).to_have_text("Total value locked Data ends 2024-01-31")
    assert query(source(page, 4))["end"] == str(int(datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()))
    assert numbers(page, 4)[-1][-1] == "1500000.5"
    # Between the two days nothing was observed.
    assert panel.locator(".lines path[style*=dasharray]").count() > 0
    expect(panel.locator(".legend .mark")).to_have_text("no new observation")
    # axe takes long for the numbers of many assets, so they are opened later.
    assert barriers(page) == []
    largest = sorted(range(MANY), key=lambda number: -DEPOSITS[number])[:12]
    rest = sum(DEPOSITS) - sum(DEPOSITS[number] for number in largest)
    shown = [row[1:-1] for row in numbers(page, 3)]
    heads = ["From", *(f"S{number}" for number in largest), "Others", "All"]
    expect(charts.nth(3).locator("thead th")).to_have_text(heads)
    newest = next(row for row in reversed(shown) if row[0] != DASH)
    assert newest == [str(value) for value in (*(DEPOSITS[number] for number in largest), rest)]
    page.get_by_role("table", name="Highest lend APRs").get_by_role("link", name="C", exact=True).click()
    expect(page.locator("h1")).to_contain_text("C")
    expect(page).to_have_title("C · Lending market data")
    assert query(page.url)["asset"] == "C"
    assert visit.browser.said == []


def test_many_markets_are_shown_a_page_at_a_time_and_searched_as_a_whole(visit: Visit) -> None:
    page = visit.open(VIEWS["markets"])
    rows, many = page.locator("tbody tr"), MANY + 4
    expect(rows).to_have_count(50)
    expect(page.get_by_text(f"50 of {many} of {many} assets")).to_be_visible()
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(many)
    page.get_by_label("Search").fill(f"s{MANY - 1}")
    expect(rows).to_have_count(1)
    expect(rows.locator("svg")).to_have_count(1)
    expect(page.get_by_role("button", name="More")).to_be_hidden()
    assert visit.browser.said == []


def test_each_chart_of_an_asset_covers_its_own_data_and_a_custom_range_what_it_says(visit: Visit) -> None:
    asset = {"view": "asset", "asset": "b", "tz": "UTC"}
    page = visit.open(asset | {"range": "90d"})
    headings = page.locator(".panel h2")
    expect(headings).to_have_text(["Price Data ends 2023-11-14", "Lend and borrow APR Data ends 2024-02-20"])
    # The newest price is one of them.
    lowest_and_highest = f"$10.00 {DASH} $20.00 24 h$10.00 {DASH} $100.00 52 weeks"
    expect(page.locator(".tile").nth(1)).to_contain_text(lowest_and_highest)
    for chart, end in enumerate((PRICES_END, RATES_END)):
        assert {"start": str(end - 90 * DAY), "end": str(end)}.items() <= query(source(page, chart)).items()
    page.get_by_role("button", name="All", exact=True).click()
    visit.wait(page)
    expect(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    for chart, (first, end) in enumerate(((PRICES_END - 30 * DAY, PRICES_END), (RATES_END, RATES_END))):
        assert {"start": str(first), "end": str(end)}.items() <= query(source(page, chart)).items()
    visit.go(page, asset | {"start": "2023-10-01", "end": "2023-11-01"})
    expect(headings).to_have_text(["Price", "Lend and borrow APR"])
    # A price that is older than others has no changes.
    visit.go(page, asset | {"asset": "c"})
    tile = page.locator(".tile").first
    expect(tile).to_contain_text("no data since 2023-11-04 12:30, 10 d before the newest prices")
    expect(tile.locator(".changes > span > span:first-child")).to_have_text(3 * [DASH])


def test_what_is_left_of_a_day_of_25_hours_joins_the_candle_before_it(visit: Visit) -> None:
    page = visit.browser.open("about:blank")

    def number(history: Any) -> None:
        count = len(history["t"])
        columns = {key: [str(place) for place in range(count)] for key in "ohlc"} | {"n": [1] * count}
        history["series"] = [{"asset": "token;0xb", "symbol": "B"} | columns]

    edit(page, "/assets/price-history.*period=auto", number)
    # Clocks go back on the 29th.
    days = {"start": "2023-10-28", "end": "2023-10-30", "tz": "Europe/Berlin"}
    visit.open({"view": "asset", "asset": "b", "candles": "1"} | days)
    [*begins, last] = visit.data(source(page))["t"]
    [place] = [place for place, after in enumerate([*begins[1:], last]) if after - begins[place] == 3600]
    zone = ZoneInfo(days["tz"])
    kept = [t for t in (*begins, last) if t != begins[place]]
    rows = numbers(page)
    assert [row[0] for row in rows] == [f"{datetime.fromtimestamp(t, zone):%Y-%m-%d %H:%M:%S}" for t in kept]
    assert rows[place - 1][1:] == [*map(str, (place - 1, place, place - 1, place)), "2"]


def test_an_asset_is_chosen_by_symbol_and_by_id_where_two_have_it(visit: Visit) -> None:
    page = visit.open({})
    field = page.get_by_label("Asset (symbol or id)")
    field.fill("B")
    field.press("Enter")
    expect(page.locator("h1")).to_have_text("B")
    assert query(page.url).items() >= {"view": "asset", "asset": "B"}.items()
    field.fill("a")
    page.get_by_role("button", name="Show", exact=True).last.click()
    expect(page.locator("main .notice")).to_have_text("2 assets have the symbol a. Choose one by its id.")
    field.focus()
    offered = page.locator("datalist option").evaluate_all("(options) => options.map((option) => option.value)")
    assert {"token;0xa", "B", "C", "token;0xd"} < {*offered}
    assert "A" not in offered
    page.get_by_role("link", name="token;0xd").click()
    expect(page.locator("main code").first).to_have_text("token;0xd")
    field.fill("none")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("There is no asset none.")
    page.get_by_role("link", name="All markets").click()
    expect(page.get_by_role("table")).to_be_visible()
    assert visit.browser.said == []
