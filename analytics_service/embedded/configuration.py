"""Configuration files of the embedded ClickHouse: config.xml and users.xml, as for any ClickHouse server."""

import hashlib
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analytics_service.config.files import NewFile
from analytics_service.store.researcher import fixed_settings, researcher_grants
from analytics_service.store.server import KEPT_FREE, native_port

USER = "analytics"
# The longest parameter of a query, bytes: some 200,000 ids. The default is enough for 2,000.
_PARAMETER_BYTES = 16 * 2**20
# The user for people. The limits below leave most of the machine to the service.
RESEARCHER = "researcher"
# Seconds for each query of that user.
_QUERY_SECONDS = 300
_HTTP_PORT = re.compile("<http_port>([0-9]+)</http_port>")
# Files with a container's memory limit, in both versions of control groups. Without a limit, they have no number.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

_CONFIG = """\
<clickhouse>
    <http_port>{http}</http_port>
    <tcp_port>{tcp}</tcp_port>
    <listen_host>127.0.0.1</listen_host>
    <!-- Answers to OPTIONS: without headers, so that no browser lets pages of other origins ask anything. -->
    <http_options_response/>
    <users_config>users.xml</users_config>
    <timezone>UTC</timezone>
    <!-- Sessions outlive their queries, and nobody counts their memory. -->
    <default_session_timeout>10</default_session_timeout>
    <max_session_timeout>10</max_session_timeout>
    <!-- A client within the server: what it reads and writes would be the server's files. -->
    <enable_webterminal>0</enable_webterminal>
    <!-- Half of the memory; gunicorn's workers and the jobs need the rest. -->
    <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
    <mark_cache_size>268435456</mark_cache_size>
    <!-- Started this way, the server takes its log level from here, not from <logger>. -->
    <log-level>information</log-level>
    <logger>
        <log>server.log</log>
        <errorlog>server.err.log</errorlog>
        <size>10M</size>
        <count>3</count>
    </logger>
    <!-- All queries of the last hour. They would take hundreds of MiB a day, and are lost when the server ends;
         service_log.query_log has those of the last week that were slow or failed. -->
    <query_log>
        <database>system</database>
        <table>query_log</table>
        <flush_interval_milliseconds>5000</flush_interval_milliseconds>
        <partition_by>toStartOfHour(event_time)</partition_by>
        <ttl>event_time + INTERVAL 1 HOUR DELETE</ttl>
        <settings>ttl_only_drop_parts = 1, merge_with_ttl_timeout = 300</settings>
    </query_log>
    <!-- What a statement has written survives a power failure. By default ClickHouse leaves that to the system, which
         writes within half a minute, and not in order (rule 9.6). -->
    <merge_tree>
        <fsync_after_insert>1</fsync_after_insert>
        <fsync_part_directory>1</fsync_part_directory>
        <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
        <min_compressed_bytes_to_fsync_after_merge>1</min_compressed_bytes_to_fsync_after_merge>
    </merge_tree>
    <!-- BACKUP DATABASE analytics TO Disk('backups', 'name.tar') writes data/backups/name.tar. -->
    <storage_configuration>
        <disks>
            <default>
                <!-- For definitions of tables and views, which a full disk cuts short without an error. -->
                <keep_free_space_bytes>{kept}</keep_free_space_bytes>
            </default>
            <backups>
                <type>local</type>
                <path>data/backups/</path>
            </backups>
        </disks>
    </storage_configuration>
    <backups>
        <allowed_disk>backups</allowed_disk>
    </backups>
</clickhouse>
"""

