"""The README lists every setting, and begins with a command that works."""

import re
from pathlib import Path

import pytest

from analytics_service.config.settings import SettingRow, table
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


@pytest.mark.parametrize("row", list(table()), ids=lambda row: row.name)
def test_every_setting_is_in_the_table_with_its_default_and_help(row: SettingRow) -> None:
    assert settings_line(row) in README


def settings_line(row: SettingRow) -> str:
    """A setting's line in the README's table."""
    default = f"`{row.default}`" if row.default else ""
    shown = {"data_dir": "the user's data directory"}.get(row.name, default)
    return f"| `{row.variable}` | {shown} | {row.help.replace('|', '/')} |"


def test_it_begins_with_a_paragraph_a_command_its_result_and_a_second_command() -> None:
    parts = re.split(r"^```(?:sh)?$", README, flags=re.MULTILINE)
    title, first, seen, second = parts[:4]
    assert len(title.strip().splitlines()) == 3
    assert first.strip().endswith("analytics-service up")
    assert "http://127.0.0.1:8000" in seen
    assert second.strip().endswith("-m pytest")


def test_the_sample_addresses_are_those_of_the_simulated_protocol() -> None:
    for address in (RICH_ADDRESS, EMPTY_ADDRESS, SWAP_CONTRACT):
        assert f"`{address}`" in README
