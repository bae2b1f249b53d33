"""How another deployment is asked: pace, retries, bounds, instants and pages."""

import gzip
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.instants import instant
from analytics_service.market.prices import Price
from analytics_service.market.rates import Rates
from analytics_service.sources.upstream.client import Bounds, Pace
from analytics_service.sources.upstream.source import UpstreamSource
from tests.unit.deployment import AT, NOW, SECOND, URL, Deployment, payload, refusal

PRICES = payload(
    [{"asset": {"id": "native;usd"}, "price": {"price": "1.5", "last_updated_at": "2026-03-01T12:00:00Z"}}], count=1
)
PRICE = [Price("native;usd", AT, Decimal("1.5"))]
HOUR = timedelta(hours=1)
Script = Callable[[BaseHTTPRequestHandler], None]


def sending(body: bytes, status: int = 200, length: int | None = None, **headers: str) -> Script:
    """Answers with a body, and says that it has another length if told so."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(length or len(body)), "Connection": "close", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return answer


class Misbehaving(ThreadingHTTPServer):
    """A real server that answers each request with the next of its scripts, and the last one again and again."""

    daemon_threads = True

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.asked = 0
        self.ending = threading.Event()
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                script = double.scripts[min(double.asked, len(double.scripts) - 1)]
                double.asked += 1
                script(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gives up is what some tests are about."""

    def prices(self, *scripts: Script, key: str | None = None, **bounds: float) -> tuple[list[Price], list[float]]:
        """The prices that a source reads from the server, and the pauses that it makes meanwhile."""
        self.scripts, waited = list(scripts), []
        source = UpstreamSource(
            f"http://127.0.0.1:{self.server_address[1]}",
            Settings(upstream_key=key),
            interval=0,
            bounds=Bounds(**bounds),  # type: ignore[arg-type]
            wait=lambda seconds: waited.append(seconds),
            now=lambda: NOW,
        )
        try:
            return list(source.prices(AT)), [pause for pause in waited if pause > 0.001]
        finally:
            source.close()


@pytest.fixture
def server() -> Iterator[Misbehaving]:
    with Misbehaving() as double:
        thread = threading.Thread(target=double.serve_forever, args=(0.01,))
        thread.start()
        yield double
        double.ending.set()
        double.shutdown()
        thread.join()


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.mark.parametrize(
    "failure",
    [
        sending(b"", 429),
        sending(b"busy", 502),
        sending(b"{}", 503),
        sending(b"", 504),
        sending(PRICES[:40], length=len(PRICES)),
        # The same behind a proxy that hides it.
        sending(PRICES[:40]),
        sending(b"not gzip", Content_Encoding="gzip"),
        hangs_up,
    ],
    ids=["429", "502", "503", "504", "cut off", "truncated", "garbled", "hung up"],
)
def test_a_failure_that_may_pass_is_retried_after_pauses_that_grow(failure: Script, server: Misbehaving) -> None:
    prices, waited = server.prices(failure, failure, failure, sending(PRICES))
    assert (prices, server.asked) == (PRICE, 4)
    assert len(waited) == 3
    # Half a second, one and two, each with up to a second more.
    assert all(base <= pause <= base + 1 for base, pause in zip((0.5, 1, 2), waited, strict=True))


def test_it_is_given_up_after_five_attempts(server: Misbehaving) -> None:
    with pytest.raises(SourceError, match=r"^http://127.0.0.1:\d+: /api/v1/assets/prices answers 503: Starting\.$"):
        server.prices(sending(b'{"error": {"message": "Starting."}}', 503))
    assert server.asked == 5


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (sending(b'{"error": {"kind": "internal", "message": "Oops."}}', 500), r"prices answers 500: Oops\.$"),
        (sending(b"<h1>Forbidden</h1>", 403), r"prices answers 403\.$"),
        (sending(b"", 301, Location="http://elsewhere"), "answers 301. It redirects; name the URL where it is now"),
        (sending(b'{"data": null, "error": {"message": "Odd."}}'), "answers 200 with an error: Odd"),
        (sending(b'{"data": null, "error": null}'), "its envelope has no data"),
        (sending(b"[]"), "answers JSON that is not an object"),
    ],
)
def test_any_other_failure_is_not_retried(failure: Script, message: str, server: Misbehaving) -> None:
    with pytest.raises(SourceError, match=message):
        server.prices(failure)
    assert server.asked == 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"data": ' + b"9" * 5000 + b"}", b"\xff\xfe{", b"<html>", b"[NaN]"])
def test_what_is_no_json_is_an_error(body: bytes, server: Misbehaving) -> None:
    with pytest.raises(SourceError, match=f"answers {len(body)} bytes that are not JSON"):
        server.prices(sending(body))


