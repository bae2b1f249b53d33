"""What is read from the answers of another deployment."""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError, SourceError
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.events import Event, Sum, Totals
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    LendConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import (
    Account,
    Activity,
    Balance,
    Holding,
    LendPosition,
    Position,
    RiskTotals,
    Stake,
    SwapContract,
    Unbonding,
)
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, MemberClass, unlock_amounts, unlock_groups
from analytics_service.market.rates import Apr, Rates
from analytics_service.sources.registry import open_source
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.sources.simulated.terms import LAUNCH
from jobs.rejections import Rejections
from tests.doubles import FakeStore
from tests.unit.deployment import AT, NOW, SECOND, URL, Deployment, payload, refusal

D = Decimal
END = from_unix(SECOND + 1)
ALICE, BOB, SWAP = "0x" + "a" * 40, "0x" + "b" * 40, "0x" + "c" * 40


def spec(asset_id: str) -> dict[str, str]:
    group, key = asset_id.split(";")
    return {"id": asset_id, "group": group, "group_key": key}


def info(asset_id: str) -> dict[str, Any]:
    return {"asset": spec(asset_id), "classification": {"kind": "regular"}, "metadata": {}}


# Amounts and ratios as numbers and as strings, in the names of the contract's lists.
LEND = {
    "asset_info": info("native;usd"),
    "rate": {"apr": "0.05", "apy": "0.0512"},
    "config": {"supply_cap": "5000", "paused": None, "frozen": False},
    "state": {"principal_sum": 1200, "receipt_total_supply": "1000", "redemption_ratio": "1.2"},
}
COLLATERAL = {
    "asset_info": info("token;gem"),
    "config": {
        "enabled": True,
        "allowable_ltv": "0.7",
        "liquidation_ltv": 0.75,
        "collateral_cap": None,
        "min_discount": "0.01",
        "max_discount": "1e-1",
        "paused": True,
    },
    "state": {"balance": "500", "collateral_sum": "400", "extra": {"text": None}},
}
DEBT = {
    "asset_info": info("native;usd"),
    "rate": {"apr": "0.1"},
    "config": {"enabled": False, "borrow_cap": "900", "borrow_halt_utilization": "0.9", "interest_fee": "0.125"},
    "state": {
        "principal_sum": "800",
        "balance_sum": "880",
        "time_last_distributed_interest": "2026-03-01T13:00:00.9+01:00",
        "utilization_accumulator": "1.5",
        "novelty": {"from": "a later version"},
    },
}
CONFIG = {
    "time_window_nanos": 90_000_000_000,
    "partial_liquidation_threshold": "100",
    "target_liquidation_health": "1.05",
    "liquidation_fee": "0.01",
    "flash_loans_enabled": True,
    "flash_loan_fee": "0.0009",
    "staking_health_modifier": "0.2",
    "stake_collateral_ratio": "0.5",
    "stake_flash_loan_ratio": "0.25",
    "dynamic_discount_width": "0.3",
    "hnative": spec("token;gem"),
    "ptoken": spec("native;ptk"),
}
OLDER = {"borrow": {"collaterals": [COLLATERAL], "debts": [DEBT]}, "lend": [LEND], "global_config": CONFIG}
MARKETS = [
    Market(
        "native;usd",
        LendMarket(D("0.05"), 1200, 1000, config=LendConfig(5000, None, frozen=False)),
        None,
        DebtMarket(DebtConfig(False, 900, D("0.9"), D("0.125")), D("0.1"), 880, 800, AT, D("1.5")),
    ),
    Market(
        "token;gem",
        None,
        CollateralMarket(CollateralConfig(True, D("0.7"), D("0.75"), None, D("0.01"), D("0.1"), paused=True), 500, 400),
        None,
    ),
]


