"""Events imported from files, and what follows from them: sums of loans and liquidations, histories of addresses."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceMismatch, UserError
from analytics_service.importing.event_rows import COLUMNS
from analytics_service.importing.events import EventRequest, LoadedEvents, load_events
from analytics_service.market.events import Action, Event, Sum, Totals
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.datasets.histories import PRICES as PRICE
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.integration import imports
from tests.integration.conftest import Run
from tests.integration.databases import copied, database
from tests.integration.handmade import HandMade
from tests.integration.routes import NOON, Client, client_of

ALICE, BOB = "0x" + "a" * 40, "0x" + "b" * 40
HEADER = "time,address,action,symbol,units,usd,tx_hash\n"
START = NOON - 100_000
# Prices of AAA (18 decimals) and BBB (6 decimals); CCC has none.
PRICES = [("token;0xa", START, "2"), ("token;0xa", START + 1000, "3"), ("token;0xb", START + 500, "10")]
AT = datetime.fromtimestamp(NOON, UTC)
Row = tuple[int, str, str, str, str, str]


def text(rows: Sequence[Row]) -> str:
    lines = (f"{START + second},{address},{','.join(rest)},tx{second}\n" for second, address, *rest in rows)
    return HEADER + "".join(lines)


def load(store: Store | None, folder: Path, content: str, name: str = "events.csv", **others: object) -> LoadedEvents:
    path = folder / name
    path.write_text(content)
    request = EventRequest([path], assets=imports.assets_file(folder))
    return load_events(store, replace(request, **others), AT, imports.Progress())  # type: ignore[arg-type]


def bring(store: Store, folder: Path, rows: Sequence[Row], name: str = "events.csv") -> None:
    load(store, folder, text(rows), name).write(store)


@pytest.fixture(scope="module")
def prices(server: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with prices only. Tests add to copies."""
    with database(replace(server, clickhouse_database="test_event_imports")) as store:
        imports.run(store, imports.prices_file(tmp_path_factory.mktemp("prices"), PRICES))
        yield store


@pytest.fixture
def priced(settings: Settings, prices: Store) -> Iterator[Store]:
    with copied(settings, prices) as store:
        yield store


def series(client: Client, path: str) -> dict[str, list[str | None]]:
    """The value of each series at the ends of the minutes from the first event on."""
    query = f"start={START}&end={START + 40 * 60}&period=min&interval=20&limit=3"
    answer = client.simulate_get(f"/api/v1/analytics/market/history/{path}", query_string=query)
    assert answer.status_code == 200, answer.text
    data = answer.json["data"]
    if "points" in data:
        return {"": [point["v"] for point in data["points"]]}
    return {one["asset"]["id"]: [point["v"] for point in one["points"]] for one in data["series"]}


EVENTS: list[Row] = [
    (10, ALICE, "borrow", "AAA", "1.5", ""),
    (600, BOB, "borrow", "bbb", "2", "25"),
    (1300, ALICE, "return", "AAA", "0.5", ""),
    (1310, ALICE, "borrow", "AAA", "1", ""),
    (1320, BOB, "liquidate", "BBB", "0.5", ""),
    (1330, BOB, "borrow", "CCC", "7", ""),
]


