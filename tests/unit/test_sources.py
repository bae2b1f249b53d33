"""Opening sources by their specs."""

from contextlib import closing
from pathlib import Path

import pytest

from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError
from analytics_service.sources.registry import open_source
from analytics_service.store.ownership import is_same_source
from tests.doubles import FakeStore

MODULE = """
from analytics_service.sources.base import Source

class Chain(Source):
    def __init__(self, rest):
        if not rest.startswith("http"):
            raise ValueError("must be chain:http://node:1317")
        self.spec = f"chain:{rest}"
    spec = ""

class Lagoon(Source):
    def __init__(self, rest):
        self.spec = f"lagune:{rest}"
    spec = ""

def away(rest):
    raise ConnectionError(f"{rest} is down")

def takes_nothing():
    pass
"""
ENTRY_POINTS = """
[analytics_service.sources]
chain = chain_source:Chain
broken = chain_source:Missing
absent = no_such_module:Source
away = chain_source:away
lagoon = chain_source:Lagoon
takes_nothing = chain_source:takes_nothing
unset = needs_a_variable:Source
"""


@pytest.fixture
def _chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that provides sources."""
    (tmp_path / "chain_source.py").write_text(MODULE)
    (tmp_path / "needs_a_variable.py").write_text("import os; os.environ['CHAIN_RPC_THAT_IS_NOT_SET']")
    metadata = tmp_path / "chain_source-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: chain-source\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(("spec", "opened"), [("simulated", "simulated:1"), ("simulated:winter", "simulated:winter")])
def test_a_simulated_source_is_named_with_its_seed(spec: str, opened: str) -> None:
    source = open_source(spec, Settings(), FakeStore())
    assert source is not None
    assert source.spec == opened


def test_none_opens_no_source() -> None:
    assert open_source("none", Settings(), FakeStore()) is None


@pytest.mark.parametrize("spec", ["simulated", "sql:mine", "http://host:8000", "none"])
def test_a_file_of_addresses_that_is_not_there_is_an_error_under_every_source(tmp_path: Path, spec: str) -> None:
    with pytest.raises(SettingError, match=r"^ANALYTICS_ADDRESSES_FILE=.*/none cannot be read: No such file"):
        open_source(spec, Settings(addresses_file=tmp_path / "none"), FakeStore())


@pytest.mark.parametrize("spec", ["simulate", "simulated:a b", "simulated:a:b", "sql", "sql:", "sql:a-b", "sql:1a"])
def test_any_other_spec_is_refused_with_what_is_allowed(spec: str) -> None:
    allowed = "must be simulated, simulated:<seed>, https://<host>, sql:<database> or none"
    with pytest.raises(SettingError, match=allowed):
        open_source(spec, Settings(), FakeStore())


def test_a_password_in_a_refused_url_is_not_shown() -> None:
    with pytest.raises(SettingError, match=r"'https://\*\*\*@host' is not a source: it must look like https://host"):
        open_source("https://user:secret@host", Settings(), FakeStore())


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://host/base", True),
        ("https://other/base", False),
        ("chain:postgres://me:new@host/db/", True),
        ("chain:postgres://host/db", True),
        ("chain:postgres://host/other", False),
        ("other:postgres://host/db", False),
    ],
)
def test_specs_that_differ_in_credentials_or_a_slash_at_the_end_name_one_source(other: str, same: bool) -> None:
    own = "https://host/base/" if other.startswith("https") else "chain:postgres://me:o/l@d@host/db"
    assert is_same_source(own, other) is same


@pytest.mark.usefixtures("_chain")
def test_a_source_of_another_package_is_found_by_its_entry_point() -> None:
    """Unless it says otherwise, it is real, without cheap history and sample account, and there is nothing to close."""
    source = open_source("chain:http://node:1317", Settings(), FakeStore())
    assert source is not None
    with closing(source):
        assert (source.spec, source.history, source.sample_account) == ("chain:http://node:1317", None, "")
        assert not source.simulated
        assert source.may_hang


@pytest.mark.usefixtures("_chain")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("chain:ftp", "'chain:ftp' is not a source: it must be chain:http://node:1317."),
        ("broken", r"The source broken \(chain_source:Missing\) cannot be loaded"),
        ("absent", r"The source absent \(no_such_module:Source\) cannot be loaded"),
        ("away:node", "The source away cannot be opened: ConnectionError: node is down"),
        (
            "lagoon:a",
            "The source lagoon has the spec 'lagune:a', which does not open it. Its `spec` must be lago",
        ),
        ("takes_nothing", r"The source takes_nothing cannot be opened: TypeError: takes_nothing\(\) takes 0"),
        ("unset", r"The source unset \(needs_a_variable:Source\) cannot be loaded: KeyError: 'CHAIN_RPC_THAT"),
        ("chian", "must be simulated, .* or none, or an installed one: absent, away, broken, chain, "),
    ],
)
def test_a_source_that_cannot_be_opened_is_explained(spec: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        open_source(spec, Settings(), FakeStore())