def newer() -> dict[str, Any]:
    """The same overview in the newer shape."""
    names = {"principal_sum": "principal", "collateral_sum": "shares"}
    lend, collateral, debt = ({**item, "state": dict(item["state"])} for item in (LEND, COLLATERAL, DEBT))
    for item in (lend, collateral):
        item["state"] = {names.get(name, name): value for name, value in item["state"].items()}
    state = debt["state"]
    state["shares"], state["balance"] = state.pop("principal_sum"), state.pop("balance_sum")
    wrapped = {
        name: {"supply": {}, "contents": [item]} for name, item in (("collaterals", collateral), ("debts", debt))
    }
    return {
        "borrow": wrapped,
        "lend": {"supply": {}, "contents": [lend]},
        "global_config": CONFIG,
        "tvl": {"tvl": "1", "net_tvl": "1"},
    }


@pytest.mark.parametrize("overview", [OLDER, newer()], ids=["older", "newer"])
@pytest.mark.parametrize("status_text", ["OK", "200 OK"])
def test_both_shapes_of_the_overview_have_the_same_markets(overview: Any, status_text: str) -> None:
    source = Deployment({"/markets": payload(overview, status_text=status_text), "/markets/config": CONFIG}).source()
    assert source.markets(AT) == MARKETS
    config = source.config(AT)
    assert (config.hnative, config.ptoken, config.time_window_nanos) == ("token;gem", "native;ptk", 90_000_000_000)
    assert (config.flash_loan_fee, config.dynamic_discount_width) == (D("0.0009"), D("0.3"))


def test_the_interest_paid_is_what_upstream_says() -> None:
    """What other snapshots of the same markets would give differs."""
    paid = [{"asset": spec("native;usd"), "lend_interest_paid": "250"}]
    source = Deployment({"/markets": OLDER, "/analytics/market/state": {"assets": paid}}).source()
    usd, gem = source.markets(AT)
    assert usd.lend == replace(MARKETS[0].lend, interest_paid=250)
    assert gem == MARKETS[1]


def changed(document: Any, place: str, value: Any = None) -> Any:
    """A copy with another value at a place such as lend[0].state; without it if the value is DELETE."""
    *parents, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", place)]
    copy = deepcopy(document)
    inner = copy
    for parent in parents:
        inner = inner[parent]
    if value is DELETE:
        del inner[last]
    else:
        inner[last] = value
    return copy


DELETE = object()
MALFORMED = [
    ("lend[0].state.principal_sum", "1.5", " is '1.5': must be a whole number."),
    ("lend[0].state.receipt_total_supply", True, " is True: has the wrong type."),
    ("lend[0].state.receipt_total_supply", DELETE, " is missing."),
    ("lend[0].state.receipt_total_supply", None, " is missing."),
    ("lend[0].state", [], " is []: must be an object."),
    ("lend[0].rate.apr", "low", " is 'low': must be a decimal number"),
    ("lend", "x", " is 'x': must be an array."),
    ("borrow.collaterals[0].config.enabled", "true", " is 'true': has the wrong type."),
    ("borrow.debts[0].state.time_last_distributed_interest", "yesterday", " is 'yesterday': Invalid isoformat"),
    (
        "borrow.debts[0].state.time_last_distributed_interest",
        "2026-03-01T12:00:00",
        " is '2026-03-01T12:00:00': must be a time with an offset from UTC.",
    ),
    ("borrow.debts[0].asset_info.asset.id", "usd", " is 'usd': 'usd' is not the id of an asset"),
]


@pytest.mark.parametrize(("place", "value", "problem"), MALFORMED)
def test_a_malformed_field_is_named_with_its_path(place: str, value: Any, problem: str) -> None:
    source = Deployment({"/markets": changed(OLDER, place, value)}).source()
    with pytest.raises(SourceError) as error:
        source.markets(AT)
    expected = f"{URL}: /api/v1/markets: answer.data.{place}{problem}"
    assert str(error.value)[: len(expected)] == expected


def test_a_list_that_is_not_whole_or_names_an_asset_twice_is_an_error() -> None:
    answers = {"/markets/lend": payload([LEND], count=2), "/markets": {**OLDER, "lend": [LEND, LEND]}}
    source = Deployment(answers).source()
    with pytest.raises(SourceError, match=r"/markets/lend: answer.count is 2: must be the number of items"):
        source.rates(AT)
    with pytest.raises(SourceError, match=r"answer.data.lend\[1\] .*: native;usd occurs twice"):
        source.markets(AT)


