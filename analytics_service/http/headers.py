"""Headers that protect people who open a response, and headers that web pages of other origins may read."""

# Headers that web pages of other origins may read, if the response has them.
EXPOSED = (
    *("Allow", "As-Of", "Content-Disposition", "Content-Range", "ETag", "Last-Modified", "Link"),
    *("RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-ID"),
)
# Every response has these. Browsers must not guess another type, load anything for a response, or show it in a frame.
# A web page that needs more has its own policy.
PROTECTIVE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