def test_events_make_the_histories_and_the_present_state(priced: Store, settings: Settings, tmp_path: Path) -> None:
    """1.5 AAA at 2 USD are 3; 1 AAA at 3 USD is 3; Bob's loan is worth 25 as the file says, and CCC has no price."""
    bring(priced, tmp_path, EVENTS)
    client = client_of(settings, priced)
    assert series(client, "loans-originated") == {"": ["28", "31", None]}
    assert series(client, "loans-originated/by-asset") == {
        "token;0xa": ["3", "6", None],
        "token;0xb": ["25", "25", None],
        "token;0xc": [None, "0", None],
    }
    assert series(client, "liquidations") == {"": ["0", "5", None]}

    history = client.simulate_get(f"/api/v1/users/{ALICE}/tx-history", query_string="sort_order=asc")
    assert history.status_code == 200, history.text
    shown = [(event["action"], event["amount"], event["historic_price"], event["historic_value"], event["tx_hash"])
             for event in history.json["data"]]  # fmt: skip
    assert shown == [
        ("borrow", "1500000000000000000", "2", "3", "tx10"),
        ("return", "500000000000000000", "3", "1.5", "tx1300"),
        ("borrow", "1000000000000000000", "3", "3", "tx1310"),
    ]
    assert history.json["count"] == 3
    last = client.simulate_get(f"/api/v1/users/{BOB}/tx-history", query_string="limit=1").json["data"]
    assert [(event["amount"], event["historic_value"]) for event in last] == [("7", None)]


def test_events_go_on_from_imported_sums(priced: Store, settings: Settings, tmp_path: Path) -> None:
    """1000 at 599 s, then 25 at 600 s; 1100 at 1330 s, whatever came before, then 3. In whatever parts events come;
    those that exceed an imported value are refused."""
    path = tmp_path / "sums.csv"
    path.write_text(f"time,value\n{START + 599},1000\n{START + 1330},1100\n")
    history = next(history for history in HISTORIES if history.slug == "loans-originated")
    imports.import_files(priced, imports.asked(history, path), AT, imports.Progress())
    later: list[Row] = [(1340, ALICE, "borrow", "AAA", "1", "")]
    for number, rows in enumerate([later, EVENTS]):
        bring(priced, tmp_path, rows, f"part{number}.csv")
    client = client_of(settings, priced)
    assert series(client, "loans-originated") == {"": ["1025", "1103", None]}
    assert series(client, "loans-originated/by-asset")["token;0xa"] == ["3", "9", None]
    with pytest.raises(UserError, match=r"must not decrease: it would be 1128 USD .* has 1100 then, 28 less"):
        bring(priced, tmp_path, [(700, BOB, "borrow", "AAA", "50", "100")], "above.csv")


CONTENTS = (
    "SELECT * EXCEPT version FROM event_version FINAL ORDER BY ALL",
    """SELECT history, asset_id, observed_at, value FROM observation FINAL WHERE history IN
    ('loans_originated', 'liquidations', 'flash_loans') ORDER BY ALL""",
)


def test_parts_in_any_order_come_to_the_same(
    settings: Settings, store: Store, tmp_path: Path, draw: random.Random
) -> None:
    """Events and numbers are those of one import of all; every observation is the sum of the events up to it."""
    actions = ["borrow", "return", "lend", "liquidate", "borrow_flash_loan", "send"]
    rows: list[Row] = [
        (draw.randrange(3000), draw.choice([ALICE, BOB]), draw.choice(actions), draw.choice(["AAA", "BBB"]),
         str(draw.randrange(1, 9)), draw.choice(["", "2.5", "7"]))
        for _ in range(60)
    ]  # fmt: skip
    rows = list(dict.fromkeys(rows))
    shuffled = draw.sample(rows, len(rows))
    for number in range(2):
        bring(store, tmp_path, shuffled[number::2], f"part{number}.csv")
    whole = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_whole")
    with database(whole) as other:
        bring(other, tmp_path, rows)
        for query in CONTENTS:
            assert imports.query(settings, query) == imports.query(whole, query)
    sums: dict[tuple[str, str], list[tuple[int, Decimal]]] = defaultdict(list)
    for second, _, action, symbol, _, usd in rows:
        histories = {"borrow": "loans_originated", "liquidate": "liquidations", "borrow_flash_loan": "flash_loans"}
        for asset_id in ("", {"AAA": "token;0xa", "BBB": "token;0xb"}[symbol]) if action in histories else ():
            sums[histories[action], asset_id].append((START + second, Decimal(usd or 0)))
    stored = imports.query(settings, CONTENTS[1].replace("observed_at, value", "toUnixTimestamp(observed_at), value"))
    assert stored
    for history, asset_id, second, value in stored:
        expected = sum((usd for at, usd in sums[str(history), str(asset_id)] if at <= int(str(second))), Decimal(0))
        assert value == expected


