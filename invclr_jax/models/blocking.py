"""How many images to work on at a time, so that what is made of them stays in the cache."""

CACHE = 2**19
"""Bytes of images of which several copies fit in a core's cache."""


def images_at_a_time(count: int, each: int, least: int = 0) -> int:
    """The largest divisor of `count` whose images take at most `CACHE` bytes, or 1.

    Args:
      count: images there are.
      each: bytes of one.
      least: bytes that are fine too, although the cache does not hold them.
    """
    limit = max(CACHE, least, each)
    return max(k for k in range(1, count + 1) if count % k == 0 and k * each <= limit)
