"""A Falcon application that answers constant bytes and does nothing else: what HTTP itself costs under gunicorn.

BENCHMARK_SIZES lists the lengths of its answers, separated by commas; each is at /<length>.
"""

import os

import falcon


class Constant:
    """Constant bytes."""

    def __init__(self, size: int) -> None:
        self._body = b"x" * size

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Send the bytes."""
        resp.data = self._body
        resp.content_type = falcon.MEDIA_JSON


app: falcon.App[falcon.Request, falcon.Response] = falcon.App()
for length in os.environ["BENCHMARK_SIZES"].split(","):
    app.add_route(f"/{length}", Constant(int(length)))
