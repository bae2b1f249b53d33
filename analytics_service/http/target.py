"""The target of a request: what its first line asks for."""

import re
from urllib.parse import quote

import falcon

# The path within a request target: after the scheme and host, if given, and before the query.
_PATH = re.compile(r"(?:[^/?#]+://[^/?#]*)?([^?#]*)")
# No parameter of the service has such a name, but clients of other services send keys like this.
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:key|token|secret|passw|auth)[^=&]*=)[^&]+", re.IGNORECASE)


def path_as_sent(req: falcon.Request) -> str:
    """The path before percent-decoding, which turns %2F into a slash, and %0A into the end of a line of a log."""
    # Of the WSGI servers, gunicorn passes it on, and refuses what is no visible ASCII.
    match = _PATH.match(req.env.get("RAW_URI") or quote(req.path))
    return match[1] if match else ""


def target_for_log(req: falcon.Request) -> str:
    """The path with its query, without the values of parameters that look like secrets."""
    query = _SECRET.sub(r"\1***", req.query_string)
    return f"{path_as_sent(req)}?{query}" if query else path_as_sent(req)
