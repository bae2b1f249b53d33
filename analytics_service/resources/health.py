"""/healthz, /readyz and /api/v1/status/health: whether the service is up, ready and healthy."""

from abc import abstractmethod

from analytics_service.errors import NotReady
from analytics_service.http.answer import success
from analytics_service.http.resource import Live
from analytics_service.present.shapes import Scope, Shape
from analytics_service.present.status import ALIVE, READY, STATUS
from analytics_service.state.health import Monitor, Status


class Operational(Live):
    """A path that answers with a record of this moment."""

    shape: Shape

    @abstractmethod
    def record(self) -> object: ...

    def body(self) -> bytes:
        return success(self.shape.render(self.record(), Scope()))


class Alive(Operational):
    """Whether the process is up."""

    shape = ALIVE

    def record(self) -> object:
        """Anything: the process answers."""
        return self


class Ready(Operational):
    """Whether this host can answer: from the store or from memory, with data of everything that jobs bring."""

    shape = READY

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def record(self) -> Status:
        """The status of a host that is ready. NotReady says what is missing."""
        if obstacles := self._monitor.obstacles():
            raise NotReady(f"Not ready: {'; '.join(obstacles)}.")
        return self._monitor.check()


class StatusHealth(Operational):
    """How the service is, part by part."""

    shape = STATUS

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def record(self) -> Status:
        return self._monitor.check()
