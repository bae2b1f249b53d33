"""Settings: every malformed one is an error that names it, and environment variables are the only way in."""

from pathlib import Path

import pytest

from analytics_service.config.parsers import Intervals
from analytics_service.config.settings import PREFIX, Settings, table
from analytics_service.errors import SettingError

# A value of each setting, at its limit if it has one, and what it is parsed to.
WELL_FORMED: dict[str, tuple[str, object]] = {
    "BIND": ("[::1]:65535", "[::1]:65535"),
    "METRICS_BIND": ("0.0.0.0:9000", "0.0.0.0:9000"),
    "WORKERS": ("512", 512),
    "SOURCE": ("simulated:seven", "simulated:seven"),
    "SOURCE_TIMEOUT": ("86400", 86_400),
    "PRICE_MAX_AGE": ("3600", 3_600),
    "EVENTS_LATENESS": ("7200", 7_200),
    "DATA_DIR": ("/var/lib/analytics", Path("/var/lib/analytics")),
    "SQL_PORT": ("8123", 8123),
    "CLICKHOUSE_URL": ("https://clickhouse.example:8443/", "https://clickhouse.example:8443"),
    "CLICKHOUSE_USER": ("reader", "reader"),
    "CLICKHOUSE_PASSWORD": ("secret", "secret"),
    "CLICKHOUSE_DATABASE": ("_x9", "_x9"),
    "CLICKHOUSE_CLUSTER": ("main-1", "main-1"),
    "QUERY_TIMEOUT": ("600", 600),
    "HISTORY_MEMORY": ("0", 0),
    "ANSWER_MEMORY": ("65536", 65_536),
    "TZ": ("Asia/Kathmandu", "Asia/Kathmandu"),
    "CORS_ORIGINS": ("https://a.example, http://[::1]:3000", "https://a.example, http://[::1]:3000"),
    "API_KEYS_FILE": ("/etc/keys.txt", Path("/etc/keys.txt")),
    "ADDRESSES_FILE": ("/etc/addresses", Path("/etc/addresses")),
    "UPSTREAM_KEY": ("aB-1", "aB-1"),
    "UPSTREAM_NAMES": ("/etc/names", Path("/etc/names")),
    "EVERY": ("prices=1, routes=86400", Intervals(prices=1, routes=86_400)),
    "LOG_LEVEL": ("warning", "warning"),
    "LOG_FORMAT": ("json", "json"),
    "ACCESS_LOG": ("true", True),
    "READY_MAX_AGE": ("3600", 3600),
}
ENVIRONMENT = {PREFIX + name: value for name, (value, _) in WELL_FORMED.items()}

MALFORMED = [
    ("BIND", ["8000", ":8000", "127.0.0.1:0", "127.0.0.1:65536", "http://127.0.0.1:8000", "::1:8000"]),
    # A digit for Python's str.isdigit, but not for int; and one that int() takes.
    ("BIND", ["127.0.0.1:\N{SUPERSCRIPT TWO}"]),
    ("WORKERS", ["0", "513", "1.0", "\N{ARABIC-INDIC DIGIT THREE}"]),
    # The last one is longer than the paths of sockets are.
    ("BIND", ["unix:http.sock", "unix:/run/a b.sock", f"unix:/{107 * 'a'}"]),
    ("METRICS_BIND", ["None"]),
    ("SOURCE", ["simulate", "simulated:", "none:1", "http:", "https://", "https://host:0", "ftp://host"]),
    ("SOURCE", ["https://user:pw@host", "https://host/?a=b", "https://host#", "https://host//base"]),
    ("SOURCE", ["https://host/../base", "https://host/api/v1", "https://host/api/v1/", "https://host /base"]),
    ("ADDRESSES_FILE", [""]),
    ("UPSTREAM_KEY", ["", "two words", "ä"]),
    ("UPSTREAM_NAMES", [""]),
    ("SOURCE_TIMEOUT", ["0"]),
    ("PRICE_MAX_AGE", ["0", "1d"]),
    ("EVENTS_LATENESS", ["-1", "1h"]),
    ("DATA_DIR", ["", "~nobody-of-this-name/data"]),
    ("SQL_PORT", ["0", "65535"]),
    ("CLICKHOUSE_URL", ["http://clickhouse", "http://clickhouse:port", "http://clickhouse:0", "tcp://clickhouse:9000"]),
    (
        "CLICKHOUSE_URL",
        ["http://user:pw@clickhouse:8123", "http://@clickhouse:8123", "http://clickhouse:8123/database"],
    ),
    ("CLICKHOUSE_URL", [" http://clickhouse:8123", "http://clickhouse:8123#", "http://clickhouse:8123?"]),
    # urlsplit drops a tab.
    ("CLICKHOUSE_URL", ["http://click\thouse:8123", "http://a:8123,http://b:8123", "http://-a:8123"]),
    ("CLICKHOUSE_URL", ["http://[::g]:8123", "http://[::1]x:8123"]),
    ("CLICKHOUSE_USER", [""]),
    ("CLICKHOUSE_DATABASE", ["9lives", "a`; DROP DATABASE b", "system", "INFORMATION_SCHEMA"]),
    ("CLICKHOUSE_CLUSTER", ["main'"]),
    ("QUERY_TIMEOUT", ["0", "601"]),
    ("HISTORY_MEMORY", ["65537"]),
    ("ANSWER_MEMORY", ["65537"]),
    # The last two are files in the system's folder of zones.
    ("TZ", ["Mars/Olympus", "localtime", "Factory"]),
    ("CORS_ORIGINS", ["a.example", "https://a.example/", "https://A.example", "*,https://a.example"]),
    ("CORS_ORIGINS", ["https://*.a.example", "https://a.example,http://localhost:*"]),
    ("API_KEYS_FILE", [""]),
    # All intervals have one parser.
    ("EVERY", ["", "60", "prices", "price=60", "prices=0", "prices=86401", "prices=60,prices=60"]),
    ("LOG_LEVEL", ["INFO"]),
    ("LOG_FORMAT", ["JSON"]),
    ("ACCESS_LOG", ["yes"]),
    ("READY_MAX_AGE", ["0"]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MALFORMED for value in values])
