"""What a request says of itself: its id and its target."""

import random
import re
from urllib.parse import quote

import falcon

from analytics_service.logs import REQUEST_ID

HEADER = "X-Request-ID"
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
# The path within a request target: after the scheme and host, if given, and before the query.
_PATH = re.compile(r"(?:[^/?#]+://[^/?#]*)?([^?#]*)")
# No parameter of the service has such a name, but clients of other services send keys like this.
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:key|token|secret|passw|auth)[^=&]*=)[^&]+", re.IGNORECASE)


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


def path_as_sent(req: falcon.Request) -> str:
    """The path before percent-decoding, which turns %2F into a slash, and %0A into the end of a line of a log."""
    # Of the WSGI servers, gunicorn passes it on, and refuses what is no visible ASCII.
    match = _PATH.match(req.env.get("RAW_URI") or quote(req.path))
    return match[1] if match else ""


def target_for_log(req: falcon.Request) -> str:
    """The path with its query, without the values of parameters that look like secrets."""
    query = _SECRET.sub(r"\1***", req.query_string)
    return f"{path_as_sent(req)}?{query}" if query else path_as_sent(req)