def test_a_malformed_part_leaves_other_datasets() -> None:
    """Rates are read from lists of their own, and only they."""
    deployment = Deployment(
        {
            "/markets": changed(OLDER, "borrow.collaterals[0].state", None),
            "/markets/lend": payload([changed(LEND, "state", None)], count=1),
            "/markets/borrow/debts": [DEBT],
        }
    )
    source = deployment.source()
    assert source.rates(AT) == Rates({"native;usd": D("0.05")}, {"native;usd": D("0.1")})
    with pytest.raises(SourceError, match=r"/markets: answer.data.borrow.collaterals\[0\].state is missing"):
        source.markets(AT)


PRICE = b"""[{"asset": {"id": "native;usd", "group": "native", "group_key": "usd"},
    "price": {"price": 1.00000000000000000100000000000000000001, "last_updated_at": 1772366399.5}},
  {"asset": {"id": "token;gem"}, "price": {"price": "12345678901234567890.123456789012345678",
    "last_updated_at": "2026-02-28T12:00:00Z"}},
  {"asset": {"id": "token;none"}, "price": {"price": null, "last_updated_at": null}}]"""


def test_every_digit_of_a_price_is_kept() -> None:
    source = Deployment({"/assets/prices": payload(PRICE, count=3)}).source()
    assert source.prices(AT) == [
        Price("native;usd", from_unix(SECOND - 1), D("1.00000000000000000100000000000000000001")),
        Price("token;gem", AT - timedelta(days=1), D("12345678901234567890.123456789012345678")),
    ]


ASSETS = [
    {
        "asset": spec("native;usd"),
        "classification": {"kind": "regular", "nreceipt": spec("token;rusd")},
        "metadata": {
            "decimals_denom": 6,
            "decimals_display": "2",
            "name": "Dollar",
            "symbol": "USD",
            "symbol_denom": "u",
        },
    },
    {
        "asset": spec("token;rusd"),
        "classification": {"kind": "brand_receipt", "origin_asset": spec("native;usd")},
        "metadata": {"decimals_denom": 6, "decimals_display": 2, "name": "Rec", "symbol": "rUSD", "symbol_denom": "r"},
    },
]


def names_file(folder: Path, text: str) -> Path:
    file = folder / "names"
    file.write_text(text)
    return file


def test_words_with_the_brand_are_translated_by_a_file(tmp_path: Path) -> None:
    """In paths, names of fields and kinds, but not in other values."""
    names = names_file(
        tmp_path,
        "# The brand is nept.\nptoken = nept\nprotocol_receipt_asset=nreceipt\nprotocol_receipt_token = brand_receipt\n"
        "hnative = ninj  # native\n",
    )
    config = {**CONFIG, "nept": spec("native;nept"), "ninj": spec("native;ninj")}
    del config["ptoken"], config["hnative"]
    deployment = Deployment({"/assets": payload(ASSETS, count=2), "/markets/config": config, "/nept/params": []})
    source = deployment.source(upstream_names=names)
    assert source.assets(AT) == [
        Asset(AssetGroup.NATIVE, "usd", "Dollar", "USD", "u", 6, 2, receipt_asset="token;rusd"),
        Asset(AssetGroup.TOKEN, "rusd", "Rec", "rUSD", "r", 6, 2, AssetKind.RECEIPT, origin_asset="native;usd"),
    ]
    assert (source.config(AT).ptoken, source.config(AT).hnative) == ("native;nept", "native;ninj")
    with pytest.raises(SourceError, match="/api/v1/nept/state answers 404"):
        source.ptoken(AT)


def test_without_that_file_a_kind_with_the_brand_is_an_error() -> None:
    source = Deployment({"/assets": ASSETS}).source()
    with pytest.raises(SourceError, match=r"\[1\].classification.kind is 'brand_receipt': must be one of regular, "):
        source.assets(AT)


@pytest.mark.parametrize("line", ["ptoken nept", "brand = x", "hnative = two words"])
def test_a_bad_line_of_names_is_told(line: str, tmp_path: Path) -> None:
    names = names_file(tmp_path, f"# note\nptoken = a\n{line}\n")
    with pytest.raises(SettingError) as error:
        Deployment().source(upstream_names=names)
    assert str(error.value) == (
        f"ANALYTICS_UPSTREAM_NAMES={names}, line 3: {line!r} must be "
        "<one of ptoken, hnative, protocol_receipt_asset, protocol_receipt_token> = <word of upstream>."
    )


