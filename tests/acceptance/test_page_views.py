"""The page at / in a browser: what each of its views shows of the running service, against the API."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, expect

from analytics_service.sources.simulated.universe import ID_OF
from tests.acceptance.browser import PHONE, WIDE, Browser, barriers, look
from tests.acceptance.conftest import Service
from tests.acceptance.visit import (
    ASSET,
    AWAY,
    CLOSED,
    DASH,
    MINUS,
    RICH,
    STAKED,
    VIEWS,
    Visit,
    answer_with,
    away,
    compact,
    edit,
    failure,
    numbers,
    query,
    signed,
    source,
    thirty_transactions,
    three_decimals,
)

ONLY_SOME = "This service knows the positions of some addresses only."
HEL = "native;ahel"


@pytest.fixture
def visit(browser: Browser, service: Service) -> Visit:
    return Visit(browser, service)


def test_an_overview_compares_the_ends_of_the_range_or_whole_days_whatever_the_width_of_the_page(
    visit: Visit,
) -> None:
    history = visit.data("/markets/history/tvl?start=now-3h&end=now&period=min&fill=none&limit=200&format=columns")
    values = [(t, Decimal(v)) for t, v in zip(history["t"], history["series"][0]["v"], strict=True) if v is not None]
    # Snapshots are of whole minutes, so these are the values at both ends.
    (start, before), (end, after) = values[0], values[-2]
    change = signed(after / before - 1)
    value = compact(visit.data(f"/markets?at={end}")["tvl"]["tvl"])
    began = datetime.fromtimestamp(start, UTC)
    times = {name: datetime.fromtimestamp(at, UTC).isoformat()[:19] for name, at in (("start", start), ("end", end))}

    def double_the_end(history: Any) -> None:
        """The last bucket ends later than the range, and with another value."""
        column = history["series"][0]["c"]
        column[-1] = str(2 * Decimal(column[-1]))

    # The last day has only begun. The range begins before the data.
    page = visit.browser.open("about:blank")
    answer_with(page, "/history/liquidations", {"series": [{"v": ["0", "10", "30", "31"]}]})
    # Tiles come before charts, which are not waited for.
    page.goto(visit.url({"range": "All", "tz": "UTC"}))
    expect(page.locator(".tile").last).to_contain_text("$20.00day before: $10.00")
    since = f"since {began:%H:%M}" if began.date() == datetime.now(UTC).date() else f"since {began:%Y-%m-%d %H:%M}"
    expect(page.locator(".tile", has_text=since)).to_have_count(5)
    # In fewer and wider buckets, with gaps, and symbols that look like markup.
    symbols = ["A<b>B</b><sub>C</sub>", '<a href="https://evil.example">D</a>', "E&lt;F &amp; %{x}"]

    def make_gaps(history: Any) -> None:
        count = len(history["t"])
        for series in history["series"]:
            series["v"] = [None if place in (0, 1, count // 2) else "1" for place in range(count)]

    def rename(history: Any) -> None:
        del history["series"][len(symbols) :]
        for series, symbol in zip(history["series"], symbols, strict=True):
            series["symbol"] = symbol

    edit(page, "/history/tvl.*period=auto", double_the_end)
    edit(page, "/markets/history/deposits.*period=auto", make_gaps)
    edit(page, "/markets/history/collateral.*period=auto", rename)
    visit.open(times | {"tz": "UTC"}, size=PHONE)
    expect(page.locator(".tile").first).to_contain_text(f"{value}{change} over the range")
    expect(page.locator("h1 + p")).to_contain_text(
        f"As of {times['end'].replace('T', ' ')}, the end of the chosen range."
    )
    # Utilization is a percentage itself.
    expect(page.locator(".tile", has_text="Utilization")).to_contain_text(re.compile(r"\d pp over the range"))
    # Liquidations are of now, and the other numbers are not.
    expect(page.locator(".tile", has_text="Liquidations")).to_have_count(0)
    # An asset has one colour in all charts.
    ids = [f"#chart-{name}-by-asset" for name in ("deposits", "debt")]
    # A last bucket that has not ended has a mark of its own.
    marks = [page.locator(f"{one} ~ .below .mark").all_inner_texts() for one in ids]
    assert ["Gap: no data" in those for those in marks] == [True, False]
    charts = [page.locator(one).evaluate("(chart) => chart.data") for one in ids]
    first, buckets = charts[0][0]["name"], len(visit.data(source(page, 1))["t"])
    middle = buckets // 2
    assert [len(part["x"]) for part in charts[0] if part["name"] == first] == [middle - 2, buckets - middle - 1]
    colors = [{trace["name"]: trace["fillcolor"] for trace in traces} for traces in charts]
    both = colors[0].keys() & colors[1].keys() - {"Others"}
    assert len(both) > 2
    assert all(colors[0][name] == colors[1][name] for name in both)
    assert len({*colors[0].values()}) == len(colors[0])
    panel = page.locator(".panel", has_text="Collateral by asset")
    assert sorted(panel.locator(".legend button").all_text_contents()) == sorted(symbols)
    assert panel.locator(".main-svg").locator("a, [style*=bold], [baseline-shift]").count() == 0
    assert visit.browser.said == []


def test_an_asset_begins_with_its_numbers_at_the_end_of_the_range_and_its_chart_is_that_of_the_api(
    visit: Visit,
) -> None:
    moment = f"with_text=true&tz=UTC&at={CLOSED['end']}"
    page = visit.open(ASSET)
    prices = visit.data(f"/assets/prices?changes=24h,7d,30d&{moment}")
    [quote] = [one["price"] for one in prices if one["asset"]["id"] == HEL]
    changes = [DASH if part is None else signed(part) for part in quote["changes"].values()]
    market = visit.data(f"/markets/merged/lookup?with_value=true&symbol=HEL&{moment}")
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
    # The table under the chart, whole rows of which can be copied.
    [series] = (data := visit.data(source(page)))["series"]
    times = [datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S") for t in data["t"]]
    columns = [series["o"], series["h"], series["l"], series["c"], [str(n) for n in series["n"]]]
    assert any(series["c"])
    shown = [[DASH if value is None else value for value in row] for row in zip(times, *columns, strict=True)]
    assert numbers(page) == shown
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    assert "\t".join(shown[-1]) in page.evaluate("navigator.clipboard.readText()")
    # Candles lie in the middle of their buckets.
    middle = datetime.fromtimestamp((data["t"][0] + data["t"][1]) / 2, UTC)
    panel = page.locator(".panel:has(.chart)").first
    assert panel.locator(".chart").evaluate("(chart) => chart.data[0].x[0]") == f"{middle:%Y-%m-%d %H:%M:%S}"
    parquet = str(panel.get_by_role("link", name="Parquet").get_attribute("href"))
    assert {**query(source(page)), "format": "parquet"} == query(parquet)
    expected = {
        "curl": f'curl "{source(page)}"',
        "pandas": f'import pandas as pd\n\ndf = pd.read_parquet("{parquet}")',
        "Polars": f'import polars as pl\n\ndf = pl.read_parquet("{parquet}")',
    }
    for name, code in expected.items():
        panel.get_by_role("button", name=f"Copy as {name}").click()
        expect(panel.get_by_role("button", name=f"Copy as {name}")).to_have_count(0)
        assert page.evaluate("navigator.clipboard.readText()") == code
    # A receipt token has no quote, but the price that it is valued at.
    page.get_by_role("link", name="rHEL", exact=True).click()
    visit.wait(page)
    receipt = visit.data(f"/markets/merged/lookup?with_value=true&symbol=rHEL&{moment}")
    price = receipt["borrow_collateral"]["state"]["extra"]["value"]["extra"]["text"]["price"]
    expect(page.locator(".tile .value").first).to_have_text(price)
    expect(page.locator(".tile .value").nth(1)).to_have_text(lent["text"]["receipt_total_supply"])
    expect(page.locator(".panel h2")).to_have_text(["Collateral"])
    # Compared with another asset from where both have a price.
    visit.go(page, STAKED | CLOSED | {"tz": "UTC"})
    page.get_by_role("combobox", name="Compare with").select_option("ORB")
    visit.wait(page)
    assert query(page.url)["with"] == "native;uorb"
    staked, orb = visit.data(source(page))["series"]
    assert (staked["asset"], orb["asset"]) == (ID_OF["stHEL"], "native;uorb")
    pairs = [(Decimal(one), Decimal(other)) for one, other in zip(staked["c"], orb["c"], strict=True) if one and other]
    assert numbers(page)[-1][1:] == [signed(last / first - 1) for first, last in zip(pairs[0], pairs[-1], strict=True)]


def test_prices_of_three_days_ago_are_late_and_compared_with_those_of_the_day_before(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    newest = datetime(2026, 11, 1, tzinfo=UTC)
    names = ("dataset", "age_seconds", "fresh", "interval_seconds")
    ages = [("prices", 259_200, False, 60), ("config", 169_200, True, 86_400), ("routes", 86_400, True, None)]
    snapshots = [dict(zip(names, one, strict=True)) | {"newest": newest.isoformat()} for one in ages]
    lost = {"asset_id": "native;chel", "age_seconds": 7_200}
    health = {"simulated": True, "snapshots": snapshots, "store": {"reachable": True}, "lost_prices": [lost]}
    # Four assets of one symbol; nobody has quoted the last one for three days more.
    ids = [f"native;{name}" for name in ("ahel", "bhel", "chel", "dhel")]
    quoted = [
        {
            "asset": {"id": asset_id},
            "metadata": {"symbol": "AHEL"},
            "price": {"price": "3", "last_updated_at": (newest - behind).isoformat(), "changes": {"24h": change}},
        }
        for asset_id, change, behind in zip(
            ids, ("0.5", "-0.000033", "2", "0"), [timedelta()] * 3 + [timedelta(days=3)], strict=True
        )
    ]
    week = {"t": [0, 1, 2], "series": [{"asset": asset_id, "v": ["1", "2", "3"]} for asset_id in ids]}
    for path, data in (("/status/health", health), ("/assets/prices", quoted), ("/assets/price-history", week)):
        answer_with(page, path, data)
    visit.open(VIEWS["markets"] | {"tz": "UTC"})
    expect(page.locator("tbody td:nth-child(2)")).to_have_text(
        ["$3.00", "$3.00", "$3.00, 2 h old", "$3.00, 3 d older than others"]
    )
    shown = page.locator("tbody td:nth-child(3) span")
    expect(shown).to_have_text(["+50.00%", "0.00%", DASH, DASH])
    expect(shown).to_have_class(["good", "soft", "soft", "soft"])
    expect(page.locator("tbody th")).to_have_text([f"AHEL {asset_id}" for asset_id in ids])
    # Without snapshots of markets, what is shown may be of any time.
    expect(page.locator("main")).to_contain_text("As of 2026-11-01 00:00 (prices).")
    page.get_by_text("Updated 24 h ago").click()
    expect(page.get_by_role("list", name="Age of the data")).to_be_visible()
    expect(page.locator(".chip")).to_have_text(
        ["prices 3 d, late", "market settings 47 h, fresh", "swap routes 24 h, not scheduled"]
    )


def test_markets_are_searched_sorted_fit_the_page_and_are_kept_in_the_address(visit: Visit) -> None:
    page = visit.open(VIEWS["markets"])
    fits = "(table) => table.parentElement.scrollWidth <= table.parentElement.clientWidth"
    table, heads, rows = page.get_by_role("table"), page.get_by_role("columnheader"), page.locator("tbody tr")
    # There is nothing that a range would change.
    expect(page.get_by_role("button", name="30 d")).to_be_hidden()
    expect(page.get_by_role("button", name="For lenders")).to_have_attribute("aria-pressed", "true")
    expect(heads.filter(has_text="Deposits")).to_have_attribute("aria-sort", "descending")
    expect(heads.filter(has_text="Lend APR")).to_be_visible()
    expect(heads.filter(has_text="Borrow APR")).to_have_count(0)
    assert table.evaluate(fits)
    page.get_by_role("button", name="For borrowers").click()
    expect(heads.filter(has_text="Debt")).to_have_attribute("aria-sort", "descending")
    expect(heads.filter(has_text="Lend APR")).to_have_count(0)
    assert table.evaluate(fits)
    wide = (1920, 1080)
    visit.open(VIEWS["markets"], size=wide)
    expect(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    assert table.evaluate(fits)
    assert table.evaluate("(table) => table.offsetWidth") > 1800
    for order in ("descending", "ascending"):
        page.get_by_role("button", name="Price").click()
        expect(page.get_by_role("columnheader", name="Price")).to_have_attribute("aria-sort", order)
    expect(page.locator("th[aria-sort$=ending]")).to_have_count(1)
    page.get_by_role("button", name="Debt").click()
    expect(page.get_by_role("columnheader", name="Debt")).to_have_attribute("aria-sort", "descending")
    debts = {
        market["asset_info"]["metadata"]["symbol"]: float(market["borrow_debt"]["state"]["extra"]["value"]["balance"])
        for market in visit.data("/markets/merged?with_value=true")
        if market["borrow_debt"]
    }
    assert rows.locator("th").all_inner_texts()[: len(debts)] == sorted(debts, key=lambda symbol: -debts[symbol])
    page.get_by_label("Search").fill("hus")
    expect(rows).to_have_count(1)
    visit.open(query(page.url), size=wide)
    expect(rows).to_have_count(1)
    expect(page.get_by_role("columnheader", name="Debt")).to_have_attribute("aria-sort", "descending")
    # As of the end of a range that is over.
    sums = visit.data(f"/markets/supply?tz=UTC&at={CLOSED['end']}")
    visit.open(VIEWS["markets"] | CLOSED | {"tz": "UTC"})
    said = page.locator("main p")
    expect(said.first).to_contain_text(f"As of {CLOSED['end'].replace('T', ' ')}")
    expect(said.nth(1)).to_contain_text(f"Total value locked is {compact(sums['tvl']['tvl'])}:")
    page.get_by_role("link", name="Show now").click()
    visit.wait(page)
    assert {"start", "end"}.isdisjoint(query(page.url))
    expect(said.first).to_contain_text("Total value locked")


def test_markets_show_where_all_value_is_and_are_a_file_with_exact_values(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    with (
        page.expect_response(re.compile("/markets/merged")) as merged,
        page.expect_response(re.compile("/markets/supply")) as summed,
    ):
        page.goto(visit.url(VIEWS["markets"] | {"columns": "all"}))
    visit.wait(page)
    titles = page.get_by_role("columnheader").all_inner_texts()

    def cells(row: Locator) -> Iterable[tuple[str, str]]:
        texts = (text.strip() for text in row.locator("th, td").all_inner_texts())
        return dict(zip(titles, texts, strict=True)).items()

    markets = merged.value.json()["data"]
    [market] = [one for one in markets if one["asset_info"]["metadata"]["symbol"] == "HEL"]
    lent = market["lend"]["state"]["extra"]["value"]["principal"]
    owed = market["borrow_debt"]["state"]["extra"]["value"]["balance"]
    posted = market["borrow_collateral"]
    assert {
        "Available": compact(Decimal(lent) - Decimal(owed)),
        "Collateral": compact(posted["state"]["extra"]["value"]["balance"]),
        "Liquidation LTV": f"{100 * Decimal(posted['config']['liquidation_ltv']):.2f}%",
    }.items() <= cells(page.locator("tbody tr", has=page.get_by_role("link", name="HEL", exact=True)))
    sums = summed.value.json()["data"]
    collateral = sums["borrow_collateral"]
    lent, owed = (Decimal(sums[side][name]) for side, name in (("lend", "principal"), ("borrow_debt", "balance")))
    assert {
        "Deposits": compact(lent),
        "Debt": compact(owed),
        "Available": compact(lent - owed),
        "Collateral": compact(collateral["total"]["balance"]),
    }.items() <= cells(page.locator("tfoot tr"))
    expect(page.locator("main p").first).to_have_text(
        f"Total value locked is {compact(sums['tvl']['tvl'])}: {compact(lent)} of deposits and "
        f"{compact(collateral['non_receipt']['balance'])} of collateral, each rounded. Another "
        f"{compact(collateral['receipt']['balance'])} of collateral is receipt tokens, which stand for deposits."
    )
    with page.expect_download() as saving:
        page.get_by_role("link", name="CSV").click()
    head, *lines = saving.value.path().read_text().splitlines()
    assert head.startswith("asset_id,Symbol,Price,24 h,Deposits,Debt,")
    saved = dict(line.split(",")[::2][:2] for line in lines)
    priced = {asset["asset"]["id"] for asset in visit.data("/assets/prices")}
    # A snapshot may come in between.
    assert saved.keys() >= priced
    assert all(re.fullmatch(r"\d+(\.\d+)?", saved[asset]) for asset in priced)
    # Receipt tokens have the price that they are valued at as collateral, in both.
    receipts = [one for one in markets if one["asset_info"]["classification"]["kind"] == "protocol_receipt_token"]
    assert receipts
    for receipt in receipts:
        asset, value = receipt["asset_info"]["asset"]["id"], receipt["borrow_collateral"]["state"]["extra"]["value"]
        row = page.locator("tbody tr", has=page.locator(f'a[title="{asset}"]'))
        assert row.locator("td").first.inner_text() == value["extra"]["text"]["price"]
        assert saved[asset] == value["price"]
    expect(page.get_by_text("the redemption ratio.")).to_be_visible()


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


def test_a_change_of_a_price_shows_what_could_be_liquidated_and_tokens_follow_if_the_viewer_says_so(
    visit: Visit,
) -> None:
    page = visit.open({"view": "risk", "of": HEL})
    ladder = source(page, 3)
    steps = {Decimal(step["change"]): step for step in visit.data(ladder)["steps"]}
    rows = page.get_by_role("table", name="Accounts that could be liquidated").locator("tbody tr")
    slider, told = page.get_by_label("changes by"), page.locator("output")
    for percent in (10, -95):
        slider.fill(str(percent))
        accounts = steps[Decimal(percent) / 100]["accounts"]
        text = told.inner_text()
        assert (f"+{percent}%" if percent > 0 else f"{MINUS}{-percent}%") in text
        assert f": {accounts} account" in text
        assert re.search(r", at \$([\d,]+\.\d\d|0\.\d{4,}): .* with \$([\d,]+\.\d\d|[\d.]+[kM]) of debt", text)
        expect(rows).to_have_count(min(accounts, 10))
    # The chart marks the price, and tells the numbers at the cursor.
    drawn = page.locator("#chart-what-could-be-liquidated-at-other-prices")
    assert drawn.evaluate("(chart) => chart.layout.shapes.map(({x0}) => x0)") == [-0.95]
    drawn.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(drawn.locator(".tooltip")).to_contain_text(f"Change {MINUS}90.00%Price$")
    at = query(ladder)["at"]
    listed = visit.data(f"/analytics/market/borrowers?prices=HEL:-95%25&sort=health&at={at}&limit=10")
    expect(rows.locator("td:nth-child(4)")).to_have_text([three_decimals(one["health"]) for one in listed])
    account = query(str(rows.first.get_by_role("link").get_attribute("href")))
    assert (account["view"], account["address"]) == ("address", listed[0]["address"])
    field = page.get_by_label("Change in percent")
    for typed, change in (("-12.5", "-12.5"), ("", "-12.5"), ("500", "100"), ("-40", "-40")):
        field.fill(typed)
        field.press("Enter")
        expect(slider).to_have_value(change)
        expect(field).to_have_value(change)
        expect(field).to_be_focused()
        expect(told).to_contain_text(f"{change.replace('-', MINUS)}%, at $")
    slider.fill("-60")
    expect(field).to_have_value("-60")
    assert query(page.url)["change"] == "-60"
    expect(page.get_by_text("including stHEL")).to_be_visible()
    with page.expect_response(re.compile("/risk/ladder.*following=native%3Basthel")) as answered:
        page.get_by_label("stHEL too").check()
    [step] = [one for one in answered.value.json()["data"]["steps"] if one["change"] == "-0.6"]
    expect(told).to_contain_text(f": {step['accounts']} account")
    expect(rows).to_have_count(min(step["accounts"], 10))
    [url] = [url for url in visit.browser.asked if "sort=health" in url and "asthel" in url]
    expect(rows.locator("td:nth-child(4)")).to_have_text([three_decimals(one["health"]) for one in visit.data(url)])
    assert query(page.url)["follow"] == "1"
    # Nothing follows a dollar.
    page.get_by_label("Price of").select_option(ID_OF["USDT"])
    expect(page.get_by_role("checkbox")).to_have_count(0)
    assert visit.browser.said == []


def test_every_figure_of_risk_leads_to_its_accounts_and_transactions_to_addresses_and_assets(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    page.route(re.compile("/market/events"), thirty_transactions)
    visit.open({"view": "risk", "who": "1.5", "tz": "UTC"} | CLOSED)
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
    shown = rows.get_by_role("link").evaluate_all("(links) => links.map(({title}) => title)")
    listed = visit.data(f"/analytics/market/borrowers?sort=debt&limit=20&tz=UTC&at={given['at']}")
    assert shown == [one["address"] for one in listed]
    events = page.get_by_role("table", name="Latest").locator("tbody tr")
    expect(events).to_have_count(10)
    expect(events.first.get_by_role("link", name="1 AHEL")).to_have_attribute("href", re.compile("asset=native%3Bahel"))
    page.get_by_role("button", name="Older").click()
    expect(events).to_have_count(20)
    with page.expect_request(re.compile("/market/events")) as asked:
        page.get_by_role("combobox", name="Asset").select_option("HEL")
    assert {"asset_ids": HEL, "action": "liquidate"}.items() <= query(asked.value.url).items()
    account = events.first.get_by_role("link", name=re.compile("^ptcl1")).get_attribute("href")
    assert query(str(account))["address"] == RICH


def test_where_only_some_addresses_are_known_the_page_says_so_in_place_of_figures_of_all(visit: Visit) -> None:
    """As the service of a follower does. Histories of risk are there."""
    page = visit.browser.open("about:blank")
    paths = re.compile(r"/market/(risk|borrowers)\b")
    page.route(paths, lambda route: failure(route, 404, "entity_not_found", ONLY_SOME))
    visit.open(VIEWS["risk"])
    expect(page.locator(".notice")).to_have_text([ONLY_SOME])
    expect(page.locator(".tile")).to_have_count(0)
    expect(page.locator(".panel h2")).to_have_text(["Debt at risk", "Accounts at risk"])
    assert page.locator(".main-svg").count() > 0


def test_an_address_is_found_and_shown_as_of_an_earlier_moment_with_older_transactions(visit: Visit) -> None:
    page = visit.browser.open("about:blank")
    page.route(re.compile("/tx-history"), thirty_transactions)
    with page.expect_response(re.compile("/borrowers")) as answered:
        page.goto(visit.url({"view": "address"}))
    visit.wait(page)
    documented = page.locator("main").get_by_role("link", name="API documentation")
    expect(documented).to_have_attribute("href", re.compile("docs#get_users_address_user$"))
    borrower = page.get_by_role("table", name="Largest borrowers").get_by_role("link").first.get_attribute("href")
    assert query(str(borrower))["address"] == answered.value.json()["data"][0]["address"]
    field, show = page.get_by_label("Address", exact=True), page.get_by_role("button", name="Show", exact=True).last
    visit.go(page, {"view": "address", "address": "nobody", "tz": "Asia/Tokyo"})
    told = "“nobody” cannot be used. It must be bech32 with a valid checksum, or 0x and 40 hex digits."
    expect(page.get_by_role("alert")).to_have_text(told)
    field.fill(RICH)
    show.click()
    expect(page.get_by_role("heading", name="Account 0")).to_be_visible()
    assert page.title().startswith("Address · ")
    user = visit.data(f"/users/{RICH}/user?with_text=true&with_value=true")
    [first, *_] = user["markets"]["borrow"]["accounts"]
    panel = page.locator(".panel", has_text="Account 0").last.inner_text()
    for part in first["collaterals"] + first["debts"]:
        assert part["asset_info"]["metadata"]["symbol"] in panel
    moment = datetime.now(ZoneInfo("Asia/Tokyo")).isoformat()[:19]
    page.get_by_label("as of").fill(moment)
    with page.expect_request(lambda request: "/user?" in request.url and "at=" in request.url) as request:
        show.click()
    assert query(request.value.url)["at"].startswith(moment[:16])
    moment_and_zone = {"at": query(page.url)["at"], "tz": "Asia/Tokyo"}
    assert moment_and_zone.items() <= query(request.value.url).items()
    page.get_by_role("button", name="Older").click()
    rows = page.get_by_role("table", name="Transactions").locator("tbody tr")
    expect(rows.locator("code")).to_have_text([str(number) for number in range(1, 31)])
    expect(page.get_by_role("button", name="Older")).to_be_hidden()
    for url in [url for url in visit.browser.asked if "/tx-history?" in url][-2:]:
        assert moment_and_zone.items() <= query(url).items()
    with page.expect_request(re.compile("/tx-history")) as asked:
        page.get_by_role("combobox", name="Action").select_option("Borrow")
    assert query(asked.value.url)["action"] == query(page.url)["action"] == "borrow"


def test_an_address_shows_its_worth_at_a_moment_how_a_metric_has_changed_and_sections_that_fold(visit: Visit) -> None:
    """A tile that cannot be loaded says so beside all else."""
    page = visit.browser.open("about:blank")
    pattern = re.compile("metric=health")
    page.route(pattern, away)
    page.route(re.compile("/tx-history"), thirty_transactions)
    page.goto(f"{visit.url(VIEWS['address'] | {'at': CLOSED['end'], 'tz': 'UTC'})}#wallet")
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
        expect(page.get_by_role("button", name="Copied").last).to_be_visible()
        page.wait_for_function("async (whole) => await navigator.clipboard.readText() === whole", arg=whole)
    expect(page.get_by_role("button", name="Copied")).to_have_count(0)
    tiles = page.locator(".tile")
    expect(tiles.locator("h2")).to_have_text(
        ["Net worth", "Collateral", "Debt", "Deposits", "Least health", "Debt to collateral"]
    )
    moment = f"tz=UTC&period=y&start={CLOSED['end']}&end={CLOSED['end']}"
    [debt] = visit.data(f"/users/{RICH}/history?{moment}&metric=debt")["points"]
    shown = float(tiles.nth(2).locator(".value").inner_text().strip("$k"))
    assert shown == pytest.approx(float(debt["v"]) / 1000, rel=0.01)
    healths = page.get_by_role("table", name="Health of the borrow accounts").locator("td:nth-child(2)")
    least = min((health for health in healths.all_inner_texts() if health != "no debt"), key=float)
    tile = page.locator(".tile", has_text="Least health")
    expect(tile.get_by_role("alert")).to_have_text(AWAY)
    page.unroute(pattern)
    tile.get_by_role("button", name="Try again").click()
    expect(tile.locator(".value")).to_have_text(least)
    page.get_by_role("button", name="Least health").click()
    chart = page.locator("#chart-worth-over-time")
    chart.locator(".tooltip").wait_for(state="attached")
    assert query(page.url)["metric"] == "health"
    chart.focus()
    page.keyboard.press("End")
    expect(chart.locator(".tooltip")).to_contain_text(re.compile(r"Least health\d"))


def test_the_page_for_queries_answers(service: Service, browser: Browser) -> None:
    """ClickHouse's own page sends settings of its own with each query."""
    # The port is another one than at the start, if ClickHouse was restarted meanwhile.
    found = re.search(r"http://\S+/play\S*", service.done("status")[1])
    assert found
    page = browser.open(found[0])
    page.fill("#password", (service.data_dir / "researcher-password").read_text().strip())
    page.fill("#query", "SELECT symbol, 40 + 2 AS answer FROM assets WHERE symbol = 'BTC'")
    page.keyboard.press("Control+Enter")
    expect(page.locator("body")).to_contain_text(re.compile(r"BTC\s*42"))
