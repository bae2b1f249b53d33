"""How another deployment is asked: pace, retries, bounds, instants and pages."""

import gzip
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.instants import from_unix
from analytics_service.market.prices import Price
from analytics_service.sources.upstream.client import Client
from analytics_service.sources.upstream.files import Names
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

    def prices(self, *scripts: Script, key: str | None = None, timeout: float = 30) -> tuple[list[Price], list[float]]:
        """The prices that a source reads from the server, and the pauses that it makes meanwhile."""
        self.scripts, waited = list(scripts), []
        source = UpstreamSource(
            f"http://127.0.0.1:{self.server_address[1]}",
            Settings(upstream_key=key),
            interval=0,
            timeout=timeout,
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
        (sending(b"", 301, Location="http://elsewhere"), r"prices answers 301\.$"),
        (sending(b'{"data": null, "error": {"message": "Odd."}}'), "prices: answer.data is missing"),
        (sending(b"[]"), "prices: answer is .*: must be an object"),
    ],
)
def test_any_other_failure_is_not_retried(failure: Script, message: str, server: Misbehaving) -> None:
    with pytest.raises(SourceError, match=message):
        server.prices(failure)
    assert server.asked == 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"data": ' + b"9" * 5000 + b"}", b"\xff\xfe{", b"<html>"])
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
    assert server.prices(sending(b"", 429, Retry_After="7"), sending(PRICES)) == (PRICE, [7])


def test_a_request_to_wait_for_months_is_left_to_the_next_snapshot(server: Misbehaving) -> None:
    with pytest.raises(SourceError, match=r"prices answers 429\."):
        server.prices(sending(b"", 429, Retry_After="9999999"))
    assert server.asked == 1


def test_an_answer_of_ten_megabytes_is_read(server: Misbehaving) -> None:
    body = PRICES[:-1] + b', "novelty": "' + b"x" * 10_000_000 + b'"}'
    assert server.prices(sending(body))[0] == PRICE
    assert server.prices(sending(gzip.compress(body), Content_Encoding="gzip"))[0] == PRICE


def test_an_answer_without_bounds_is_an_error(server: Misbehaving) -> None:
    """Also if it was small on the way."""
    with pytest.raises(SourceError, match="answers more than 16,777,216 bytes"):
        server.prices(sending(gzip.compress(b" " * 17_000_000), Content_Encoding="gzip"))
    assert server.asked == 1


@pytest.mark.parametrize("codings", ["gzip, gzip", "br"])
def test_codings_that_were_not_asked_for_are_refused(codings: str, server: Misbehaving) -> None:
    """Two, one inside the other, make gigabytes of a few bytes before any are counted."""
    with pytest.raises(SourceError, match="answers in another coding than gzip"):
        server.prices(sending(gzip.compress(gzip.compress(PRICES)), Content_Encoding=codings))
    assert server.asked == 1


def test_a_body_that_drips_is_given_up(server: Misbehaving) -> None:
    """Each byte comes in time, but all of them would not."""

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        handler.close_connection = True
        while not server.ending.wait(0.02):
            handler.wfile.write(b"a")

    with pytest.raises(SourceError, match=r"takes more than 0\.2 s for an answer"):
        server.prices(drips, timeout=0.05)


def test_a_server_that_says_nothing_is_given_up(server: Misbehaving) -> None:
    with pytest.raises(SourceError, match="prices cannot be read: "):
        server.prices(lambda handler: server.ending.wait(30) and None, timeout=0.05)
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


def test_requests_are_spaced_evenly() -> None:
    """Also those of several threads, of which one waits at a time."""
    waiting, waited = threading.Lock(), []

    def wait(seconds: float) -> None:
        assert waiting.acquire(blocking=False)
        waited.append(seconds)
        waiting.release()

    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=PRICES))
    client = Client(URL, Names(), wait, interval=6, transport=transport)
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(lambda _: client.get("/assets/prices").data.place, range(8))}) == 1
    assert waited == [6] * 8


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


@pytest.mark.parametrize("kind", ["query_parameter_unknown", "query_parameter_invalid"])
def test_a_recent_instant_is_that_of_the_newest_state_for_an_upstream_that_refuses_at(kind: str) -> None:
    """It may not know the parameter, or the instant may be ahead of its clock."""
    deployment = Deployment({"/assets/prices": lambda query: refusal(400, kind) if "at" in query else PRICES})
    assert list(deployment.source().prices(AT)) == PRICE
    assert ["at" in query for _, query in deployment.asked] == [True, False]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (refusal(400, "query_parameter_unknown", "at is no parameter."), "/markets answers 400: at is no parameter"),
        ({"lend": [], "borrow": {"collaterals": [], "debts": []}}, "has no past of markets: it does not support `at`"),
    ],
    ids=["refused", "ignored"],
)
def test_the_past_of_an_upstream_that_does_not_take_at_is_an_error(answer: Any, problem: str) -> None:
    """Otherwise its present would be stored as its past."""
    with pytest.raises(SourceError, match=problem):
        Deployment({"/markets": answer}).source().markets(NOW - HOUR)