def guarded(handler: BaseHTTPRequestHandler) -> None:
    """Answers only with a key, as our own deployments do that ask for one."""
    keyed = handler.headers["Authorization"] == "Bearer aB-1"
    error = b'{"error": {"kind": "unauthorized", "message": "An API key is required."}}'
    (sending(PRICES) if keyed else sending(error, 401))(handler)


def test_the_key_is_sent_and_the_setting_named_where_it_is_missing_or_wrong(server: Misbehaving) -> None:
    assert server.prices(guarded, key="aB-1")[0] == PRICE
    for key in (None, "other"):
        with pytest.raises(SourceError) as error:
            server.prices(guarded, key=key)
        assert str(error.value).endswith(
            "answers 401: An API key is required. Set ANALYTICS_UPSTREAM_KEY to one of its keys."
        )


def test_retry_after_is_honoured(server: Misbehaving) -> None:
    prices, waited = server.prices(sending(b"", 429, Retry_After="7"), sending(PRICES))
    assert prices == PRICE
    # The usual pause of the retry, and the rest of the seven seconds, because here no time passes in pauses.
    assert 6.5 < max(waited) <= 7


def test_a_request_to_wait_for_months_ends_the_tick_and_is_believed_for_minutes(server: Misbehaving) -> None:
    with pytest.raises(SourceError, match=r"prices is not asked. It asks to be left alone for (300|299) s more"):
        server.prices(sending(b"", 429, Retry_After="9999999"))
    assert server.asked == 1


def test_an_answer_of_ten_megabytes_is_read(server: Misbehaving) -> None:
    body = PRICES[:-1] + b', "novelty": "' + b"x" * 10_000_000 + b'"}'
    assert server.prices(sending(body))[0] == PRICE
    assert server.prices(sending(gzip.compress(body), Content_Encoding="gzip"))[0] == PRICE


ZIPPED = gzip.compress(b" " * 5_000_000)


@pytest.mark.parametrize(
    ("answer", "bounds", "problem"),
    [
        (sending(ZIPPED, Content_Encoding="gzip"), {"size": 2**20}, "answers more than 1 MiB"),
        (sending(payload([[]] * 100)), {"values": 100}, "answers more than 100 values"),
        (sending(gzip.compress(ZIPPED), Content_Encoding="gzip, gzip"), {}, "answers in the coding 'gzip, gzip'"),
        (sending(PRICES, Content_Encoding="br"), {}, "answers in the coding 'br'. Only gzip was asked for"),
    ],
)
def test_an_answer_out_of_bounds_is_an_error(
    answer: Script, bounds: dict[str, float], problem: str, server: Misbehaving
) -> None:
    """Also if it was small on the way."""
    with pytest.raises(SourceError, match=problem):
        server.prices(answer, **bounds)
    assert server.asked == 1


def test_a_body_that_drips_is_given_up(server: Misbehaving) -> None:
    """Each byte comes in time, but all of them would not."""

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        handler.close_connection = True
        while not server.ending.wait(0.02):
            handler.wfile.write(b"a")

    with pytest.raises(SourceError, match=r"takes more than 0\.2 s for an answer"):
        server.prices(drips, answer=0.2)


def test_a_server_that_says_nothing_is_given_up(server: Misbehaving) -> None:
    with pytest.raises(SourceError, match="prices cannot be read: "):
        server.prices(lambda handler: server.ending.wait(30) and None, read=0.05)
    assert server.asked == 5


def test_a_server_that_is_not_there_is_an_error_that_names_it() -> None:
    source = UpstreamSource("http://127.0.0.1:1", Settings(), wait=lambda _: None, now=lambda: NOW)
    with pytest.raises(SourceError, match=r"^http://127\.0\.0\.1:1: /api/v1/assets/prices cannot be read: .*refused"):
        source.prices(AT)


def test_the_end_of_the_process_ends_all_pauses() -> None:
    """Without it, the source would wait for a minute in all."""
    down = httpx.MockTransport(lambda request: httpx.Response(503))
    source = UpstreamSource(URL, Settings(), transport=down, interval=60, now=lambda: NOW)
    source.hurry()
    with pytest.raises(SourceError, match="The process is about to end"):
        source.prices(AT)


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def test_requests_are_spaced_evenly() -> None:
    clock = Time()
    pace, begun = Pace(6, clock.wait, clock), []
    for _ in range(4):
        pace.enter()
        begun.append(clock.now)
    clock.now = 100
    pace.enter()
    pace.hold(30)
    pace.enter()
    assert begun == [0, 6, 12, 18]
    assert clock.now == 130


