"""The minimum of a convex function along a line, by Newton's method inside a bracket."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

ENOUGH = 0.5
"""Stop when the slope has fallen to this fraction of the first slope (strong Wolfe curvature)."""

MAX_POINTS = 20
"""Limit on the points tried; bisection from 1 reaches 1e-6 in that many."""


class _Search(NamedTuple):
    """The next point, the bracket of the minimum, and the last point, with its value and slope."""

    candidate: Float[Array, ""]
    low: Float[Array, ""]
    high: Float[Array, ""]
    t: Float[Array, ""]
    value: Float[Array, ""]
    slope: Float[Array, ""]
    found: Bool[Array, ""]
    points: Int[Array, ""]


def search(
    along: Callable[[Array], tuple[Array, Array]],
    first_value: Float[Array, ""],
    first_slope: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """A step length at which the slope is small and the function no larger than at 0.

    Slopes decide, because near a minimum differences of values are rounding; values only rule out
    the far side of a function that rises more gently than it fell. t = 1 is tried first.

    Args:
      along: t -> (value, slope), differentiable in t.
      first_value: value at 0.
      first_slope: slope at 0, negative.

    Returns:
      The step length, 0 if none was found, and the value there.
    """
    # Values are sums over many rows: allow for their rounding.
    ceiling = first_value + 10 * jnp.finfo(first_value.dtype).eps * jnp.abs(first_value)

    def try_candidate(s: _Search) -> _Search:
        t = s.candidate
        (value, slope), (_, curvature) = jax.jvp(along, (t,), (jnp.ones_like(t),))
        flat = jnp.abs(slope) <= ENOUGH * jnp.abs(first_slope)
        found = flat & ((slope <= 0) | (value <= ceiling))
        low = jnp.where(slope < 0, t, s.low)
        high = jnp.where(slope < 0, s.high, t)  # also if it is NaN: too far
        newton = t - slope / curvature
        inside = (newton > low) & (newton < jnp.minimum(high, 10 * t))
        # Newton's method creeps down an exponential: halve the bracket when it gains little.
        quick = jnp.abs(slope) <= jnp.abs(s.slope) / 4
        middle = jnp.where(jnp.isinf(high), 2 * t, (low + high) / 2)
        return _Search(
            candidate=jnp.where(inside & quick, newton, middle),
            low=low,
            high=high,
            t=t,
            value=value,
            slope=slope,
            found=found,
            points=s.points + 1,
        )

    zero = jnp.zeros_like(first_value)
    start = _Search(
        candidate=zero + 1,
        low=zero,
        high=zero + jnp.inf,
        t=zero,
        value=first_value,
        slope=zero + jnp.inf,
        found=jnp.array(False),
        points=jnp.array(0),
    )
    end = jax.lax.while_loop(lambda s: ~s.found & (s.points < MAX_POINTS), try_candidate, start)
    sound = end.found | (end.value <= ceiling)
    return jnp.where(sound, end.t, 0), jnp.where(sound, end.value, first_value)
