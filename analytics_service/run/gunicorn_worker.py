"""gunicorn's worker, as the service uses it."""

from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker, which does not wait for silent connections when it stops.

    Browsers open some connections ahead. gunicorn keeps those for the keep-alive time, even while it stops.
    """

    def murder_pending(self) -> None:
        """Called about once a second: close connections that have sent nothing for too long."""
        if not self.alive:
            for connection in self.pending_conns:
                connection.timeout = 0.0
        super().murder_pending()
