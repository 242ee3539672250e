"""What every measure works on: an encoder, pictures, a transformation, and what is found."""

import dataclasses
import functools
from typing import SupportsFloat

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.evaluation.audit.bootstrap import Bootstrap, Interval
from invclr_jax.evaluation.audit.encoding import Encoding
from invclr_jax.evaluation.audit.settings import AuditSettings
from invclr_jax.transforms.base import NoPlainVersion, Transform, shifts


@dataclasses.dataclass(eq=False)
class Findings:
    """Numbers by name, and intervals of those that have one."""

    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    intervals: dict[str, Interval] = dataclasses.field(default_factory=dict)

    def add(self, name: str, value: SupportsFloat, interval: Interval | None = None) -> None:
        """Records a number."""
        self.metrics[name] = float(value)
        if interval is not None:
            self.intervals[name] = interval


@dataclasses.dataclass(eq=False)
class Subject:
    """An encoder under audit.

    Attributes:
      encoding: the encoder.
      x: pictures, or factors that the transform draws, `[n, ...]`.
      transform: what changes them.
      labels: classes `[n]`, or None.
      settings: how thorough the audit is.
    """

    encoding: Encoding
    x: np.ndarray
    transform: Transform
    labels: np.ndarray | None
    settings: AuditSettings

    @functools.cached_property
    def bootstrap(self) -> Bootstrap:
        """What makes all intervals."""
        return Bootstrap(self.settings.resamples, self.settings.confidence, self.settings.seed)

    @functools.cached_property
    def clean(self) -> Float[np.ndarray, "n d"]:
        """Features of plain pictures; those of the neutral alpha if there is no plain version."""
        try:
            return self.encoding.plain(self.transform, self.x)
        except NoPlainVersion:
            regime, _ = shifts(self.transform)
            mean = np.asarray(regime.alpha.mean, np.float32)
            alpha, beta = regime.sample(self.key("clean"), len(self.x))
            return self.encoding.transformed(self.transform, self.x, alpha * 0 + mean[None], beta)

    @property
    def varied(self) -> np.ndarray:
        """The pictures that are transformed repeatedly: the first ones."""
        return self.x[: self.settings.varied_images]

    def key(self, purpose: str, index: int = 0) -> PRNGKeyArray:
        """A key for a purpose."""
        number = int.from_bytes(purpose.encode(), "little") % (2**31 - 1)
        key = jax.random.fold_in(jax.random.key(self.settings.seed), number)
        return jax.random.fold_in(key, index)

    def pictures(self, x: np.ndarray) -> Float[Array, "n h w c"]:
        """Pictures as the encoder sees them, untransformed."""
        return self.transform.untransformed(x)
