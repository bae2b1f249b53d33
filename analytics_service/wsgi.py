"""The application that gunicorn imports, configured by the environment."""

import os

from analytics_service.app import create_app
from analytics_service.config import Settings

app = create_app(Settings.from_environment(os.environ))