SHARED: list[Row] = [
    (99_000, ALICE, "borrow", "AAA", "1", "10"),
    (99_100, BOB, "liquidate", "BBB", "2", "25"),
    (99_100, BOB, "liquidate", "BBB", "2", "25"),
    (99_200, BOB, "borrow_flash_loan", "BBB", "3", "30"),
]


def listed(row: Row, number: int) -> Event:
    """A row as a source lists it."""
    second, address, action, symbol, amount, usd = row
    asset_id, units = {"AAA": ("token;0xa", 10**18), "BBB": ("token;0xb", 10**6)}[symbol]
    at, value = datetime.fromtimestamp(START + second, UTC), Decimal(usd)
    return Event(
        f"{number}", Action(action), asset_id, address, at, int(amount) * units, value, Decimal(2), 0, "contract",
        tx_hash=f"tx{second}",
    )  # fmt: skip


def with_ids(rows: Sequence[Row]) -> str:
    """The file of rows in which each has an id."""
    head, *lines = text(rows).splitlines()
    return "\n".join([f"id,{head}", *(f"log{number},{line}" for number, line in enumerate(lines))])


def told(settings: Settings) -> list[list[tuple[object, ...]]]:
    """What a store has, whatever ids events have."""
    summed = "history IN ('loans_originated', 'liquidations', 'flash_loans')"
    return [
        imports.query(
            settings, "SELECT * EXCEPT (id, uuid, version) FROM event_version FINAL WHERE NOT removed ORDER BY ALL"
        ),
        imports.query(settings, f"SELECT * EXCEPT version FROM observation FINAL WHERE {summed} ORDER BY ALL"),
    ]


def test_events_of_files_and_of_a_source_share_a_store_in_any_order(
    settings: Settings, prices: Store, tmp_path: Path
) -> None:
    """Those of both are known once: two that are alike twice. Each has one of its own, too. The same file with ids
    brings nothing new."""
    source = HandMade(events_=[listed(row, number) for number, row in enumerate(SHARED[:3])])
    source.events_ = sorted(
        [*source.events_, listed((98_000, ALICE, "lend", "AAA", "4", "40"), 9)], key=lambda event: event.at
    )
    found = []
    for number, steps in enumerate(["file ids source", "source file"]):
        own = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_{number}")
        with copied(own, prices) as store:
            at = AT
            for step in steps.split():
                if step == "file":
                    bring(store, tmp_path, SHARED)
                elif step == "ids":
                    load(store, tmp_path, with_ids(SHARED)).write(store)
                else:
                    take_snapshot(JOBS["loans"], source, store, at)
                    at += timedelta(minutes=5)
            found.append(told(own))
            if number == 1:
                before = imports.query(
                    own, "SELECT uuid FROM event_version FINAL WHERE NOT removed AND action != 'lend'"
                )
                # Under other ids and later in their transactions, those of both are the same.
                moved = [replace(each, id=f"m{each.id}", at=each.at + timedelta(seconds=9)) for each in source.events_]
                places = (
                    "SELECT uuid, at FROM event_version FINAL WHERE NOT removed AND action IN ('borrow', 'liquidate')"
                )
                first = dict(imports.query(own, places))
                take_snapshot(JOBS["loans"], HandMade(events_=moved), store, at)
                later = {uuid: second + timedelta(seconds=9) for uuid, second in first.items()}
                assert dict(imports.query(own, places)) == later
                at += timedelta(minutes=5)
                # What files have stays, and what only the source had leaves.
                take_snapshot(JOBS["loans"], HandMade(), store, at)
                after = imports.query(own, "SELECT uuid, origin FROM event_version FINAL WHERE NOT removed")
                assert sorted(after) == sorted((uuid, "file") for (uuid,) in before)
    assert len(found[0][0]) == 5
    assert all(other == found[0] for other in found)