def test_a_bad_line_of_addresses_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as error:
        Deployment().following(tmp_path, ALICE, "# note", BOB + "c")
    assert str(error.value) == (
        f"ANALYTICS_ADDRESSES_FILE={tmp_path / 'addresses'}, line 3: '{BOB}c' must be bech32 with a valid checksum, or "
        "0x and 40 hex digits."
    )
    with pytest.raises(SettingError, match=r"ANALYTICS_ADDRESSES_FILE=.*/none cannot be read: No such file or dir"):
        Deployment().source(addresses_file=tmp_path / "none")


@pytest.mark.parametrize("url", ["http://host:8000/base", "https://host"])
def test_a_url_opens_a_deployment(url: str) -> None:
    """Nothing is asked before the first snapshot."""
    source = open_source(f"{url}/", Settings(), FakeStore())
    assert source is not None
    assert (source.spec, source.at_ends, source.history) == (url, True, None)
    source.close()


STATE = {
    "borrower_active": 3,
    "borrower_account_active": "4",
    "lender_active": 5,
    "flash_loan_volume_total": "7.5",
    "loans_originated": {
        "total_value": 30.25,
        "breakdown": [{"asset": spec("native;usd"), "value": "30.25"}, {"asset": spec("token;gem"), "value": 0}],
    },
    "assets": [],
}


