"""What `up` prints once the service answers."""

from datetime import UTC, datetime, timedelta

from analytics_service.config import Settings
from analytics_service.run.address import local_url
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT


def welcome(settings: Settings, *, embedded: bool) -> str:
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
        *_samples(settings, base),
        f"SQL   {settings.clickhouse_url}/play as user {settings.clickhouse_user}",
    ]
    if embedded:
        lines += [f"      (its password is in {settings.data_dir.absolute() / 'password'})"]
        lines += [f"Data  {settings.data_dir.absolute()}"]
    return "\n".join([*lines, "Stop  Ctrl-C", ""])


def _samples(settings: Settings, base: str) -> list[str]:
    """Addresses that the simulated protocol always has."""
    if not settings.source.startswith("simulated"):
        return []
    return [
        "Sample addresses of the simulated protocol:",
        "",
        f"  a rich account    {base}/api/v1/users/{RICH_ADDRESS}/user?with_text=true&with_value=true",
        f"  an empty account  {base}/api/v1/users/{EMPTY_ADDRESS}/user",
        f"  a swap contract   {base}/api/v1/swap/routes/all?contract_address={SWAP_CONTRACT}",
        "",
    ]
