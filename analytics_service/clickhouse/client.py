"""Makes the client of ClickHouse, with the settings that the cluster layout needs; pings a server."""

import os
import ssl
from collections.abc import Sequence
from http.client import BadStatusLine, RemoteDisconnected
from math import inf
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import urllib3
from clickhouse_connect import common
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httputil import get_pool_manager_options
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
    TimeoutError,
)

from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.queries import named_query
from analytics_service.clickhouse.running import address_of, server_of
from analytics_service.clickhouse.sockets import Connection, TlsConnection, connection_to
from analytics_service.concurrency import cap_timeout
from analytics_service.config.settings import WORKER_THREADS, Settings
from analytics_service.errors import SchemaError, StoreUnavailable

# Seconds in which a server must accept the first connection and answer.
_CONNECT_SECONDS = 4

# To close old connections, the driver keeps every pool for ever, even pools of failed attempts to connect, and fails at
# exit if a thread adds one. ClickHouse itself closes a connection that is idle, or has had 10,000 requests.
common.set_setting("max_connection_age", 0)
# Part of ClickHouse's answer to HTTP on its native port.
_NATIVE_PORT = b"clickhouse-client"


class Pools(urllib3.PoolManager):
    """Connections whose requests end within their read time-out, and the deadline of the thread."""

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **kw: Any
    ) -> urllib3.BaseHTTPResponse:
        # A retry would have the whole time-out again.
        kw["retries"] = False
        asked: urllib3.Timeout = kw["timeout"]
        left = cap_timeout(asked.read_timeout or inf)
        kw["timeout"] = urllib3.Timeout(left, asked.connect_timeout, asked.read_timeout)
        return super().urlopen(method, url, redirect, **kw)


def connect(settings: Settings, pools: Pools) -> tuple[Client, Cluster]:
    """A client of the server that settings name, and the layout of the store there.

    StoreUnavailable if the server accepts no connection or does not answer, SchemaError if its tables do not fit the
    cluster in the settings. The caller translates errors of the driver.
    """
    server = server_of(settings)
    url = urlsplit(server.url)
    local = url.hostname in ("127.0.0.1", "localhost", "::1")
    ping(pools, server.url, _CONNECT_SECONDS)
    client = clickhouse_connect.get_client(
        host=url.hostname,
        port=url.port or 8123,
        interface=url.scheme,
        username=server.user,
        password=server.password,
        # Every statement names its database by parameter; connecting must work before the database exists.
        database="default",
        connect_timeout=_CONNECT_SECONDS,
        send_receive_timeout=settings.client_timeout,
        compress=not local,
        autogenerate_session_id=False,
        query_limit=0,
        tz_mode="aware",
        # Priority over researchers. Rows come in batches, and asynchronous INSERTs, the default since 26.2, are refused
        # with a quorum of sequential INSERTs.
        settings={"priority": 1, "async_insert": 0},
        # Parameters of a query may exceed the limit of a URL.
        form_encode_query_params=True,
        pool_mgr=pools,
    )
    layout = _layout_of(client, settings)
    for name, value in layout.settings.items():
        client.set_client_setting(name, value)
    client.database = settings.clickhouse_database
    return client, layout


def pools_for(settings: Settings) -> Pools:
    """Connections to the server that settings name, made on first use."""
    options = get_pool_manager_options(
        maxsize=WORKER_THREADS,
        retries=False,
    )
    manager = Pools(**options)
    announced = settings.clickhouse_url is None
    http = connection_to(settings.data_dir.absolute()) if announced else Connection
    kinds = ((urllib3.HTTPConnectionPool, http), (urllib3.HTTPSConnectionPool, TlsConnection))
    manager.pool_classes_by_scheme = {
        pool.scheme: type("Pool", (pool,), {"ConnectionCls": kind}) for pool, kind in kinds
    }
    return manager


def _layout_of(client: Client, settings: Settings) -> Cluster:
    """The layout of the store on a server. SchemaError if its tables do not fit the cluster in the settings."""
    if settings.clickhouse_url is None:
        return Cluster()
    engine, table_engine = _row(client, "read_table_engines", database=settings.clickhouse_database)
    cluster, shards = settings.clickhouse_cluster or "", 0
    if cluster:
        (shards,) = _row(client, "count_shards", cluster=cluster)
    layout = Cluster(engine or "", cluster, shards)
    if cluster and not shards:
        raise SchemaError(
            f"ClickHouse at {address_of(settings)} has no cluster {cluster}; ANALYTICS_CLICKHOUSE_CLUSTER must name a "
            "cluster of its table system.clusters."
        )
    if table_engine and not layout.fits(table_engine):
        raise SchemaError(
            f"Table observation of database {settings.clickhouse_database} has the engine {table_engine}. Set "
            "ANALYTICS_CLICKHOUSE_CLUSTER to the cluster that the database was made for, or unset it if for none; "
            "`analytics-service example cluster` shows how to add shards."
        )
    return layout


def _row(client: Client, query: str, **parameters: str) -> Sequence[Any]:
    (row,) = client.query(named_query(query, ()), parameters).result_rows
    return row


def ping(pools: urllib3.PoolManager, url: str, seconds: float) -> None:
    """StoreUnavailable, with the cause, unless the URL accepts a connection and answers, within `seconds` each.

    Sends no user and password. Any answer counts, except that of ClickHouse's native port.
    """
    # Connecting and reading have separate limits, because connecting to a busy machine may take a while.
    timeout = urllib3.Timeout(connect=seconds, read=seconds)
    try:
        try:
            answer = pools.request("GET", f"{url}/ping", timeout=timeout, retries=False, redirect=False)
        except ProtocolError:
            # The server may just have closed a kept connection, so only a second failure counts.
            answer = pools.request("GET", f"{url}/ping", timeout=timeout, retries=False, redirect=False)
    except (HTTPError, OSError) as error:
        raise unreachable(url, cause_of(error)) from error
    if _NATIVE_PORT in answer.data:
        raise unreachable(url, "this is its port for the native protocol; use its HTTP port")


def unreachable(url: str, cause: str) -> StoreUnavailable:
    return StoreUnavailable(f"ClickHouse at {url} cannot be reached: {cause}.")


def cause_of(error: BaseException | None) -> str:
    """Why a connection failed, or no answer came."""
    reason = error.args[-1] if error is not None and error.args else None
    if isinstance(error, NameResolutionError):
        return "the host name is unknown"
    if isinstance(error, NewConnectionError):
        return _of_system(error.__cause__)
    if isinstance(error, ConnectTimeoutError):
        return "nothing accepts the connection"
    if isinstance(error, (ReadTimeoutError, TimeoutError)):
        return "it does not answer"
    if isinstance(error, SSLError):
        return _of_tls(reason)
    if isinstance(error, ProtocolError):
        # RemoteDisconnected is a kind of BadStatusLine.
        is_http = isinstance(reason, RemoteDisconnected) or not isinstance(reason, BadStatusLine)
        return "it closed the connection" if is_http else "it does not answer in HTTP; perhaps it expects https"
    return _of_system(error)


def _of_tls(reason: object) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        refused = f"its certificate is refused: {reason.verify_message.rstrip('.')}"
        return f"{refused}; set SSL_CERT_FILE to the certificate of the authority that signed it"
    if isinstance(reason, ssl.SSLError):
        return "it does not answer in TLS; perhaps it expects http"
    return "TLS failed"


def _of_system(error: BaseException | None) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number).lower() if number else "the connection failed"
