"""Batch norm whose statistics span all devices, one device, or any equal groups of the batch."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax import parallel
from invclr_jax.models import pixels
from invclr_jax.models.dtypes import at_least_float32
from invclr_jax.models.moments import Shifted, mix, moments, squares

Activations = Float[Array | np.ndarray, "n *space c"]

Channels = Float[Array | np.ndarray, "c"]

SCOPES = ("global", "per_device", "groups", "per_chunk")


def norm_groups(scope: str, groups: int, num_devices: int, batch_size: int | None = None) -> int:
    """Number of groups of the whole batch that batch norm treats apart: `BatchNorm.groups`.

    Args:
      scope: `global` (one group over all devices), `per_device`, `groups`, or `per_chunk`, which is
        `global` within the part of the batch that is alive at a time.
      groups: how many groups the whole batch falls into; read for the scope `groups` only.
      num_devices: devices that share the batch.
      batch_size: images of the whole batch, if it is known already.

    Returns:
      1 for `global` and `per_chunk`, `num_devices` for `per_device`, `groups` for `groups`.
    """
    if scope not in SCOPES:
        raise ValueError(f"batch norm scope {scope!r} is unknown: use one of {', '.join(SCOPES)}")
    if scope == "groups" and groups < 1:
        raise ValueError(f"batch norm needs at least one group, got {groups}: use 1 or more")
    count = {"per_device": num_devices, "groups": groups}.get(scope, 1)
    if count % num_devices and num_devices % count:
        raise ValueError(
            f"{count} batch norm groups do not fit {num_devices} devices: use a multiple or a "
            f"divisor of {num_devices}"
        )
    if batch_size is not None and batch_size % count:
        raise ValueError(
            f"a batch of {batch_size} does not split into {count} batch norm groups: use a batch "
            f"size that {count} divides"
        )
    return count


class BatchNorm(nn.Module):
    """Normalises each channel over batch and space (biased variance), then scales and shifts.

    The whole batch, on all devices of `axis`, falls into `groups` equal groups in order; each is
    normalised by its own statistics. More groups than devices split a device's share, fewer make
    several devices share statistics. The running statistics are the average over all groups, hence
    equal on every device, and are kept in float32 at least. The running variance is the biased one,
    as Flax's; PyTorch multiplies it by n/(n-1) for groups of n values.

    Attributes:
      axis: name of the mapped device axis, None on a single device.
      groups: number of groups of the whole batch, see `norm_groups`.
      unbiased: whether the running variance is PyTorch's.
      affine: whether to learn a scale and a shift for each channel.
      momentum: weight of the old running statistics in each update.
      epsilon: added to the variance.
      dtype: dtype of the result, None for the input's. Statistics are in float32 at least.
    """

    axis: parallel.Axis = None
    groups: int = 1
    unbiased: bool = False
    affine: bool = True
    momentum: float = 0.9
    epsilon: float = 1e-5
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Activations, train: bool = False) -> Float[Array, "..."]:
        """Normalises `x`.

        Args:
          x: activations, channels last.
          train: whether to use the statistics of `x` and, where `batch_stats` is mutable, to
            update the running ones.

        Returns:
          The normalised activations, shaped as `x`.
        """
        dtype = x.dtype if self.dtype is None else self.dtype
        shape, channels, exact = x.shape, x.shape[-1:], at_least_float32(x.dtype)
        running_mean = self.variable("batch_stats", "mean", jnp.zeros, channels, exact)
        running_var = self.variable("batch_stats", "var", jnp.ones, channels, exact)
        scale, bias = self._affine(channels, exact)
        if not train:
            x = jnp.asarray(x, exact)
            multiplier = jax.lax.rsqrt(running_var.value + self.epsilon) * scale
            y = (x - _each(running_mean.value, x)) * _each(multiplier, x) + _each(bias, x)
            return y.astype(dtype)
        x, groups = self._split(jnp.asarray(x))
        sharing = max(self._devices() // self.groups, 1)
        y, mean, var = _normalise(x, scale, bias, self.axis, sharing, self.epsilon, dtype)
        if not self.is_initializing() and self.is_mutable_collection("batch_stats"):
            self._update(running_mean, mean)
            count = x.shape[1] * sharing
            self._update(running_var, var * (count / max(count - 1, 1)) if self.unbiased else var)
        return pixels.unflatten(y, groups).reshape(shape)

    def _devices(self) -> int:
        # `init` runs outside `pmap`, where the axis has no size.
        return 1 if self.is_initializing() else parallel.axis_size(self.axis)

    def _split(self, x: Array) -> tuple[Array, tuple[int, ...]]:
        """The groups of this device's share, `[g, n, c]` with n pixels each; `[g, images, ...]`."""
        groups = 1 if self.is_initializing() else max(self.groups // self._devices(), 1)
        if len(x) % groups:
            raise ValueError(
                f"{len(x)} images on a device do not split into {groups} batch norm groups: use a "
                f"batch size that {self.groups} divides"
            )
        x = x.reshape(groups, -1, *x.shape[1:])
        return pixels.flatten(x), x.shape

    def _update(self, running: nn.Variable, batch: Array) -> None:
        """Moves running statistics towards those of the batch, averaged over all its groups."""
        mean_of_groups = jax.lax.stop_gradient(batch).mean((0, 1))
        if self.groups > 1:
            mean_of_groups = parallel.mean_over_devices(mean_of_groups, self.axis)
        mean_of_groups = mean_of_groups.astype(running.value.dtype)
        running.value = self.momentum * running.value + (1 - self.momentum) * mean_of_groups

    def _affine(self, channels: tuple[int, ...], exact: Any) -> tuple[Channels, Channels]:
        """Scale and shift of each channel."""
        initializers = nn.initializers
        if not self.affine:
            return jnp.ones(channels, exact), jnp.zeros(channels, exact)
        dtype = at_least_float32(self.dtype)
        scale = self.param("scale", initializers.ones, channels, dtype)
        return scale, self.param("bias", initializers.zeros, channels, dtype)


Pixels = Float[Array, "g n c"]
Statistic = Float[Array, "g 1 c"]


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def statistics(x: Pixels, axis: parallel.Axis, sharing: int) -> tuple[Statistic, Statistic]:
    """The mean μ and the biased variance σ² of each group.

    Two passes rather than E[x²] - E[x]², which loses digits where the mean is large.

    Args:
      x: activations: groups, pixels, channels.
      axis: name of the mapped device axis.
      sharing: how many neighbouring devices share a group.
    """
    mean = _average(moments(x, (), at_least_float32(x.dtype))[0], x, axis, sharing)
    return mean, _average(squares(x, mean), x, axis, sharing)


@statistics.defjvp
def _(axis, sharing, primals, tangents):
    """μ' and (σ²)' are the means of x' and of 2 (x - μ) x'."""
    (x,), (dx,) = primals, tangents
    mean, var = statistics(x, axis, sharing)
    sums = moments(dx, [Shifted(x, mean)], mean.dtype)
    d_mean, half = (_average(each, x, axis, sharing) for each in sums)
    return (mean, var), (d_mean, 2 * half)


def normalise(
    x: Pixels,
    scale: Channels,
    bias: Channels,
    axis: parallel.Axis,
    sharing: int,
    epsilon: float,
    dtype: Any,
) -> tuple[Pixels, Statistic, Statistic]:
    """y = γ (x - μ)/√(σ² + ε) + β, and the statistics μ and σ²; see `statistics`.

    Args:
      x: activations: groups, pixels, channels.
      scale: γ.
      bias: β.
      axis: name of the mapped device axis.
      sharing: how many neighbouring devices share a group.
      epsilon: ε.
      dtype: of y.
    """
    mean, var = statistics(x, axis, sharing)
    slope = jax.lax.rsqrt(var + epsilon) * _each(scale, x)
    offset = jnp.broadcast_to(_each(bias, x), slope.shape)
    exact = jnp.result_type(mean, slope, offset)
    mean_, slope, offset = (each.astype(exact) for each in (mean, slope, offset))
    return mix([(Shifted(x, mean_), slope)], offset, x.shape, dtype), mean, var


_normalise = jax.jit(normalise, static_argnums=(3, 4, 5, 6))
"""Traced once for all layers of a shape."""


def _average(sums: Statistic, x: Pixels, axis: parallel.Axis, sharing: int) -> Statistic:
    """The average over the pixels of x on all devices that share a group."""
    return parallel.mean_over_neighbours(sums / x.shape[1], axis, sharing)


def _each(channels: Channels, x: Array) -> Float[Array | np.ndarray, "..."]:
    """One number for each channel, with the dimensions of `x`."""
    return channels.reshape((1,) * (x.ndim - 1) + (-1,))
