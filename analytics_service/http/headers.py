"""Headers that protect those who open a response, and headers that pages of other origins may read."""

# What pages of other origins may read, if the response has it.
EXPOSED = (
    *("Allow", "As-Of", "Content-Disposition", "Content-Range", "ETag", "Last-Modified", "Link"),
    *("RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-ID"),
)
# Every response has these. Browsers must not guess another type, load anything for a response, or show it in a frame.
# A page that needs more has a policy of its own.
PROTECTIVE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
