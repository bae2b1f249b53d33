"""The application that gunicorn imports; environment variables configure it."""

import os

from gunicorn.errors import AppImportError

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import require_attachable
from analytics_service.errors import AnalyticsError

try:
    app = create_app(require_attachable(Settings.from_environment(os.environ)))
except AnalyticsError as error:
    # gunicorn prints this line, and stops.
    raise AppImportError(f"Error: {error}") from error
