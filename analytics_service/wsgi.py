"""The application that gunicorn imports, configured by the environment."""

import os

from gunicorn.errors import AppImportError

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import require_attached
from analytics_service.errors import AnalyticsError
from analytics_service.http.rate_limit import shared_counts

try:
    _settings = require_attached(Settings.from_environment(os.environ))
    app = create_app(_settings, counts=shared_counts() if _settings.rate_limit else None)
except AnalyticsError as error:
    # gunicorn prints this line, and stops.
    raise AppImportError(f"Error: {error}") from error
