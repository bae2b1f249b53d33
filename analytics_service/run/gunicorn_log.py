"""gunicorn's logger, without the work for an access log that nobody reads."""

from gunicorn import glogging


class Logger(glogging.Logger):  # type: ignore[misc]
    """gunicorn takes a configured logging for a wish to log requests, and collects 50 details of each."""

    @property
    def access_log_enabled(self) -> bool:
        """Only where gunicorn's own options ask for it; ours is written by the application."""
        return bool(self.cfg.accesslog or (self.cfg.syslog and not self.cfg.disable_redirect_access_to_syslog))
