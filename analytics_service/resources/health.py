"""Paths of operators: whether the service is up, ready and healthy, and how its parts are."""

from collections.abc import Callable

from analytics_service.errors import NotReady
from analytics_service.http.answer import success
from analytics_service.http.resource import Live
from analytics_service.present.shapes import Scope, Shape
from analytics_service.present.status import ALIVE, READY
from analytics_service.state.health import Monitor, Status


class Operational(Live):
    """A path that answers with a record of this moment."""

    shape: Shape

    def __init__(self, summary: str, shape: Shape, record: Callable[[], object]) -> None:
        self.summary, self.shape, self._record = summary, shape, record

    def body(self) -> bytes:
        return success(self.shape.render(self._record(), Scope()))


def probes(monitor: Monitor) -> list[tuple[str, Operational]]:
    """The routes that load balancers and orchestrators request, on either bind."""

    def ready() -> Status:
        """The status of a host that is ready. NotReady says what is missing."""
        if obstacles := monitor.obstacles():
            raise NotReady(f"Not ready: {'; '.join(obstacles)}.")
        return monitor.check()

    can_answer = "Whether this host can answer: from the store or from memory, with data of everything that jobs bring."
    return [
        ("/healthz", Operational("Whether the process is up.", ALIVE, lambda: True)),
        ("/readyz", Operational(can_answer, READY, ready)),
    ]
