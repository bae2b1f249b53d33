"""The id of each request: in its log lines, and in its response."""

import random
import re

import falcon

from analytics_service.logs import REQUEST_ID

HEADER = "X-Request-ID"
_KEPT = re.compile(r"[A-Za-z0-9._-]{1,64}")


def new_request_id() -> str:
    """An id for a request that brings none: 16 hex digits."""
    # It need not be secret. While the system makes random bytes, other threads run, and a busy worker waits for them:
    # with os.urandom a repeated answer took a tenth more of the processor's time.
    return f"{random.getrandbits(64):016x}"


class RequestIds:
    """Keeps the id that a request brings, if it is plain, or gives it one (rule 7.3).

    It comes before other middleware, so that their lines have the id.
    """

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Name the request."""
        given = req.get_header(HEADER)
        request_id = given if given is not None and _KEPT.fullmatch(given) else new_request_id()
        REQUEST_ID.set(request_id)
        resp.set_header(HEADER, request_id)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Clear the id: the thread goes on to another request."""
        REQUEST_ID.set("")