def test_a_hash_is_one_in_any_spelling(priced: Store, settings: Settings, tmp_path: Path) -> None:
    """Of events with ids as of those without; the first spelling stays."""
    row, other = (f"{NOON - 90},{ALICE},borrow,AAA,1,10,{{}}\n", f"{NOON - 80},{ALICE},borrow,AAA,2,20,{{}}\n")
    take_snapshot(JOBS["loans"], HandMade(), priced, AT - timedelta(minutes=2))
    load(priced, tmp_path, HEADER + row.format("AB12")).write(priced)
    events = [
        replace(listed((NOON - 90 - START, ALICE, "borrow", "AAA", "1", "10"), 1), tx_hash="0xab12"),
        replace(listed((NOON - 80 - START, ALICE, "borrow", "AAA", "2", "20"), 2), tx_hash="0xcd34"),
    ]
    for minutes in (1, 0):
        take_snapshot(JOBS["loans"], HandMade(events_=events), priced, AT - timedelta(minutes=minutes))
    for spelled in ("ab12", "AB12", "0xaB12", "0XAB12"):
        assert load(priced, tmp_path, HEADER + row.format(spelled)).known == 1
    ids = f"id,{HEADER}1,{row.format('ab12')}2,{other.format('cd34')}2,{other.format('0xCD34')}"
    content = load(priced, tmp_path, ids)
    assert (content.reader.read, content.known, len(content.events)) == (3, 3, 2)
    content.write(priced)
    stored = "SELECT tx_hash, origin FROM event_version FINAL WHERE NOT removed ORDER BY at"
    assert imports.query(settings, stored) == [("AB12", "both"), ("0xcd34", "both")]


def test_sums_of_files_stay_where_a_source_goes_on_with_sums_of_its_own(
    priced: Store, settings: Settings, tmp_path: Path
) -> None:
    """Its events, and those of files from then on, count in what it states."""

    class Stating(HandMade):
        def totals(self, at: datetime) -> Totals:
            return Totals(Sum(Decimal(1000), {"token;0xa": Decimal(975)}))

    loans = (
        "SELECT toUnixTimestamp(observed_at), value FROM observation FINAL "
        "WHERE history = 'loans_originated' AND asset_id = '' ORDER BY ALL"
    )
    bring(priced, tmp_path, EVENTS)
    before = imports.query(settings, loans)
    source = Stating(events_=[listed(SHARED[0], 0)])
    for minutes in (0, 5):
        take_snapshot(JOBS["loans"], source, priced, AT + timedelta(minutes=minutes))
    # An import is not of the future, so that of the minute after noon comes as if it were later.
    rows = text([(100_060, BOB, "borrow", "BBB", "2", "25")])
    path = tmp_path / "later.csv"
    path.write_text(rows)
    later = AT + timedelta(minutes=9)
    request = EventRequest([path], assets=imports.assets_file(tmp_path))
    load_events(priced, request, later, imports.Progress()).write(priced)
    assert imports.query(settings, loans) == [*before, (NOON, 1000), (NOON + 300, 1000)]


def test_simulated_data_is_not_mixed_with_events_of_files(store: Store, tmp_path: Path) -> None:
    take_snapshot(JOBS["prices"], SimulatedSource("1"), store, AT)
    with pytest.raises(SourceMismatch, match="never mixed"):
        load(store, tmp_path, text(EVENTS))


