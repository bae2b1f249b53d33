"""gunicorn's worker, as the service uses it."""

from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker, which stops without waiting for connections that never asked for anything.

    Browsers open some ahead, and gunicorn keeps them for as long as those between two requests, also when it stops.
    """

    def murder_pending(self) -> None:
        """Called about once a second: close connections on which nothing has come for too long."""
        if not self.alive:
            for connection in self.pending_conns:
                connection.timeout = 0.0
        super().murder_pending()
