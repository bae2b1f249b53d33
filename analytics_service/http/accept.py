"""Content negotiation: the media type of a path that a caller prefers (RFC 9110, 12.5.1)."""

from functools import lru_cache

from falcon.util.mediatypes import quality


@lru_cache(maxsize=256)
def preferred(accept: str, media: tuple[str, ...]) -> str | None:
    """The type with the highest q; at equal q a type that the header names, then the first (rule 7.4). None if all are
    ruled out.

    Case and empty elements do not matter (RFC 9110, 5.6.1 and 8.3.1). Any other malformed header allows nothing.
    """
    ranges = ",".join(part for part in accept.lower().split(",") if part.strip())
    if not ranges:
        return media[0]
    named = {part.partition(";")[0].strip() for part in ranges.split(",")}
    try:
        best = max(media, key=lambda media_type: (quality(media_type, ranges), media_type in named))
        return best if quality(best, ranges) > 0 else None
    except ValueError:
        return None
