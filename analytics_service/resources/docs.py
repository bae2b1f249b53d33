"""/api/v1/openapi.json and /docs: the description of the API, for programs and for people."""

from collections.abc import Callable

import falcon
import orjson

from analytics_service.errors import AnalyticsError
from analytics_service.http.answer import Answer, Coding, Validators, etag_of, negotiate, send
from analytics_service.http.docs import POLICY, render_docs
from analytics_service.http.openapi import Object, publish_schema
from analytics_service.http.resource import DESCRIPTIVE, Fixed, Resource
from analytics_service.resources.examples import values
from analytics_service.state.view import View, Views
from analytics_service.state.watcher import Heads
from analytics_service.store.ledger import any_simulated


class OpenApi(Fixed):
    """The OpenAPI document, without an envelope."""

    def __init__(self, document: Callable[[], Object]) -> None:
        super().__init__(lambda: orjson.dumps(publish_schema(document())))


class Docs(Resource):
    """The OpenAPI document as a web page, which also says whether data is simulated.

    Its example requests name data that exists, unless reading data needs a key: the page is for everyone.
    """

    media = (falcon.MEDIA_HTML,)

    def __init__(self, document: Callable[[], Object], views: Views, *, asks_for_keys: bool) -> None:
        self._headers = (("Content-Type", self.media[0]), ("Content-Security-Policy", POLICY))
        self._document = document
        self._views = views
        self._asks_for_keys = asks_for_keys
        self._cache: dict[Coding, tuple[Heads | None, Answer | None]] = {}

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the web page, rendered once for each state and coding. While the store cannot be read, the page lacks
        examples from it."""
        self.parse(req, path)
        coding = negotiate(req.get_header("Accept-Encoding"))
        view = self._view()
        heads = None if view is None else view.heads
        rendered_for, answer = self._cache.get(coding, (None, None))
        if answer is None or rendered_for is not heads:
            complete = None if view is None else self._page(view)
            body = (complete or render_docs(self._document(), lambda path: {})).encode()
            answer = Answer(Validators(etag_of(body)), coding, body, self._headers)
            self._cache[coding] = heads if complete else None, answer
        send(req, resp, answer, DESCRIPTIVE)

    def _view(self) -> View | None:
        """The view for the examples; None while the store cannot be read."""
        try:
            return self._views.newest()
        except AnalyticsError:
            return None

    def _page(self, view: View) -> str | None:
        """The page with all examples; None while the store cannot be read, or is being rewritten."""
        try:
            return render_docs(
                self._document(),
                lambda path: {} if self._asks_for_keys else values(path, view),
                simulated=any_simulated(view.heads.origins),
            )
        except AnalyticsError:
            return None