# The server's own session belongs to `default`, which needs no password on this machine. That user may have a single
# session, which lasts as long as the process, so nobody else can log in; and it has only the grant which that session
# needs. The service's user has the grants that the service needs, and reads everything in the server. Researchers read
# everything, too, and write nothing. Neither can reach an address or program outside of the server, or another user
# (rule 9.3).
_USERS = """\
<clickhouse>
    <profiles>
        <default>
            <!-- The ids of all series are a parameter of queries for history. -->
            <http_max_field_value_size>{parameter}</http_max_field_value_size>
            <!-- The log has them in full. The default is 10 MiB. -->
            <http_max_request_header_size>65536</http_max_request_header_size>
            <!-- Answers that wait for the end of a statement wait here, and not on a disk that may be full. -->
            <http_response_buffer_size>1048576</http_response_buffer_size>
            <!-- Most queries read a few rows of a few columns. Handing each read to another thread costs more. -->
            <local_filesystem_read_method>pread</local_filesystem_read_method>
            <!-- chdb's function `python` ends the process. Off, this cannot be changed for a query. -->
            <allow_python_table_function>0</allow_python_table_function>
            <constraints>
                <!-- Disks that a table brings along may be anywhere, also on other servers. -->
                <merge_tree_disk><readonly/></merge_tree_disk>
                <merge_tree_storage_policy><readonly/></merge_tree_storage_policy>
                <!-- Formats read and write these files, or ask this address, and no grant is needed. -->
                <format_avro_schema_registry_url><readonly/></format_avro_schema_registry_url>
                <format_schema><readonly/></format_schema>
                <format_template_resultset><readonly/></format_template_resultset>
                <format_template_row><readonly/></format_template_row>
                <input_format_record_errors_file_path><readonly/></input_format_record_errors_file_path>
                <output_format_schema><readonly/></output_format_schema>
            </constraints>
        </default>
        <{researcher}>
            <profile>default</profile>
            <max_threads>{threads}</max_threads>
            <max_execution_time>{seconds}</max_execution_time>
            <join_use_nulls>1</join_use_nulls>
            {limits}
            <constraints>
                <max_threads><max>{threads}</max></max_threads>
                <max_execution_time><min>1</min><max>{seconds}</max></max_execution_time>
                {fixed}
            </constraints>
        </{researcher}>
        <supervisor>
            <max_sessions_for_user>1</max_sessions_for_user>
        </supervisor>
    </profiles>
    <quotas>
        <default/>
    </quotas>
    <users>
        <default>
            <password></password>
            <networks><ip>127.0.0.1</ip></networks>
            <profile>supervisor</profile>
            <quota>default</quota>
            <grants>
                <query>GRANT SYSTEM LISTEN ON *.*</query>
            </grants>
        </default>
        <{user}>
            <password_sha256_hex>{password}</password_sha256_hex>
            <networks><ip>127.0.0.1</ip></networks>
            <profile>default</profile>
            <quota>default</quota>
            <grants>
                <query>GRANT SHOW DATABASES, SHOW TABLES, SHOW COLUMNS, SELECT ON *.*</query>
                <query>GRANT TABLE ENGINE ON AggregatingMergeTree</query>
                <query>GRANT TABLE ENGINE ON Memory</query>
                <query>GRANT TABLE ENGINE ON MergeTree</query>
                <query>GRANT TABLE ENGINE ON ReplacingMergeTree</query>
                <query>GRANT TABLE ENGINE ON SummingMergeTree</query>
                <query>GRANT CREATE DATABASE, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON *.*</query>
                <query>GRANT INSERT, OPTIMIZE, CHECK, TRUNCATE, DROP DATABASE, DROP TABLE, DROP VIEW ON *.*</query>
                <query>REVOKE CREATE, ALTER, INSERT, TRUNCATE, DROP ON system.*</query>
                <!-- Clients connect to this database. -->
                <query>REVOKE DROP DATABASE ON default.*</query>
                <query>GRANT CREATE TEMPORARY TABLE, KILL QUERY, SYSTEM FLUSH LOGS ON *.*</query>
                <query>GRANT BACKUP ON *.*</query>
                <!-- Of all disks, backups only reach the one that is allowed for them in config.xml. -->
                <query>GRANT READ, WRITE ON DISK</query>
            </grants>
        </{user}>
        <{researcher}>
            <password_sha256_hex>{researcher_password}</password_sha256_hex>
            <networks><ip>127.0.0.1</ip></networks>
            <profile>{researcher}</profile>
            <quota>default</quota>
            <default_database>{database}</default_database>
            <grants>
                {grants}
            </grants>
        </{researcher}>
    </users>
</clickhouse>
"""


@dataclass(frozen=True, slots=True)
class Access:
    """The passwords of both users, and the default database of researchers."""

    password: str
    researcher_password: str
    database: str


def configured_port(folder: Path) -> int | None:
    """The port for HTTP that a server in this folder had last; None if there was none."""
    try:
        found = _HTTP_PORT.search((folder / "config.xml").read_text("utf-8"))
    except OSError:
        found = None
    return int(found[1]) if found else None


def write_configuration(folder: Path, port: int, access: Access) -> None:
    """Write the files that the server reads at its start into its own folder. `port` is for HTTP."""
    config = _CONFIG.format(http=port, tcp=native_port(port), kept=KEPT_FREE)
    # The server looks for both names in its working directory.
    for name in ("config.xml", "clickhouse-local.xml"):
        _replace(folder / name, config)
    # Half of the server's limit.
    fixed = fixed_settings(_memory() // 4)
    users = _USERS.format(
        user=USER,
        password=_digest(access.password),
        researcher=RESEARCHER,
        grants="\n                ".join(f"<query>{grant}</query>" for grant in researcher_grants("*.*")),
        limits="".join(f"<{name}>{value}</{name}>" for name, value in fixed.items() if value is not None),
        fixed="".join(f"<{name}><readonly/></{name}>" for name in fixed),
        researcher_password=_digest(access.researcher_password),
        database=access.database,
        threads=max(_processors() // 2, 1),
        seconds=_QUERY_SECONDS,
        parameter=_PARAMETER_BYTES,
    )
    _replace(folder / "users.xml", users)


def _replace(path: Path, content: str) -> None:
    """Write a file if its content has changed."""
    if path.exists() and path.read_bytes() == content.encode():
        return
    with NewFile(path) as new:
        new.file.write(content.encode())
        new.keep()


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _memory() -> int:
    """Bytes of memory of this machine or container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):
            total = min(total, int(limit.read_text("ascii")))
    return total


def _digest(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()
