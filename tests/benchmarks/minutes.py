"""Prices at regular intervals, generated and inserted by ClickHouse."""

import sys
import time
from contextlib import closing

from clickhouse_connect.driver.client import Client

from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.store.cells import close_cells
from analytics_service.store.connection import Store
from analytics_service.store.ledger import LEDGER, Run, ledger_frame, new_version
from tests.clickhouse import client
from tests.stored import write_assets

# Of one INSERT, and how long the merges after the last one may take.
_ROWS_AT_ONCE = 2_000_000
_SETTLE_SECONDS = 300
_MERGES = "SELECT count() FROM system.merges WHERE database = currentDatabase()"

# Prices in units of 10^-18 USD, of an asset (from 0) at a place in the range (from 0), in SQL.
WALK = "toInt128(200000 + asset * 76543 + walk) * toInt128('10000000000000000')"
HOURLY = "toInt128(200000 + cityHash64(asset, intDiv(place, 60)) % 9973) * toInt128('10000000000000000')"
NOISE = (
    "toInt128(2000 + asset * 765) * toInt128('1000000000000000000') + "
    "toInt128(cityHash64(asset, place) % 1000000000000000000)"
)
# Versions: the nanosecond at which a job of the instant began to write, or an import's, the same for all rows.
JOBS = "toUInt64(begin + step * place) * 1000000000 + cityHash64(begin, place) % 1000000000"
IMPORT = "toUInt64(1760000000000000000)"

_INSERT = """
INSERT INTO observation
WITH {begin} AS begin, {step} AS step
SELECT
    'price' AS history,
    'token;' || address AS asset_id,
    toDateTime(begin + step * place, 'UTC') AS observed_at,
    reinterpret({price}, 'Decimal(38, 18)') AS value,
    {version} AS version
FROM
(
    SELECT
        number AS asset,
        '0x' || leftPad(lower(hex(number)), 40, '0') AS address,
        range({count}) AS places,
        -- Cents away from where the walk began; a step is at most ten.
        arrayCumSum(place -> toInt64(cityHash64(number, begin, place) % 21) - 10, places) AS walks
    FROM numbers({assets})
)
ARRAY JOIN places AS place, walks AS walk
"""


def insert_prices(
    own: Client, assets: int, begin: int, step: int, count: int, price: str = WALK, version: str = JOBS
) -> None:
    """Insert `count` observations of each asset, the first at unix second `begin`, `step` seconds apart."""
    statement = _INSERT.format(assets=assets, begin=begin, step=step, count=count, price=price, version=version)
    own.command(statement)


def fill(settings: Settings, assets: int, first: int, step: int, count: int, *, price: str = WALK) -> None:
    """Make `count` observations of each asset visible, from unix second `first` on, `step` seconds apart: inserted some
    two million at once, and merged."""
    at_once = _ROWS_AT_ONCE // assets
    with closing(Store(settings)) as store, client(settings) as own:
        for done in range(0, count, at_once):
            insert_prices(own, assets, first + done * step, step, min(at_once, count - done), price)
            rows = min(done + at_once, count) * assets
            print(f"\r{settings.clickhouse_database}: {rows:,} rows", end="", file=sys.stderr, flush=True)
        _register(store, assets, first, first + (count - 1) * step, count * assets)
        _settle(own)
    print(file=sys.stderr)


def _register(store: Store, assets: int, first: int, last: int, rows: int) -> None:
    """Make these prices visible, as an import would: with cells, definitions of the assets, and a row in the ledger."""
    version = new_version(store)
    close_cells(store, ["price"], first - 1, last)
    write_assets(store, [_asset(number) for number in range(assets)], version)
    store.insert(LEDGER, ledger_frame([Run("prices", last, "import", first, last, rows, "benchmark", version)]))


def _settle(own: Client) -> None:
    """Return when ClickHouse has started no merge of its own for three seconds."""
    deadline, quiet = time.monotonic() + _SETTLE_SECONDS, 0
    while quiet < 3:
        if time.monotonic() > deadline:
            raise RuntimeError(f"ClickHouse still merges after {_SETTLE_SECONDS} s.")
        time.sleep(1)
        quiet = 0 if own.query(_MERGES).result_rows[0][0] else quiet + 1


def _asset(number: int) -> Asset:
    return Asset(AssetGroup.TOKEN, f"0x{number:040x}", f"Asset {number}", f"A{number}", f"a{number}", 18, 4)
