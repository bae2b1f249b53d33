"""What all tests share. Random tests take other numbers in every run; what a failed one took is printed."""

import gc
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests share their processors with ClickHouse and each other, so how long an example takes says nothing about it. A few
# examples are enough, because every run takes others.
settings.register_profile(
    "tests", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="seed of random tests, as printed by one that failed")


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what lives as long as the tests do: modules, and thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers. The seed is shown when the test fails, and `--seed` repeats it."""
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    print(f"The same numbers again: --seed {seed}")
    return random.Random(seed)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder, in which temporary files are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder
