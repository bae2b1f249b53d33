"""/api/v1/openapi.json and /docs: the API, described for programs and for people."""

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
    """The OpenAPI document as a web page, which says when data is simulated. Its example requests name data that
    exists, unless reading the data needs a key: the page is for everyone."""

    media = (falcon.MEDIA_HTML,)

    def __init__(self, document: Callable[[], Object], views: Views, *, asks_for_keys: bool) -> None:
        self._headers = (("Content-Type", self.media[0]), ("Content-Security-Policy", POLICY))
        self._document = document
        self._views = views
        self._asks_for_keys = asks_for_keys
        self._cache: dict[Coding, tuple[Heads | None, Answer | None]] = {}

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        """Send the web page, which is rendered once for each state and coding.

        It describes the API even while the store cannot be read. Examples from the store are added once it can.
        """
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
        """The view whose data the examples show; None while the store cannot be read."""
        try:
            return self._views.newest()
        except AnalyticsError:
            return None

    def _page(self, view: View) -> str | None:
        """The web page with all examples; None while the store cannot be read, or is being rewritten."""
        try:
            return render_docs(
                self._document(),
                lambda path: {} if self._asks_for_keys else values(path, view),
                simulated=any_simulated(view.heads.origins),
            )
        except AnalyticsError:
            return None