BAD = (
    ((1, ALICE, "loan", "AAA", "1", ""), "column action: 'loan' is not an action; write one of .*borrow, return"),
    ((1, "0x12", "borrow", "AAA", "1", ""), "column address: '0x12' must be bech32"),
    ((1, ALICE, "borrow", "XXX", "1", ""), "column symbol: .XXX. is an unknown asset; describe it with --assets"),
    ((1, ALICE, "borrow", "BBB", "0.0000001", ""), "column units: '0.0000001' has more than the 6 decimals"),
    ((1, ALICE, "borrow", "BBB", "-1", ""), "column units: '-1' is not a plain decimal without a sign"),
    (
        (1, ALICE, "borrow", "BBB", "1", "1e20"),
        r"column usd: 1E\+20 is not a number that can be stored: .* below 10\^20; correct the row",
    ),
    (
        (1, ALICE, "borrow", "AAA", "1e60", ""),
        r"column amount: 1\d+ is not an amount: .* below 2\^256; correct the row",
    ),
    ((1, ALICE, "borrow", "AAA", "1e999", ""), r"column amount: 1\d+ is not an amount"),
    # 5 * 10^19 at a price of 2 USD are 10^20.
    ((1, ALICE, "borrow", "AAA", "5e19", ""), r"column usd: 1E\+20 is not a number that can be stored"),
    ((10**6, ALICE, "borrow", "AAA", "1", ""), "column time: '1741730400' is not a time up to 2025-03-01T12"),
)


def test_a_bad_row_is_named_with_its_column_and_what_to_do(prices: Store, tmp_path: Path) -> None:
    """The others come in if bad ones may be skipped."""
    for row, message in BAD:
        with pytest.raises(UserError, match=rf"events\.csv, line 2.*{message}"):
            load(prices, tmp_path, text([row]))
    content = load(prices, tmp_path, text([EVENTS[0], *(row for row, _ in BAD)]), skip_invalid=True)
    assert (content.reader.read, content.reader.rejected, len(content.events)) == (1 + len(BAD), len(BAD), 1)


def test_events_too_large_to_be_summed_are_refused(priced: Store, settings: Settings, tmp_path: Path) -> None:
    rows = [(second, ALICE, "borrow", "AAA", "1", "6e19") for second in (1, 2)]
    with pytest.raises(UserError, match="Sums of the events cannot be stored"):
        bring(priced, tmp_path, rows)
    assert imports.query(settings, "SELECT count() FROM event_version") == [(0,)]


def test_columns_are_those_of_the_view_and_what_differs_is_told_at_once(
    store: Store, views: None, run: Run, tmp_path: Path
) -> None:
    assert list(COLUMNS) == [row[0] for row in run("DESCRIBE events")]
    others = r"has the unknown or repeated columns 'hash', 'time'.*recipes"
    with pytest.raises(UserError, match=f"lacks the columns address, asset_id or symbol, and {others}"):
        load(None, tmp_path, "time,action,units,hash,time\n")


def test_rows_of_lending_without_an_amount_are_left_out_and_counted(priced: Store, tmp_path: Path) -> None:
    """Nothing moves in some actions, so that their rows need none."""
    rows: list[Row] = [(1, BOB, "claim_rewards", "AAA", "", ""), (2, ALICE, "borrow", "AAA", "1", "")]
    content = load(
        priced, tmp_path, text([*rows, (3, ALICE, "borrow", "AAA", "", "7"), (4, BOB, "lend", "BBB", "null", "")])
    )
    content.write(priced)
    assert (content.reader.read, content.reader.empty, content.reader.rejected, len(content.events)) == (4, 2, 0, 2)
    with pytest.raises(UserError, match="there are no events"):
        load(priced, tmp_path, text([(3, ALICE, "borrow", "AAA", "", "7")]))


def test_equal_amounts_are_one_event_and_an_id_has_one_content(priced: Store, tmp_path: Path) -> None:
    """In standard or denom units. Rows that are alike are events of their own."""
    bring(priced, tmp_path, [(10, ALICE, "borrow", "BBB", "1.0", "")])
    rows = text([(10, ALICE, "borrow", "BBB", "1", ""), (20, ALICE, "borrow", "BBB", "1", "")])
    content = load(priced, tmp_path, rows + rows.splitlines()[-1] + "\n")
    assert (content.reader.read, content.known, content.reader.rejected, len(content.events)) == (3, 1, 0, 3)
    exact = text([(10, ALICE, "borrow", "BBB", "1000000", "")]).replace("units", "amount_denom")
    assert load(priced, tmp_path, exact).known == 1
    with_ids = HEADER.replace("time", "id,time") + f"7,{START},{ALICE},borrow,AAA,{{}},,tx\n" * 2
    assert load(None, tmp_path, with_ids.format(1, "1.00")).known == 1
    with pytest.raises(UserError, match=r"line 3, column id: '7' is the id of another event, borrow of 1000"):
        load(None, tmp_path, with_ids.format(1, 2))


