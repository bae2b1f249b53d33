"""What the hot paths cost, each compared with a peer: `python -m tests.benchmarks [FOLDER] [--only PART,...]`.

The exit code is 1 when a bound is missed or a figure cannot be measured. Everything is started here, on loopback, and
stopped again: an embedded ClickHouse, gunicorn, and VictoriaMetrics, which must be installed (apt-get install
victoria-metrics). All parts together take 15 minutes on two cores.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from tests.benchmarks import (
    current,
    first_page,
    growth,
    ingest,
    pages,
    positions,
    quiet,
    risk,
    ticks,
)
from tests.benchmarks.bench import DATA, Bench
from tests.benchmarks.harness import Figure, NotMeasured
from tests.clickhouse import by_url


@dataclass(frozen=True, slots=True)
class Part:
    """A group of figures that can be measured on its own."""

    title: str
    run: Callable[[Bench], Iterator[Figure]]


PARTS = {
    "pages": Part("New history pages, one worker, beside VictoriaMetrics", pages.run),
    "first": Part("The first history page after a start, beside ClickHouse", first_page.run),
    "current": Part("Repeated answers, one worker, beside a bare Falcon application", current.run),
    "growth": Part("Pages of 100,000,000 rows beside those of 1,000,000; memory of a worker", growth.run),
    "ingest": Part("Imports of files, beside ClickHouse's own", ingest.run),
    "quiet": Part("A quiet `up`: its first start, statements and processor time", quiet.run),
    "ticks": Part("Snapshots of 1,000 prices and of 100,000 accounts", ticks.run),
    "positions": Part("Positions of --accounts addresses: snapshots, risk, memory, lookups", positions.run),
    "risk": Part("Risk of 100,000 accounts, beside the health of each account", risk.run),
}


def main() -> int:
    """Measure, print each figure, and return 1 when a bound is missed."""
    given = _arguments()
    kept = True
    with (
        tempfile.TemporaryDirectory() as data,
        clickhouse(Settings(data_dir=Path(data), workers=1, source="none"), "benchmark") as settings,
    ):
        bench = Bench(by_url(settings), given.folder, given.rows, given.seed, given.accounts)
        for name in given.only:
            kept = _run(name, bench) and kept
    return 0 if kept else 1


def _run(name: str, bench: Bench) -> bool:
    """Print a part's figures, and return whether all bounds were kept."""
    part = PARTS[name]
    begun, kept = time.monotonic(), True
    print(f"\n{name}: {part.title}", flush=True)
    try:
        for figure in part.run(bench):
            print(f"  {figure}", flush=True)
            kept = kept and figure.kept
    except NotMeasured as error:
        print(f"  NOT MEASURED: {error}", flush=True)
        kept = False
    print(f"  ({time.monotonic() - begun:.0f} s)", flush=True)
    return kept


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Prints what the hot paths cost beside their peers. Exit code 1 when a bound is missed.",
        epilog="Parts:\n" + "\n".join(f"  {name:10} {part.title}" for name, part in PARTS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=_folder,
        default=os.environ.get(DATA),
        help=f"folder with assets.csv and prices_hourly.csv.gz (default: ${DATA})",
    )
    parser.add_argument(
        "--only",
        type=_parts,
        default=[*PARTS],
        metavar="PART,...",
        help="these parts only, in the order given (default: all)",
    )
    parser.add_argument("--rows", type=_rows, help="rows of `growth`'s large database (default: 100,000,000)")
    parser.add_argument("--seed", default="1", help="another one draws other pages (default: 1)")
    parser.add_argument(
        "--accounts", type=_count, default=1_000_000, help="addresses of `positions` (default: 1,000,000)"
    )
    return parser.parse_args()


def _folder(value: str) -> Path:
    if not (Path(value) / "prices_hourly.csv.gz").is_file():
        raise argparse.ArgumentTypeError(f"{value} holds no prices_hourly.csv.gz")
    return Path(value)


def _parts(value: str) -> list[str]:
    names = value.split(",")
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(PARTS)}")
    return names


def _count(value: str) -> int:
    count = int(value.replace(",", "").replace("_", ""))
    if count < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return count


def _rows(value: str) -> int:
    rows = _count(value)
    if rows < 2_000_000 or rows % 1_000_000:
        raise argparse.ArgumentTypeError("must be 2,000,000 or more, in whole millions")
    return rows


if __name__ == "__main__":
    sys.exit(main())