def test_a_malformed_setting_is_an_error_that_names_it(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"^{PREFIX}{name}=.* is not usable: it must "):
        Settings.from_environment({PREFIX + name: value})


def test_every_setting_is_parsed_from_its_variable() -> None:
    settings = Settings.from_environment(ENVIRONMENT)
    assert {name: getattr(settings, name.lower()) for name in WELL_FORMED} == {
        name: parsed for name, (_, parsed) in WELL_FORMED.items()
    }


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("METRICS_BIND", "none", "none"),
        ("METRICS_BIND", "unix:/run/ops.sock", "unix:/run/ops.sock"),
        ("BIND", f"unix:/{106 * 'a'}", f"unix:/{106 * 'a'}"),
        ("SOURCE", "none", "none"),
        ("SOURCE", "simulated", "simulated"),
        ("SOURCE", "https://host", "https://host"),
        ("SOURCE", "http://[::1]:8000/a.b/c/", "http://[::1]:8000/a.b/c"),
        ("CORS_ORIGINS", "*", "*"),
        ("CLICKHOUSE_URL", "http://db_1:8123", "http://db_1:8123"),
        ("CLICKHOUSE_URL", "http://a-b.example.:8123", "http://a-b.example.:8123"),
        ("CLICKHOUSE_URL", "HTTP://[fd00::2]:8123", "HTTP://[fd00::2]:8123"),
    ],
)
def test_a_setting_may_have_other_forms(name: str, value: str, parsed: object) -> None:
    assert getattr(Settings.from_environment({PREFIX + name: value}), name.lower()) == parsed


def test_the_values_above_cover_every_setting() -> None:
    names = {row.name.upper() for row in table()}
    assert {*WELL_FORMED} == names
    # Any text is a password.
    assert {name for name, _ in MALFORMED} == names - {"CLICKHOUSE_PASSWORD"}


def test_an_unknown_setting_is_an_error_that_suggests_the_one_meant() -> None:
    with pytest.raises(SettingError, match=r"ANALYTICS_WORKER is not a setting\. Did you mean ANALYTICS_WORKERS\?"):
        Settings.from_environment({"ANALYTICS_WORKER": "2"})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PATH", "/bin"),
        ("WORKERS", "9"),
        ("ANALYTICS_TEST_DATA", "/data"),
        # What Kubernetes says of services with such names.
        ("ANALYTICS_SERVICE_HOST", "10.0.0.1"),
        ("ANALYTICS_SERVICE_SERVICE_PORT_HTTP", "8000"),
        ("ANALYTICS_PORT", "tcp://10.0.0.1:8000"),
        ("ANALYTICS_SERVICE_PORT_8000_TCP", "tcp://10.0.0.1:8000"),
        ("ANALYTICS_READ_PORT_53_UDP_PROTO", "udp"),
    ],
)
def test_other_variables_are_left_alone(variable: str, value: str) -> None:
    assert Settings.from_environment({variable: value}) == Settings()


def test_an_option_wins_over_its_variable() -> None:
    settings = Settings.from_environment(
        {PREFIX + "SOURCE": "none", PREFIX + "TZ": "Asia/Kolkata"}, source="simulated:7"
    )
    assert (settings.source, settings.tz) == ("simulated:7", "Asia/Kolkata")


def test_a_malformed_key_is_not_shown() -> None:
    with pytest.raises(SettingError, match=r"^ANALYTICS_UPSTREAM_KEY=\*\*\* is not usable: it must be letters"):
        Settings.from_environment({"ANALYTICS_UPSTREAM_KEY": "s3cret key"})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("http://bob:s3cret@db:8123", "'http://***@db:8123'"),
        ("http://bob:s3@cr/et?#@db:8123", "'http://***@db:8123'"),
        ("http://bob:s3\ncret@db:8123", "'http://***@db:8123'"),
        # Where the value is cut off, the @ is missing.
        (f"http://bob:s3cret{'t' * 100}@db:8123", "'http://***@db:8123'"),
    ],
)
def test_a_password_in_a_url_is_not_shown(value: str, shown: str) -> None:
    with pytest.raises(SettingError) as error:
        Settings.from_environment({"ANALYTICS_CLICKHOUSE_URL": value})
    assert str(error.value).startswith(f"ANALYTICS_CLICKHOUSE_URL={shown} is not usable: it must ")


def test_metrics_have_a_port_of_their_own() -> None:
    with pytest.raises(SettingError, match=r"ANALYTICS_METRICS_BIND=127\.0\.0\.1:8001 is not usable: .*, or none\."):
        Settings.from_environment({}, bind="0.0.0.0:8001")
    assert Settings.from_environment({"ANALYTICS_METRICS_BIND": "none"}, bind="0.0.0.0:8001").binds == ("0.0.0.0:8001",)
    assert Settings().binds == ("127.0.0.1:8000", "127.0.0.1:8001")


def test_settings_pass_through_the_environment_of_a_child_unchanged() -> None:
    settings = Settings.from_environment(ENVIRONMENT)
    assert Settings.from_environment(settings.to_environment({})) == settings


def test_every_setting_says_what_it_is_for() -> None:
    for row in table():
        assert row.variable == PREFIX + row.name.upper()
        assert row.help.endswith("."), row.name
