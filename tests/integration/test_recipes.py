"""The recipe of events, and events of others: what the store then has, or what is told."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from analytics_service.config.settings import Settings
from tests.integration.imports import query
from tests.unit.test_recipes import BY_NAME, SHARED, Recipe, write

ALICE = "0x" + "3" * 40
LOANS = f"""\
transaction_type,symbol,borrower,amount,amount_usd,block_time,tx_hash
borrow,USDC,{ALICE},1500.5,1500.6,2024-01-02 10:00:11.000 UTC,0xbb
repay,USDC,{ALICE},-500.5,-500.6,2024-01-03 10:00:11.000 UTC,0xcc
"""
ASSETS = "symbol,address,decimals\nUSDC,0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48,6\n"
PRICES = "analytics-service import price prices.csv --asset-column symbol --value price --assets assets.csv"


def events(settings: Settings) -> list[tuple[object, ...]]:
    """Each action, its amount in denom units, and its value."""
    return query(settings, "SELECT action, toString(amount), toString(usd) FROM event_version FINAL ORDER BY ALL")


@pytest.mark.usefixtures("store")
def test_a_recipe_makes_events(settings: Settings, tmp_path: Path) -> None:
    write(tmp_path, {"dune-loans.csv": LOANS, "assets.csv": ASSETS})
    done = BY_NAME["loans.csv"].run(tmp_path, settings)
    assert done.exit_code == 0, done.output
    expected = [("borrow", "1500500000", "1500.6"), ("return", "500500000", "500.6")]
    assert events(settings) == expected


ROWS = "timestamp AS time, lower(action) AS action, user AS address, symbol, amount AS amount_denom, id"
INDEXED = "block_time AS time, action, borrower AS address, symbol, amount AS units, amount_usd AS usd, tx_hash"


@pytest.mark.skipif(not SHARED.exists(), reason="ANALYTICS_TEST_DATA is not set")
@pytest.mark.usefixtures("store")
def test_events_of_others_are_valued_at_prices_of_days_before(settings: Settings, tmp_path: Path) -> None:
    """Where a file states no value."""
    settings = replace(settings, price_max_age=7 * 86_400)
    for file in ("w01_decimals_prices.csv", "w01_decimals_events.csv", "w11_evt_index.csv", "assets.csv"):
        shutil.copy(SHARED / file, tmp_path / file.replace("w01_decimals_prices", "prices"))
    recipes = [Recipe("", PRICES)]
    for file, columns in (("w01_decimals_events.csv", ROWS), ("w11_evt_index.csv", INDEXED)):
        code = f"duckdb.sql(\"SELECT {columns} FROM read_csv('{file}', all_varchar=true)\").write_csv('events.csv')"
        recipes.append(Recipe(code, "analytics-service import events events.csv"))
    for recipe in recipes:
        done = recipe.run(tmp_path, settings)
        assert done.exit_code == 0, done.output
    # 1,500.5 at 1.0001 USD, and 2.5 at 2,352.12 USD; the others state theirs.
    assert events(settings) == [
        ("borrow", "100000000", "100"),
        ("borrow", "1500500000", "1500.65005"),
        ("borrow", "2500000000000000000", "5880.3"),
        ("borrow", "300000000", "300"),
    ]
