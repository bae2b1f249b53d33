"""gunicorn's logger, without the cost of an access log that is off."""

from gunicorn import glogging


class Logger(glogging.Logger):  # type: ignore[misc]
    """Configured logging makes gunicorn assume that requests are to be logged, and collect 50 details of each."""

    @property
    def access_log_enabled(self) -> bool:
        """Whether gunicorn's own options ask for an access log. The application writes ours."""
        return bool(self.cfg.accesslog or (self.cfg.syslog and not self.cfg.disable_redirect_access_to_syslog))
