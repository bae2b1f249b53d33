"""The web page for people, and the files that it loads."""

from functools import cache

import falcon

from analytics_service.http.answer import NO_STORE, Answer, answer_of, send
from analytics_service.http.errors import RequestError
from analytics_service.http.resource import Fixed, Resource
from analytics_service.web import files

# Only scripts, styles and data of this service. The charting library sets inline styles.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


class WebPage(Fixed):
    """The HTML page. It names its files by their versions, so browsers revalidate it every time."""

    media = (falcon.MEDIA_HTML,)
    cache_control = "no-cache"

    def __init__(self, **facts: str) -> None:
        headers = (("Content-Type", self.media[0]), ("Content-Security-Policy", _POLICY))
        super().__init__(lambda: files.page(**facts), headers)

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the page for any query: the query is for the page's scripts."""
        send(req, resp, self.answer(), self.cache_control)


class Files(Resource):
    """Files of the web page, cached for a year at paths that change with the contents.

    While workers are replaced, a page may request files from a worker of another version. Such a worker sends its own
    file, which may not be cached.
    """

    media = tuple(files.TYPES.values())
    cache_control = "public, max-age=31536000, immutable"

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send a file. Raises RequestError for an unknown name."""
        version, name = path.pop("version"), path.pop("name")
        self.parse(req, path)
        file = files.files().get(name)
        if file is None:
            raise RequestError("path_unknown", f"There is nothing at {req.path[:200]}; reload the page that names it.")
        cache_control = self.cache_control if version == file.version else NO_STORE
        send(req, resp, _answer(name), cache_control)


@cache
def _answer(name: str) -> Answer:
    file = files.files()[name]
    return answer_of(file.body, (("Content-Type", file.media),))