def test_threads_share_the_pace() -> None:
    pauses: list[float] = []
    pace = Pace(10, pauses.append, lambda: 0.0)
    threads = [threading.Thread(target=pace.enter) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pauses) == [10, 20, 30, 40]


def test_the_state_of_an_instant_is_asked_for() -> None:
    """So that a snapshot is upstream's own, even if it is taken late."""
    deployment = Deployment({"/assets/prices": PRICES}, as_of=f"prices=@{SECOND}")
    assert list(deployment.source().prices(AT)) == PRICE
    assert deployment.asked == [("/assets/prices", {"at": str(SECOND)})]


@pytest.mark.parametrize(
    ("health", "simulated"),
    [({"simulated": True}, True), ({"simulated": False}, False), ({"healthy": True}, False), (None, False)],
    ids=["simulated", "real", "does not say", "no such path"],
)
def test_a_follower_of_a_simulated_deployment_is_simulated(health: Any, simulated: bool) -> None:
    assert Deployment({"/status/health": health}).source().simulated is simulated


@pytest.mark.parametrize("answer", [httpx.Response(404), httpx.Response(503), {"simulated": "no"}])
def test_whether_an_upstream_that_cannot_be_asked_is_simulated_is_not_guessed(answer: Any) -> None:
    with pytest.raises(SourceError):
        _ = Deployment({"/status/health": answer}).source().simulated


def test_a_tick_waits_until_upstream_has_taken_its_snapshot() -> None:
    deployment = Deployment(as_of=f"prices=@{SECOND - 60}")

    def answer(query: dict[str, str]) -> bytes:
        if len(deployment.asked) == 3:
            deployment.as_of = f"prices=@{SECOND}"
        return PRICES

    deployment.answers["/assets/prices"] = answer
    assert list(deployment.source().prices(AT)) == PRICE
    assert [pause for pause in deployment.waited if pause >= 1] == [1, 2]


def test_a_tick_waits_only_some_seconds_for_a_slower_upstream() -> None:
    deployment = Deployment({"/assets/prices": PRICES}, as_of=f"prices=@{SECOND - 60}")
    assert list(deployment.source().prices(AT)) == PRICE
    assert [pause for pause in deployment.waited if pause >= 1] == [1, 2, 4]
    deployment.as_of = f"prices=@{SECOND - 3600}"
    assert list(deployment.source().prices(AT)) == PRICE
    assert [pause for pause in deployment.waited if pause >= 1] == [1, 2, 4]


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("query_parameter_unknown", [True, False, False]), ("query_parameter_invalid", [True, False, True, False])],
    ids=["not known", "ahead of its clock"],
)
def test_a_recent_instant_is_that_of_the_newest_state_for_an_upstream_that_refuses_at(
    kind: str, asked: list[bool]
) -> None:
    """A parameter that it does not know is not sent again."""
    deployment = Deployment({"/assets/prices": lambda query: refusal(400, kind) if "at" in query else PRICES})
    source = deployment.source()
    assert list(source.prices(AT)) == list(source.prices(AT)) == PRICE
    assert ["at" in query for _, query in deployment.asked] == asked


def test_the_past_of_an_upstream_that_refuses_at_is_an_error() -> None:
    source = Deployment({"/markets": refusal(400, "query_parameter_unknown", "at is no parameter.")}).source()
    with pytest.raises(
        SourceError, match=f"^{URL} tells no past of markets: .*/markets answers 400: at is no parameter"
    ):
        source.markets(NOW - HOUR)


def rate_lists(deployment: Deployment, changes: int) -> Deployment:
    """Lists of rates, between which upstream completes so many snapshots."""

    def answer(query: dict[str, str]) -> list[Any]:
        number = len(deployment.asked)
        deployment.as_of = f"markets=@{SECOND - max(changes - number, 0)}"
        return [{"asset_info": {"asset": {"id": "native;usd"}}, "rate": {"apr": f"0.{number}"}}]

    deployment.answers |= {"/markets/lend": answer, "/markets/borrow/debts": answer}
    return deployment


def test_answers_from_two_snapshots_are_asked_for_again() -> None:
    deployment = rate_lists(Deployment(), changes=2)
    rates = deployment.source().rates(NOW + HOUR)
    assert rates == Rates({"native;usd": Decimal("0.3")}, {"native;usd": Decimal("0.4")})


def test_snapshots_that_change_all_the_time_are_an_error() -> None:
    with pytest.raises(SourceError, match="completes snapshots of markets faster than one can be read"):
        rate_lists(Deployment(), changes=9).source().rates(NOW + HOUR)


