"""gunicorn's logger, without the cost of an access log that is off."""

from gunicorn import glogging


class Logger(glogging.Logger):  # type: ignore[misc]
    """Configured logging makes gunicorn assume that requests are to be logged, and collect 50 details of each."""

    @property
    def access_log_enabled(self) -> bool:
        """Only where gunicorn's own options ask for it; ours is written by the application."""
        return bool(self.cfg.accesslog or (self.cfg.syslog and not self.cfg.disable_redirect_access_to_syslog))
