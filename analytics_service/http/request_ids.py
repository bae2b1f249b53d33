"""The id of each request: in its log lines, and in its response."""

import random
import re

import falcon

from analytics_service.logs import REQUEST_ID

HEADER = "X-Request-ID"
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def new_request_id() -> str:
    """An id for a request without one: 16 hex digits."""
    # It need not be secret. os.urandom lets other threads run meanwhile, for which a busy worker then waits: with it, a
    # cached answer took a tenth more processor time.
    return f"{random.getrandbits(64):016x}"


class RequestIds:
    """Keeps the id that a request brings, if it is plain; else makes an id (rule 7.3).

    It comes before other middleware, so that their log lines have the id.
    """

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Set the request's id."""
        request_id = req.get_header(HEADER)
        if request_id is None or not _PLAIN.fullmatch(request_id):
            request_id = new_request_id()
        REQUEST_ID.set(request_id)
        resp.set_header(HEADER, request_id)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Clear the id: the thread goes on to another request."""
        REQUEST_ID.set("")
