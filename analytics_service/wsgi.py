"""The application that gunicorn imports, configured by the environment."""

import os

from analytics_service.app import create_app
from analytics_service.config import Settings
from analytics_service.http.rate_limit import shared_counts

_settings = Settings.from_environment(os.environ)
app = create_app(_settings, counts=shared_counts() if _settings.rate_limit else None)
