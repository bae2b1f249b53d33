"""Which of several servers is asked."""

from analytics_service.config.settings import Settings
from analytics_service.store.client import Failover

A, B = "http://a:8123", "http://b:8123"


class Asked:
    """Servers at `now`, a second of a clock."""

    def __init__(self, url: str | None) -> None:
        self.now = 100.0
        self.failover = Failover(Settings(clickhouse_url=url), lambda: self.now)

    @property
    def urls(self) -> list[str | None]:
        return [server.clickhouse_url for server in self.failover.candidates()]

    def lose(self, url: str) -> None:
        self.failover.mark_away(Settings(clickhouse_url=url))


def test_servers_are_tried_in_their_order() -> None:
    asked = Asked(f"{A},{B}")
    assert asked.urls == [A, B]
    assert asked.failover.has_several


def test_without_a_url_there_is_the_server_of_the_data_folder() -> None:
    asked = Asked(None)
    assert asked.urls == [None]
    assert not asked.failover.has_several


def test_a_server_that_is_away_is_tried_again_after_half_a_minute_by_a_single_caller() -> None:
    asked = Asked(f"{A},{B}")
    asked.lose(A)
    asked.now += 29
    assert asked.urls == [B]
    asked.now += 1
    assert [asked.urls, asked.urls] == [[A, B], [B]]
    asked.failover.mark_reached(Settings(clickhouse_url=A))
    assert asked.urls == [A, B]


def test_if_all_servers_are_away_all_are_tried() -> None:
    asked = Asked(f"{A},{B}")
    asked.lose(A)
    asked.lose(B)
    assert asked.urls == [A, B]