class Buckets:
    """A history of prices by the hour: the value of an hour's bucket is the number of the hour, without its first."""

    def __init__(self, most: int = 200) -> None:
        self.most = most
        self.damage: Callable[[dict[str, Any], int], object] = lambda page, offset: None

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        start, end, offset = int(query["start"]), int(query["end"]), int(query.get("offset", 0))
        starts = list(range(start // 3600 * 3600, end + 1, 3600))
        size = min(int(query["limit"]), self.most)
        shown = starts[offset : offset + size]
        page = {
            "series": [
                {
                    "asset": {"id": asset_id},
                    "points": [{"t": t, "v": str(t // 3600 + shift) if t != FIRST else None} for t in shown],
                }
                for asset_id, shift in (("native;usd", 0), ("token;gem", 1))
            ],
        }
        self.damage(page, offset)
        return page


# 300 hours before the snapshot.
FIRST = SECOND - 300 * 3600


@pytest.mark.parametrize(("most", "requests"), [(200, 2), (64, 6)])
def test_a_backfill_reads_a_page_at_a_time(most: int, requests: int) -> None:
    """The value of an hour is that as of its last second. A page that upstream makes shorter is gone on with."""
    deployment = Deployment({"/assets/price-history": Buckets(most).page})
    source = deployment.source()
    for hour in range(1, 299):
        second = FIRST + hour * 3600 + 3599
        assert list(source.prices(instant(second))) == [
            Price("native;usd", instant(second), Decimal(FIRST // 3600 + hour)),
            Price("token;gem", instant(second), Decimal(FIRST // 3600 + hour + 1)),
        ]
    assert len(deployment.asked) == requests


def test_a_deployment_without_zones_is_asked_without() -> None:
    """Otherwise buckets are in UTC, whatever zone upstream has."""
    pages = Buckets(most=64).page
    deployment = Deployment(
        {
            "/assets/price-history": lambda query: (
                refusal(400, "query_parameter_unknown") if "tz" in query else pages(query)
            )
        }
    )
    assert len(list(deployment.source().prices(instant(FIRST + 7199)))) == 2
    assert [query.get("tz") for _, query in deployment.asked] == ["UTC", None, None, None, None]


def test_hours_that_have_not_settled_are_in_no_page() -> None:
    """Their values may still change."""
    deployment = Deployment({"/assets/price-history": Buckets().page})
    source = deployment.source()
    source.prices(instant(SECOND - 5 * 3600 - 1))
    assert int(deployment.asked[0][1]["end"]) == SECOND - 3600 - 1


def test_any_other_instant_is_asked_for_by_itself() -> None:
    deployment = Deployment({"/assets/price-history": Buckets().page})
    prices = list(deployment.source().prices(instant(FIRST + 5400)))
    assert [(price.observed_at, price.usd) for price in prices] == [
        (instant(FIRST + 5400), Decimal(FIRST // 3600 + 1 + shift)) for shift in (0, 1)
    ]
    ((_, query),) = deployment.asked
    assert (query["start"], query["end"], query["period"]) == (str(FIRST + 5400), str(FIRST + 5400), "h")


def test_what_has_no_value_yet_is_left_out() -> None:
    source = Deployment({"/assets/price-history": Buckets().page}).source()
    assert list(source.prices(instant(FIRST + 3599))) == []


Damage = Callable[[dict[str, Any], int], object]


def shifted(sign: int) -> Damage:
    def damage(page: dict[str, Any], offset: int) -> None:
        for one in page["series"]:
            for point in one["points"]:
                point["t"] += sign * offset * 3600

    return damage


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (shifted(-1), r"series\[0\].points\[0\].t: \d+ is not the start of bucket 64, "),
        (shifted(1), r"series\[0\].points\[0\].t: \d+ is not the start of bucket 64, "),
        (
            lambda page, _: page["series"][1]["points"].pop(),
            r"data: an object has 63 points of token;gem, and 64 of another series",
        ),
        (
            lambda page, offset: [one["points"].clear() for one in page["series"] if offset],
            "data: an object has 0 buckets after the first 64 of 200",
        ),
        (lambda page, _: page["series"].append(page["series"][0]), r'series\[2\].asset.id: "native;usd" occurs twice'),
    ],
)
def test_a_page_that_is_not_the_one_asked_for_is_an_error(damage: Damage, problem: str) -> None:
    buckets = Buckets(most=64)
    buckets.damage = damage
    with pytest.raises(SourceError, match=f"^{URL}: /api/v1/assets/price-history, field {problem}"):
        Deployment({"/assets/price-history": buckets.page}).source().prices(instant(FIRST + 3599))
