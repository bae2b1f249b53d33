"""Headers that every response has."""

# Headers that pages of other origins may read.
EXPOSED = (
    *("Allow", "As-Of", "Content-Disposition", "ETag", "Last-Modified", "Link", "Retry-After", "X-Request-ID"),
    *("RateLimit", "RateLimit-Policy"),
)
# Browsers take a response for nothing but what its type says, load nothing for it, and show it in no frame. A page that
# needs more has a policy of its own.
PROTECTIVE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
