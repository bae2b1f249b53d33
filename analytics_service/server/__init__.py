"""The running service: `up`, `serve`, gunicorn's configuration and worker, and warming."""