def series(**values: Any) -> Callable[[dict[str, str]], Any]:
    """A history of one value for each asset of the group native."""

    def page(query: dict[str, str]) -> Any:
        point = {"t": int(query["start"]) // 3600 * 3600}
        listed = [
            {"asset": spec(f"native;{name}"), "points": [{**point, "v": value}]} for name, value in values.items()
        ]
        return {"series": listed}

    return page


def total(value: Any) -> Callable[[dict[str, str]], Any]:
    def page(query: dict[str, str]) -> Any:
        points = [{"t": int(query["start"]) // 3600 * 3600, "v": value}]
        return {"points": points}

    return page


HISTORY = "/analytics/market/history"


def test_totals_are_those_of_all_users() -> None:
    deployment = Deployment(
        {
            "/analytics/market/state": STATE,
            f"{HISTORY}/liquidations": total("2.5"),
            f"{HISTORY}/liquidations/by-asset": series(usd="2.5", later=None),
        }
    )
    loans = Sum(D("30.25"), {"native;usd": D("30.25"), "token;gem": D(0)})
    source = deployment.source()
    assert source.totals(AT) == Totals(loans, Sum(D("2.5"), {"native;usd": D("2.5")}), D("7.5"))
    assert source.activity(AT) == Activity(3, 4, 5)


def test_the_risk_is_that_of_all_accounts_as_far_as_there_is_a_history_of_it() -> None:
    """As of upstream's own snapshot, after which its histories have no values."""
    answers = {
        "/analytics/market/state": STATE,
        f"{HISTORY}/debt-at-risk": total("2660000.5"),
        f"{HISTORY}/accounts-at-risk": total(None),
    }
    deployment = Deployment(answers, as_of=f"positions=@{SECOND - 700}")
    risk = RiskTotals(debt_at_risk=D("2660000.5"))
    assert deployment.source().risk(AT) == risk
    asked = [query["end"] for path, query in deployment.asked if path.startswith(HISTORY)]
    assert asked == [str(SECOND - 700)] * 4
    assert deployment.source().risk(NOW - timedelta(hours=1)) == risk
    answers["/analytics/market/state"] = refusal(404, "entity_not_found", "at: there is no snapshot of positions.")
    assert deployment.source().risk(AT) == risk


def test_a_deployment_without_a_history_of_liquidations_has_none() -> None:
    totals = Deployment({"/analytics/market/state": STATE}).source().totals(AT)
    assert totals.liquidations is None
    assert totals.loans is not None


def test_a_history_of_liquidations_that_is_out_of_reach_is_an_error() -> None:
    """Else its sums would fall back to those of followed addresses."""
    answers = {"/analytics/market/state": STATE, f"{HISTORY}/liquidations": httpx.Response(404)}
    with pytest.raises(SourceError, match="history/liquidations answers 404"):
        Deployment(answers).source().totals(AT)


@pytest.mark.parametrize("state", [refusal(400, "query_parameter_unknown", "at is not a parameter."), STATE])
def test_totals_of_the_past_come_from_histories(state: Any) -> None:
    """Also from a deployment that does not tell its past state, whose flash loans are unknown."""
    deployment = Deployment(
        {
            "/analytics/market/state": state,
            f"{HISTORY}/loans-originated": total("20"),
            f"{HISTORY}/loans-originated/by-asset": series(usd=20),
        }
    )
    past = NOW - timedelta(hours=1)
    assert deployment.source().totals(past) == Totals(Sum(D(20), {"native;usd": D(20)}), None, None)


def user(**amounts: Any) -> dict[str, Any]:
    """An address with one of everything."""
    claim = {"asset_info": info("native;usd"), "principal": "9", "shares": "8"}
    pool = {"index": 2, "duration": 1, "params": {}, "state": {}}
    stake = {"account_index": 1, "amount": "6", "cascade": True, "transition_at": None, "last_stake_acc": "0.5"}
    return {
        "markets": {
            "borrow": {
                "accounts": [{"index": 1, "collaterals": [claim | {"liquidation_ltv": "0.93"}], "debts": [claim]}],
                "totals": {},
            },
            "lend": {
                "asset_pools": [
                    {"asset_info": info("native;usd"), "receipt_amounts": {"held": "5", "collateralized": 4}}
                ]
            },
        },
        "wallets": {
            "balances": [
                {"asset": spec("native;usd"), "values": {"kind": "known", "amount": "3"}},
                {"asset": spec("native;odd"), "values": {"kind": "unknown", "amount": "2"}},
                {"asset": spec("native;new"), "values": {"kind": "staked elsewhere"}},
            ]
        },
        "ptoken": {
            "staking": {
                "pools": [{"common": pool, "contents": [stake]}],
                "unbonding": {"contents": [{"amount": "7", "unlock_at": "2026-03-01T12:00:00Z"}]},
                "unclaimed": "10",
                "claimable_rewards": "11",
                "claimable_unbonding": "12",
                **amounts,
            },
            "unlocks": {},
        },
    }


POSITION = Position(
    ALICE,
    (Account(1, (Holding("native;usd", 8, None, D("0.93")),), (Holding("native;usd", 8),)),),
    (LendPosition("native;usd", 5, 4),),
    (Balance("native;usd", 3), Balance("native;odd", 2)),
    (Stake(2, 1, 6, True, None, D("0.5")),),
    (Unbonding(7, AT),),
    10,
    11,
    12,
)


def test_positions_are_those_of_the_followed_addresses(tmp_path: Path) -> None:
    """In the order of the file, without addresses that upstream does not know."""
    deployment = Deployment({f"/users/{ALICE}/user": user(), f"/users/{SWAP}/user": user(unclaimed=0)})
    deployment.answers[f"/users/{BOB}/user"] = refusal(404, "entity_not_found", "This address has nothing.")
    source = deployment.following(tmp_path, SWAP, BOB, ALICE, ALICE.upper().replace("X", "x"))
    assert list(source.positions(AT)) == [replace(POSITION, address=SWAP, unclaimed=0), POSITION]


@pytest.mark.parametrize("answer", [httpx.Response(404, html="<h1>Not here</h1>"), refusal(404, "path_unknown")])
def test_a_path_that_is_not_there_does_not_close_positions(answer: httpx.Response, tmp_path: Path) -> None:
    """As behind a proxy that has lost its way."""
    source = Deployment({f"/users/{ALICE}/user": answer}).following(tmp_path, ALICE)
    with pytest.raises(SourceError, match=f"/users/{ALICE}/user answers 404"):
        list(source.positions(AT))


def test_a_malformed_position_names_the_address(tmp_path: Path) -> None:
    source = Deployment({f"/users/{ALICE}/user": user(unclaimed="")}).following(tmp_path, ALICE)
    with pytest.raises(SourceError, match=rf"/users/{ALICE}/user: answer.data.ptoken.staking.unclaimed is ''"):
        list(source.positions(AT))


def test_hundreds_of_addresses_keep_their_order(tmp_path: Path) -> None:
    addresses = [f"0x{number:040x}" for number in range(250)]
    deployment = Deployment({f"/users/{address}/user": user(unclaimed=int(address, 16)) for address in addresses})
    positions = list(deployment.following(tmp_path, *addresses).positions(AT))
    assert [(position.address, position.unclaimed) for position in positions] == [
        (address, number) for number, address in enumerate(addresses)
    ]


def test_without_a_file_nothing_is_asked_about_addresses() -> None:
    deployment = Deployment()
    source = deployment.source()
    assert [*source.positions(AT), *source.events(AT, NOW), *source.swaps(AT)] == []
    assert deployment.asked == []


def test_swap_contracts_are_the_addresses_with_routes(tmp_path: Path) -> None:
    def routes(query: dict[str, str]) -> Any:
        known = query["contract_address"] == SWAP
        listed = [{"source": "uusd", "targets": ["ugem", "uptk"]}]
        return payload(listed, count=1) if known else refusal(404, "entity_not_found", "There is no such contract.")

    source = Deployment({"/swap/routes/all": routes}).following(tmp_path, ALICE, SWAP)
    assert source.swaps(AT) == [SwapContract(SWAP, {"uusd": ("ugem", "uptk")})]


def test_contracts_before_the_first_snapshot_are_an_error_rather_than_none(tmp_path: Path) -> None:
    answer = refusal(404, "entity_not_found", "at: there is no snapshot of routes at or before that moment.")
    source = Deployment({"/swap/routes/all": answer}).following(tmp_path, ALICE)
    with pytest.raises(SourceError, match="at: there is no snapshot of routes"):
        source.swaps(NOW - timedelta(days=1))


class Acts:
    """The events of an address, of which number n happened n seconds before the snapshot."""

    def __init__(self, count: int, **changes: Any) -> None:
        self.changes = changes
        self.events = [
            {
                "event_uuid": f"00000000-0000-4000-8000-{number:012}",
                "event_time": SECOND - number,
                "action": "lend",
                "asset": info("native;usd"),
                "amount": str(number),
                "account_address": ALICE,
                "contract_address": "market",
                "tx_hash": f"T{number}",
                "historic_price": "1",
                "historic_value": f"{number}.5",
            }
            for number in range(count)[:: changes.get("step", 1)]
        ]

    def page(self, query: dict[str, str]) -> bytes:
        """A page after the event that the query names, in descending order."""
        ids = [event["event_uuid"] for event in self.events]
        start = ids.index(query["prev_event_uuid"]) + 1 if "prev_event_uuid" in query else 0
        start += self.changes.get("skip", 0) if start else 0
        start = 0 if self.changes.get("repeat") else start
        size = min(int(query["limit"]), self.changes.get("most", 1000))
        return payload(self.events[start : start + size], count=len(self.events))


def follow(acts: Acts, folder: Path, as_of: int = SECOND) -> Deployment:
    return Deployment({f"/users/{ALICE}/tx-history": acts.page}, as_of=f"loans=@{as_of}, prices=@1")


@pytest.mark.parametrize("most", [1000, 7])
def test_events_are_read_page_by_page_and_come_oldest_first(most: int, tmp_path: Path) -> None:
    deployment = follow(Acts(1200, most=most), tmp_path)
    events = deployment.following(tmp_path, ALICE).events(from_unix(0), END)
    assert [event.amount for event in events] == list(range(1199, -1, -1))
    oldest = events[0]
    assert (oldest.uuid, oldest.at, oldest.usd, oldest.price, oldest.tx_hash, oldest.contract) == (
        "00000000-0000-4000-8000-000000001199",
        from_unix(SECOND - 1199),
        D("1199.5"),
        D(1),
        "T1199",
        "market",
    )


def test_a_tick_reads_no_further_back_than_the_last_one(tmp_path: Path) -> None:
    deployment = follow(Acts(1200), tmp_path)
    source = deployment.following(tmp_path, ALICE)
    events = source.events(from_unix(SECOND - 9), from_unix(SECOND - 1))
    assert [event.amount for event in events] == list(range(9, 1, -1))
    assert len(deployment.asked) == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"repeat": True}, r"data\[0\] .* must follow the event before it"),
        ({"skip": 3}, "the list ends after 397 of 400 events"),
        ({"step": -1}, r"data\[1\] .* must follow the event before it"),
    ],
)
def test_a_page_of_events_that_does_not_follow_is_an_error(
    changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    source = follow(Acts(400, **changes), tmp_path).following(tmp_path, ALICE)
    with pytest.raises(SourceError, match=problem):
        source.events(from_unix(0), END)


def test_events_are_complete_up_to_the_snapshot_of_upstream_which_is_waited_for_some_seconds(tmp_path: Path) -> None:
    deployment = follow(Acts(3), tmp_path, as_of=SECOND - 1)
    source = deployment.following(tmp_path, ALICE)
    assert source.complete_until(AT) == from_unix(SECOND - 1)
    assert source.complete_until(from_unix(SECOND - 1)) == from_unix(SECOND - 1)
    assert [pause for pause in deployment.waited if pause >= 1] == [1, 2, 4]
    assert len(source.events(from_unix(0), END)) == 3
    deployment.as_of = ""
    assert source.complete_until(AT) is None
    assert deployment.source().complete_until(AT) is None


def test_a_value_out_of_range_is_left_to_cost_its_asset_or_address(tmp_path: Path) -> None:
    """As that of any other source. Of two assets, addresses and events each, one can be stored."""
    huge = 2**256
    acts = Acts(2)
    acts.events[0] |= {"amount": huge}
    acts.events[1] |= {"action": "liquidate", "account_index": 0, "historic_value": "-1", "historic_price": "1"}
    prices = [
        {"asset": spec(asset_id), "price": {"price": usd, "last_updated_at": SECOND}}
        for asset_id, usd in (("native;usd", "-1"), ("token;gem", "1"))
    ]
    receipt = changed(ASSETS[1], "classification.kind", "protocol_receipt_token")
    overview = changed(OLDER, "borrow.debts[0].state.time_last_distributed_interest", 10**30)
    deployment = Deployment(
        {
            "/assets": [changed(ASSETS[0], "metadata.decimals_denom", 256), receipt],
            "/assets/prices": payload(prices, count=2),
            "/markets": changed(overview, "lend[0].rate.apr", "-2"),
            "/markets/lend": [changed(LEND, "rate.apr", "NaN")],
            "/markets/borrow/debts": [DEBT],
            f"/users/{ALICE}/user": user(claimable_rewards=huge),
            f"/users/{BOB}/user": user(),
            f"/users/{ALICE}/tx-history": acts.page,
            f"/users/{BOB}/tx-history": payload([], count=0),
        }
    )
    source, rejections = deployment.following(tmp_path, ALICE, BOB), Rejections()
    rates = source.rates(AT)
    with rejections:
        assert [asset.symbol for asset in rejections.valid_records("assets", source.assets(AT), Asset)] == ["rUSD"]
        assert [price.asset_id for price in rejections.valid_records("prices", source.prices(AT), Price)] == [
            "token;gem"
        ]
        assert [market.asset_id for market in rejections.valid_records("markets", source.markets(AT), Market)] == [
            "token;gem"
        ]
        assert rejections.valid_records("lend rates", [Apr(*item) for item in rates.lend.items()], Apr) == []
        assert [
            position.address for position in rejections.valid_records("positions", source.positions(AT), Position)
        ] == [BOB]
        assert [
            event.amount for event in rejections.valid_records("events", source.events(from_unix(0), END), Event)
        ] == [1]
    assert rates.borrow == {"native;usd": D("0.1")}


SIMULATED = SimulatedSource("1")


def distribution(at: datetime) -> Any:
    """The groups of the simulated protocol, as a deployment shows them."""
    groups = []
    for group in unlock_groups(SIMULATED.arrangements(at), at):
        amounts = group.amounts
        shown = {f"amount_{name}": str(getattr(amounts, name)) for name in ("claimed", "claimable", "unlocked")}
        shown |= {f"amount_{name}": str(getattr(amounts, name)) for name in ("reclaimed", "expired")}
        rest = {"amount_staked": str(group.staked), "amount_held": str(group.held), "amount": str(amounts.amount)}
        groups.append({"member_class": str(group.member_class), **shown, **rest})
    return {"groups": groups}


@pytest.mark.parametrize("days", [0, 31, 200])
def test_stand_ins_have_the_sums_of_each_group(days: int) -> None:
    """At any instant: what is claimed, claimable, unlocked, locked, expired and reclaimed, staked and held."""
    at = from_unix(LAUNCH + 86_400 * days)
    answers = {"/analytics/ptoken/unlocks-distribution": distribution(at)}
    deployment = Deployment(answers, as_of=f"ptoken=@{unix_second(at)}")
    stand_ins = deployment.source().arrangements(at)
    ours, theirs = unlock_groups(stand_ins, at), unlock_groups(SIMULATED.arrangements(at), at)
    assert [(group.member_class, replace(group.amounts, locked=0), group.staked, group.held) for group in ours] == [
        (group.member_class, replace(group.amounts, locked=0), group.staked, group.held) for group in theirs
    ]
    assert len(stand_ins) <= 8 * len(MemberClass)


def shown_unlocks(arrangements: list[Arrangement], at: datetime) -> Any:
    """The arrangements of an address, as a deployment shows them."""

    def time(moment: datetime | None) -> str | None:
        return None if moment is None else moment.isoformat()

    listed = []
    for one in arrangements:
        amounts = unlock_amounts(one, at)
        names = ("amount", "claimed", "claimable", "locked", "expired", "reclaimed")
        listed.append(
            {
                "begins_at": time(one.begins_at),
                "schedule": {"kind": str(one.kind), "ends_at": time(one.ends_at)},
                "last_claimed_at": time(one.last_claimed_at),
                "expires_at": time(one.expires_at),
                "admin": {"address": one.admin, "issued_reclaim": one.reclaimed_at is not None},
                "amounts": {name: str(getattr(amounts, name)) for name in names},
            }
        )
    return {"arrangements": listed}


@pytest.mark.parametrize("days", [100, 423, *(pytest.param(days, marks=pytest.mark.slow) for days in (900, 2000))])
def test_arrangements_of_followed_addresses_have_their_amounts_now_and_later(days: int, tmp_path: Path) -> None:
    """Although the interface does not tell when they were reclaimed. In the groups they do not count once more."""
    at, later = from_unix(LAUNCH + 86_400 * days), from_unix(LAUNCH + 86_400 * (days + 200))
    theirs = SIMULATED.arrangements(at)
    by_address: dict[str, list[Arrangement]] = {}
    for arrangement in theirs:
        by_address.setdefault(arrangement.address, []).append(arrangement)
    answers = {f"/users/{address}/ptoken/unlocks": shown_unlocks(listed, at) for address, listed in by_address.items()}
    answers["/analytics/ptoken/unlocks-distribution"] = distribution(at)
    deployment = Deployment(answers, as_of=f"ptoken=@{unix_second(at)}")
    ours = deployment.following(tmp_path, *by_address).arrangements(at)
    for address, listed in by_address.items():
        own = [arrangement for arrangement in ours if arrangement.address == address]
        for moment in (at, later):
            assert [unlock_amounts(one, moment) for one in own] == [unlock_amounts(one, moment) for one in listed]
    assert [group.amounts.amount for group in unlock_groups(ours, at)] == [
        group.amounts.amount for group in unlock_groups(theirs, at)
    ]
    assert any(one.reclaimed_at for one in ours if one.member_class is None)


def test_a_group_that_contradicts_itself_is_an_error() -> None:
    groups = changed(distribution(AT), "groups[1].amount", "1")
    source = Deployment({"/analytics/ptoken/unlocks-distribution": groups}).source()
    with pytest.raises(SourceError, match=r"groups\[1\] .*: has inconsistent amounts"):
        source.arrangements(AT)
