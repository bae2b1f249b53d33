"""What ANALYTICS_METRICS_VALUES may name, and the names of the metrics that show it."""

import re

import pytest

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.config.values import names
from analytics_service.errors import SettingError
from analytics_service.resources.metrics import name_of
from analytics_service.state.values import Chosen, chosen_values
from analytics_service.store.histories import DEBT_AT_RISK, HISTORIES, PRICES
from tests.unit.test_cli import run

ADDRESS = "0x" + "A" * 40


def chosen(value: str) -> Chosen:
    return chosen_values(Settings(metrics_values=names(value)))


def test_histories_are_named_as_for_import_or_with_underscores_and_addresses_by_themselves() -> None:
    assert chosen(f"debt_at_risk,price,{ADDRESS},{ADDRESS.lower()}") == Chosen(
        (PRICES, DEBT_AT_RISK), (ADDRESS.lower(),)
    )
    assert chosen("tvl,all") == Chosen(HISTORIES)
    assert chosen_values(Settings()) == Chosen()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tvl,prices", r"'prices' is neither an address nor one of all, price, .*bad-debt \(did you mean price\?\)\.$"),
        (ADDRESS + "A", r"'0xA+' is neither an address"),
        (",".join(f"0x{number:040x}" for number in range(51)), "it must have at most 50 addresses, and has 51"),
    ],
)
def test_what_cannot_be_shown_is_refused_at_the_start(value: str, message: str) -> None:
    settings = Settings(metrics_values=names(value))
    with pytest.raises(SettingError, match=f"^ANALYTICS_METRICS_VALUES={value[:80]} is not usable: .*{message}"):
        create_app(settings)
    refused = run("serve", ANALYTICS_METRICS_VALUES=value)
    assert (refused.exit_code, bool(re.search(message, refused.stderr.strip()))) == (2, True)


def test_the_names_of_metrics_are_those_that_prometheus_recommends() -> None:
    """Units at the end, in full, no two alike."""
    shown = {history.slug: name_of(history) for history in HISTORIES}
    assert shown["price"] == "analytics_price_usd"
    assert shown["borrow-rate"] == "analytics_borrow_rate_ratio"
    assert shown["accounts-at-risk"] == "analytics_accounts_at_risk"
    assert all(re.fullmatch(r"analytics(_[a-z]+)+", name) for name in shown.values())
    assert len(set(shown.values())) == len(HISTORIES)
