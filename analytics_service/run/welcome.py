"""What `up` prints once the service answers."""

from datetime import UTC, datetime, timedelta

from analytics_service.config import Settings
from analytics_service.run.address import local_url
from analytics_service.sources.base import Sample, Source

_SAMPLE_PATHS = {
    Sample.RICH_ACCOUNT: "users/{}/user?with_text=true&with_value=true",
    Sample.EMPTY_ACCOUNT: "users/{}/user",
    Sample.SWAP_CONTRACT: "swap/routes/all?contract_address={}",
}


def welcome(settings: Settings, source: Source | None, *, embedded: bool) -> str:
    """Addresses to try, where to use SQL, how to stop."""
    base = local_url(settings.bind)
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    week = f"start={int((now - timedelta(days=7)).timestamp())}&end={int(now.timestamp())}"
    lines = [
        "",
        f"The service is up at {base}. Try:",
        "",
        f"  {base}/api/v1/assets",
        f"  {base}/api/v1/assets/prices?with_text=true",
        f"  {base}/api/v1/assets/price-history?{week}&period=d",
        f"  {base}/docs",
        "",
        *_samples(source, base),
        f"SQL   {settings.clickhouse_url}/play as user {settings.clickhouse_user}",
    ]
    if embedded:
        lines += [f"      (its password is in {settings.data_dir.absolute() / 'password'})"]
        lines += [f"Data  {settings.data_dir.absolute()}"]
    return "\n".join([*lines, "Stop  Ctrl-C", ""])


def _samples(source: Source | None, base: str) -> list[str]:
    """Sample addresses of the source, if it has any."""
    if source is None or not source.samples:
        return []
    paths = {one: _SAMPLE_PATHS[one].format(address) for one, address in source.samples.items()}
    lines = [f"  {one:17} {base}/api/v1/{path}" for one, path in paths.items()]
    return ["Sample addresses of the simulated protocol:", "", *lines, ""]