def test_answers_from_two_snapshots_are_an_error() -> None:
    """The job tries again."""
    deployment = Deployment()

    def answer(query: dict[str, str]) -> list[Any]:
        deployment.as_of = f"markets=@{SECOND + len(deployment.asked)}"
        return [{"asset_info": {"asset": {"id": "native;usd"}}, "rate": {"apr": "0.1"}}]

    deployment.answers |= {"/markets/lend": answer, "/markets/borrow/debts": answer}
    with pytest.raises(
        SourceError, match="has completed a snapshot of markets while it was read as of 2026-03-01T12:00:00Z"
    ):
        deployment.source().rates(AT)


class Buckets:
    """A history of prices by the hour: the value of an hour's bucket is the number of the hour, without its first."""

    def __init__(self, most: int = 200) -> None:
        self.most = most
        self.damage: Callable[[dict[str, Any]], object] = lambda page: None

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        starts = list(range(int(query["start"]) // 3600 * 3600, int(query["end"]) + 1, 3600))
        shown = starts[: min(int(query["limit"]), self.most)]
        page = {
            "series": [
                {
                    "asset": {"id": asset_id},
                    "points": [{"t": t, "v": str(t // 3600 + shift) if t != FIRST else None} for t in shown],
                }
                for asset_id, shift in (("native;usd", 0), ("token;gem", 1))
            ],
        }
        self.damage(page)
        return page


# 300 hours before the snapshot.
FIRST = SECOND - 300 * 3600


@pytest.mark.parametrize(("most", "requests"), [(200, 2), (64, 5)])
def test_a_backfill_reads_a_page_at_a_time(most: int, requests: int) -> None:
    """The value of an hour is that as of its last second. A page that upstream makes shorter is gone on with."""
    deployment = Deployment({"/assets/price-history": Buckets(most).page})
    source = deployment.source()
    for hour in range(1, 299):
        second = FIRST + hour * 3600 + 3599
        assert list(source.prices(from_unix(second))) == [
            Price("native;usd", from_unix(second), Decimal(FIRST // 3600 + hour)),
            Price("token;gem", from_unix(second), Decimal(FIRST // 3600 + hour + 1)),
        ]
    assert len(deployment.asked) == requests


def test_hours_that_have_not_settled_are_in_no_page() -> None:
    """Their values may still change."""
    deployment = Deployment({"/assets/price-history": Buckets().page})
    source = deployment.source()
    source.prices(from_unix(SECOND - 5 * 3600 - 1))
    assert int(deployment.asked[0][1]["end"]) == SECOND - 3600 - 1


def test_any_other_instant_is_asked_for_by_itself() -> None:
    deployment = Deployment({"/assets/price-history": Buckets().page})
    prices = list(deployment.source().prices(from_unix(FIRST + 5400)))
    assert [(price.observed_at, price.usd) for price in prices] == [
        (from_unix(FIRST + 5400), Decimal(FIRST // 3600 + 1 + shift)) for shift in (0, 1)
    ]
    ((_, query),) = deployment.asked
    assert (query["start"], query["end"], query["period"]) == (str(FIRST + 3600), str(FIRST + 5400), "h")


def test_what_has_no_value_yet_is_left_out() -> None:
    source = Deployment({"/assets/price-history": Buckets().page}).source()
    assert list(source.prices(from_unix(FIRST + 3599))) == []


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            lambda points: points[1].update(t=FIRST),
            r".series\[1\].points\[1\].t is \d+: must be \d+, the start of bucket 1",
        ),
        (lambda points: points.pop(), r" is .*: has series of \[199, 200\] points"),
        (lambda points: points.clear(), r" is .*: has series of \[0, 200\] points"),
    ],
)
def test_a_page_that_is_not_the_one_asked_for_is_an_error(damage: Callable[[Any], object], problem: str) -> None:
    buckets = Buckets()
    buckets.damage = lambda page: damage(page["series"][1]["points"])
    with pytest.raises(SourceError, match=f"^{URL}: /api/v1/assets/price-history: answer.data{problem}"):
        Deployment({"/assets/price-history": buckets.page}).source().prices(from_unix(FIRST + 3599))