def test_an_event_of_a_file_is_corrected_by_its_id(priced: Store, settings: Settings, tmp_path: Path) -> None:
    """100 USD of Alice's 130 become 60: sums and the list follow. Files whose ids number their rows are refused, and so
    are corrections of what a source lists."""
    columns = "id," + HEADER
    rows = [f"7,{START + 10},{ALICE},borrow,AAA,{{}},{{}},tx\n", f"8,{START + 20},{ALICE},borrow,BBB,3,30,\n"]
    load(priced, tmp_path, columns + rows[0].format(50, 100) + rows[1]).write(priced)
    content = load(priced, tmp_path, columns + rows[0].format(30, 60))
    assert (content.changed, content.known) == (1, 0)
    content.write(priced)
    assert series(client_of(settings, priced), "loans-originated") == {"": ["90", None, None]}
    stored = "SELECT id, toString(amount), usd FROM event_version FINAL WHERE NOT removed ORDER BY id"
    expected = [("7", f"{30 * 10**18}", Decimal(60)), ("8", f"{3 * 10**6}", Decimal(30))]
    assert imports.query(settings, stored) == expected
    with pytest.raises(UserError, match="'8' is the id of another event, borrow of 3000000 at"):
        load(priced, tmp_path, columns + f"8,{START + 21},{ALICE},borrow,BBB,4,40,\n")

    listed_event = replace(listed(SHARED[0], 0), id="7", tx_hash="tx", amount=30 * 10**18, usd=Decimal(60))
    take_snapshot(JOBS["loans"], HandMade(events_=[listed_event]), priced, AT)
    with pytest.raises(UserError, match=r"'7' is the id of an event of the source, borrow of 3.* remove the row"):
        load(priced, tmp_path, columns + rows[0].format(20, 40))


def test_values_follow_prices_of_the_last_day_and_what_they_change_is_told(priced: Store, tmp_path: Path) -> None:
    """The price of BBB is 86,400 s old at 86,900 s. A file then states the value that was unknown a second later."""
    rows: list[Row] = [(second, ALICE, "borrow", "BBB", "1", "") for second in (86_900, 86_901)]
    content = load(priced, tmp_path, text(rows))
    assert [event.usd for event in content.events] == [10, None]
    content.write(priced)
    content = load(priced, tmp_path, text([rows[0], (86_901, ALICE, "borrow", "BBB", "1", "12")]))
    assert (content.reader.read, content.changed, content.known) == (2, 1, 1)


def test_amounts_of_an_asset_whose_decimals_nobody_stated_are_refused(store: Store, tmp_path: Path) -> None:
    """Its prices may have been imported; once it is described, they value its events."""
    (prices := tmp_path / "prices.csv").write_text(f"time,asset,value\n{START},NEW,2\n")
    request = replace(imports.asked(PRICE, prices), new_assets=True)
    imports.import_files(store, request, AT, imports.Progress())
    for unit in ("units", "amount_denom"):
        rows = text([(1, ALICE, "borrow", "NEW", "15", "")]).replace("units", unit)
        with pytest.raises(UserError, match="needs the decimals of NEW, which are unknown"):
            load(store, tmp_path, rows)
    (described := tmp_path / "described.csv").write_text("symbol,address,decimals\nNEW,native;NEW,1\n")
    (event,) = load(store, tmp_path, rows, assets=described).events
    assert event.usd == 3
