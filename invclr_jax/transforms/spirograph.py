"""Spirograph: a differentiable renderer of hypotrochoids, and its transform.

A picture is a function of ten numbers, `FACTORS`. Some of them are of interest (x), the others are
nuisances (alpha), and there is no beta: rendering is the whole transformation (paper, appendix
"Spirograph dataset").
"""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.data.spirograph import INTEREST, RANGES
from invclr_jax.transforms import hypotrochoid
from invclr_jax.transforms.base import Box, NoPlainVersion

FACTORS = tuple(RANGES)
"""Names of `render`'s columns: wheels m and b, pen h, blur sigma, foreground, background."""

BACKGROUND = ("b_r", "b_g", "b_b")
BACKGROUND_SHIFTS = (0.1, 0.2, 0.3, 0.4)
PEN_SHIFTS = (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5)

_POSITIVE = ("b", "sigma")  # they divide
_LIMITS = {"h": (0.0, math.inf)} | dict.fromkeys(FACTORS[4:], (0.0, 1.0))


def render(
    params: Float[Array | np.ndarray, "n 10"],
    *,
    size: int = 32,
    normalise: str = "image",
    num_points: int = 40,
) -> Float[Array, "n {size} {size} 3"]:
    """Draws pictures; differentiable in all ten parameters, to any order.

    The intensity of a pixel (u, v) is the mean over points (x_i, y_i) of the curve of
    exp(-((u - x_i)² + (v - y_i)²)/sigma), divided by its maximum + 1e-8. It factorises, so a
    picture needs num_points·2·size exponentials and one matrix product. Of a large batch 256
    pictures are drawn at a time, and again when derivatives are taken, so that memory stays small.

    The derivative goes through the maximum. Where several pixels share the maximum (symmetric
    curves), they share its derivative equally: the picture has a kink there, and this is the mean
    of the derivatives around it.

    Args:
      params: columns (m, b, h, sigma, f_r, f_g, f_b, b_r, b_g, b_b), b and sigma positive,
        `[n, 10]`. float64 stays float64; half precision is drawn in float32.
      size: side in pixels, at least 2; their centres are spread evenly over [-6, 6].
      normalise: the maximum is that of the `image` (the paper's text) or of each `row`, axis 1 of
        the result (the authors' code).
      num_points: points on the curve, the first at t = 0 and the last at t = 2π.

    Returns:
      Images `[n, size, size, 3]`, in [0, 1] up to rounding if the colours are; x runs along axis 1.
    """
    _check_options(size, normalise, num_points)
    return hypotrochoid.draw(
        _check_params(params), size=size, normalise=normalise, num_points=num_points
    )


@dataclasses.dataclass(frozen=True)
class SpirographTransform:
    """The rendering of factors of interest x under nuisances alpha.

    Attributes:
      interest: names of x's columns. With `nuisance` it names each of `FACTORS` once.
      nuisance: names of alpha's columns.
      size: side in pixels.
      normalise: of the intensity, `image` or `row`, see `render`.
      num_points: on the curve.
      ranges: (low, high) of factors that are not to have the paper's distribution; once
        constructed, those of all factors.
    """

    interest: Sequence[str] = INTEREST
    nuisance: Sequence[str] = ("h", "f_g", "f_b", "b_r", "b_g", "b_b")
    size: int = 32
    normalise: str = "image"
    num_points: int = 40
    ranges: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self):
        _check_options(self.size, self.normalise, self.num_points)
        _check_groups(self.interest, self.nuisance)
        _check_names(self.ranges, FACTORS, "factors")
        ranges = {name: tuple(self.ranges.get(name, RANGES[name])) for name in FACTORS}
        _check_ranges(ranges)
        # Tuples, so that the transform is hashable.
        object.__setattr__(self, "interest", tuple(self.interest))
        object.__setattr__(self, "nuisance", tuple(self.nuisance))
        object.__setattr__(self, "ranges", ranges)

    takes_images = False
    """x are factors, whose columns `interest` names."""

    @property
    def alpha(self) -> Box:
        """The distribution of the nuisances."""
        return self._box(self.nuisance)

    @property
    def x(self) -> Box:
        """The distribution of the factors of interest."""
        return self._box(self.interest)

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], None]:
        """Draws alpha `[n, a]`; there is no beta."""
        return self.alpha.sample(key, n), None

    def apply(
        self,
        x: Float[Array | np.ndarray, "n x"],
        alpha: Float[Array | np.ndarray, "n a"],
        beta: None = None,
    ) -> Float[Array, "n size size 3"]:
        """Renders the pictures.

        Args:
          x: factors of interest, `[n, len(interest)]`.
          alpha: nuisances, `[n, len(nuisance)]`.
          beta: there is none.

        Returns:
          Images `[n, size, size, 3]`; the encoder sees Spirograph images as they are.
        """
        _check_columns(x, "x", self.interest)
        _check_columns(alpha, "alpha", self.nuisance)
        if len(x) != len(alpha):
            raise ValueError(f"x has {len(x)} rows, alpha {len(alpha)}: give one alpha for each x")
        names = (*self.interest, *self.nuisance)
        order = np.array([names.index(name) for name in FACTORS])
        params = jnp.concatenate([jnp.asarray(x), jnp.asarray(alpha)], axis=1)[:, order]
        return render(params, size=self.size, normalise=self.normalise, num_points=self.num_points)

    def untransformed(self, x: Array | np.ndarray) -> NoReturn:
        """Raises: no picture can be drawn without nuisances."""
        raise NoPlainVersion(
            "Spirograph has no untransformed version of x: every picture has a pen and colours; "
            "average the features of several sampled transformations, or use one sample"
        )

    def shifted(
        self, amount: float, names: Sequence[str], *, clip: bool = True
    ) -> "SpirographTransform":
        """Moves the mean of nuisances: U(low, high) becomes U(low + amount, high + amount).

        Args:
          amount: S of the appendix.
          names: which nuisances.
          clip: cut off what is outside the physical range: colours in [0, 1], h at least 0.

        Returns:
          The same transform under the other distribution.
        """
        return self._moved(amount, amount, names, clip)

    def widened(
        self, amount: float, names: Sequence[str], *, clip: bool = True
    ) -> "SpirographTransform":
        """Raises the variance of nuisances: U(low, high) becomes U(low - amount, high + amount).

        Args:
          amount: S of the appendix.
          names: which nuisances.
          clip: cut off what is outside the physical range: colours in [0, 1], h at least 0. So
            does the paper: its background, widened by 0.4, "becomes U(0, 1)" and not U(-0.4, 1).

        Returns:
          The same transform under the other distribution.
        """
        return self._moved(-amount, amount, names, clip)

    def _moved(
        self, low_by: float, high_by: float, names: Sequence[str], clip: bool
    ) -> "SpirographTransform":
        names = (names,) if isinstance(names, str) else names
        _check_names(names, self.nuisance, "nuisances")
        limits = _LIMITS if clip else {}
        ranges = dict(self.ranges)
        for name in names:
            low, high = ranges[name]
            floor, ceiling = limits.get(name, (-math.inf, math.inf))
            ranges[name] = (max(low + low_by, floor), min(high + high_by, ceiling))
        return dataclasses.replace(self, ranges=ranges)

    def _box(self, names: Sequence[str]) -> Box:
        low, high = np.array([self.ranges[name] for name in names]).reshape(-1, 2).T
        return Box(low, high, tuple(names))

    def shifts(self) -> tuple["SpirographTransform", dict[str, "SpirographTransform"]]:
        """The paper's grids: the pen's mean and variance, the background's mean and variance."""
        shifted = {f"h_shift={s:+g}": self.shifted(s, "h") for s in PEN_SHIFTS}
        shifted |= {f"h_widen={s:g}": self.widened(s, "h") for s in PEN_SHIFTS if s > 0}
        for s in BACKGROUND_SHIFTS:
            shifted[f"background_shift={s:g}"] = self.shifted(s, BACKGROUND)
            shifted[f"background_widen={s:g}"] = self.widened(s, BACKGROUND)
        return self, shifted


# Validation ------------------------------------------------------------------------------------


def _check_options(size: int, normalise: str, num_points: int) -> None:
    if size < 2 or num_points < 2:
        raise ValueError(f"size is {size} and num_points {num_points}: give at least 2 of each")
    if normalise not in ("image", "row"):
        raise ValueError(
            f"unknown normalise {normalise!r}: use 'image' (paper) or 'row' (authors' code)"
        )


def _check_params(params: Array | np.ndarray) -> Float[Array, "n 10"]:
    _check_columns(params, "params", FACTORS)
    if not isinstance(params, jax.core.Tracer):  # inside jit there are no values to look at
        values = np.asarray(params)
        for name in _POSITIVE:
            smallest = values[:, FACTORS.index(name)].min(initial=np.inf)
            if not smallest > 0:
                raise ValueError(
                    f"params has {name} = {smallest:g} (column {FACTORS.index(name)}): "
                    f"{name} must be positive, the paper draws it from U{RANGES[name]}"
                )
    return jnp.asarray(params, jnp.promote_types(jnp.result_type(params), jnp.float32))


def _check_columns(rows: Array | np.ndarray, what: str, names: Sequence[str]) -> None:
    if np.ndim(rows) != 2 or np.shape(rows)[1] != len(names):
        raise ValueError(
            f"{what} has shape {np.shape(rows)}, not [n, {len(names)}]: give one row for each "
            f"picture with columns ({', '.join(names)})"
        )


def _check_groups(interest: Sequence[str], nuisance: Sequence[str]) -> None:
    _check_names((*interest, *nuisance), FACTORS, "factors")
    for name in FACTORS:
        times = (*interest, *nuisance).count(name)
        if times != 1:
            found = "neither group" if times == 0 else "both groups or twice in one"
            raise ValueError(
                f"factor {name!r} is in {found}: name it once, in interest {tuple(interest)} or in "
                f"nuisance {tuple(nuisance)}"
            )


def _check_names(names: Collection[str], known: Sequence[str], what: str) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown {unknown}: the {what} are {', '.join(known)}")


def _check_ranges(ranges: Mapping[str, Sequence[float]]) -> None:
    for name, ends in ranges.items():
        if len(ends) != 2 or not np.isfinite(ends).all():
            raise ValueError(f"the range of {name} is {ends}: give its two ends, finite numbers")
        low, high = ends
        if not low <= high:
            raise ValueError(
                f"the range of {name} is ({low:g}, {high:g}), which is empty: put the lower end "
                "first, or move the ends by less"
            )
        if name in _POSITIVE and low <= 0:
            raise ValueError(f"the range of {name} starts at {low:g}: {name} must be positive")
