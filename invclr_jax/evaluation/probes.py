"""Linear probes: what a linear model can read from features. They see arrays and nothing else.

Objectives (golden numbers, section 8), b free in both:
  classifier  mean cross entropy + l2·|W|²
  regressor   mean over samples and outputs of squared error + l2·|W|²
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from invclr_jax import parallel
from invclr_jax.evaluation import checks
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.linear_solver import lbfgs, ridge
from invclr_jax.evaluation.metrics import cross_entropies

MAX_ITERATIONS = 1000
"""Default limit on L-BFGS steps."""

ROWS_TO_DIVIDE = 8192
"""From this many rows on they are divided over all devices; fewer are not worth the messages."""


@dataclasses.dataclass(frozen=True, eq=False)
class Probe:
    """A fitted linear model.

    Attributes:
      weights: W.
      bias: b.
      loss: the objective, penalty included, on the data it was fitted to.
      grad_norm: Euclidean norm of the objective's gradient in (W, b).
      iterations: L-BFGS steps taken, 0 for the closed form.
      l2: weight of the penalty.
    """

    weights: Float[Array, "f c"]
    bias: Float[Array, " c"]
    loss: float
    grad_norm: float
    iterations: int
    l2: float

    def scores(self, features: Float[Values, "n f"]) -> Float[Array, "n c"]:
        """X W + b."""
        features = jnp.asarray(features)
        if features.ndim != 2 or features.shape[1] != len(self.weights):
            raise ValueError(
                f"this probe was fitted to {len(self.weights)} features and cannot take an array "
                f"of shape {features.shape}"
            )
        return jnp.matmul(features, self.weights, precision="highest") + self.bias[None]


class Classifier(Probe):
    """A probe whose scores are logits."""

    def predict(self, features: Float[Values, "n f"]) -> Int[Array, " n"]:
        """The class of highest score."""
        return jnp.argmax(self.scores(features), axis=1)

    def log_probabilities(self, features: Float[Values, "n f"]) -> Float[Array, "n c"]:
        """log p(y | z)."""
        return jax.nn.log_softmax(self.scores(features))


class Regressor(Probe):
    """A probe whose scores are predictions."""

    def predict(self, features: Float[Values, "n f"]) -> Float[Array, "n c"]:
        """The predicted targets."""
        return self.scores(features)


def _softmax_curvature(scores: Array) -> Array:
    """Trace of diag(p) - p pᵀ over its rank."""
    return (1 - jnp.sum(jax.nn.softmax(scores) ** 2, axis=1)) / (scores.shape[1] - 1)


_CLASSIFICATION = lbfgs.Loss(cross_entropies, _softmax_curvature)
_REGRESSION = lbfgs.Loss(
    lambda scores, targets: jnp.mean((scores - targets) ** 2, axis=1),
    lambda scores: jnp.full(len(scores), 2 / scores.shape[1], scores.dtype),
)


def fit_classifier(
    features: Float[Values, "n f"],
    labels: Integer[Values, " n"],
    *,
    num_classes: int,
    l2: float,
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    init: Probe | None = None,
) -> Classifier:
    """Fits softmax regression by L-BFGS; many rows are divided over all devices.

    Args:
      features: z of every training sample.
      labels: their classes, at least two different ones.
      num_classes: C; classes without a sample are allowed.
      l2: weight of |W|².
      tolerance: gradient norm to stop at; None for 3e-7 in float32 and 1e-12 in float64. If
        rounding does not allow that, the fit ends earlier and `grad_norm` says where.
      max_iterations: L-BFGS steps at most.
      init: a probe to start from; None for zero.
    """
    features = checks.finite_rows(features, "features")
    labels = checks.class_labels(labels, len(features), num_classes)
    if jnp.min(labels) == jnp.max(labels):
        raise ValueError(
            f"all {len(labels)} labels are class {labels[0]}: a classifier needs samples of two"
        )
    _check_l2(l2)
    solution = _minimise(
        features,
        labels,
        l2,
        outputs=num_classes,
        init=init,
        tolerance=tolerance,
        max_iterations=max_iterations,
        loss=_CLASSIFICATION,
    )
    return Classifier(**_fields(solution), l2=l2)


def fit_regressor(
    features: Float[Values, "n f"],
    targets: Float[Values, "n t"],
    *,
    l2: float,
    method: str = "closed_form",
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    init: Probe | None = None,
) -> Regressor:
    """Fits ridge regression to several targets at once.

    Args:
      features: z of every training sample.
      targets: what to predict.
      l2: weight of |W|².
      method: `closed_form` (float64 on the host) or `lbfgs` (on the device).
      tolerance: as for `fit_classifier`; for `lbfgs` only.
      max_iterations: for `lbfgs` only.
      init: a probe to start from, for `lbfgs` only.
    """
    features, targets = regression_data(features, targets)
    if method == "closed_form":
        return closed_form(features, targets, ridge.moments(features, targets), l2)
    if method != "lbfgs":
        raise ValueError(f"no method {method!r}: use closed_form or lbfgs")
    _check_l2(l2)
    solution = _minimise(
        features,
        targets,
        l2,
        outputs=targets.shape[1],
        init=init,
        tolerance=tolerance,
        max_iterations=max_iterations,
        loss=_REGRESSION,
    )
    return Regressor(**_fields(solution), l2=l2)


def regression_data(
    features: Float[Values, "n f"], targets: Float[Values, "n t"]
) -> tuple[Float[Array, "n f"], Float[Array, "n t"]]:
    """Both as arrays of one precision; raises a ValueError that says what is wrong with them."""
    features = jnp.asarray(checks.finite_rows(features, "features"))
    targets = checks.finite_rows(targets, "targets", rows=len(features))
    return features, jnp.asarray(targets, features.dtype)


def closed_form(features: Array, targets: Array, moments: ridge.Moments, l2: float) -> Regressor:
    """The ridge solution from known moments; the data is used only for the report."""
    _check_l2(l2)
    weights, bias = ridge.solve(moments, l2)
    parameters = jnp.asarray(np.concatenate([weights, bias[None]]), features.dtype)
    value, grad_norm = lbfgs.objective(
        features, targets, parameters, jnp.asarray(l2, features.dtype), loss=_REGRESSION
    )
    return Regressor(**_fields(lbfgs.Solution(parameters, value, grad_norm, jnp.array(0))), l2=l2)


def _minimise(
    features: Values,
    targets: Values,
    l2: float,
    *,
    outputs: int,
    init: Probe | None,
    tolerance: float | None,
    max_iterations: int,
    loss: lbfgs.Loss,
) -> lbfgs.Solution:
    dtype = features.dtype
    if tolerance is None:
        tolerance = 1e-12 if dtype == jnp.float64 else 3e-7
    mesh = None
    if len(features) >= ROWS_TO_DIVIDE and jax.device_count() > 1:
        mesh = parallel.row_mesh(jax.devices())
        features, targets = np.asarray(features), np.asarray(targets)
    return lbfgs.minimise(
        features,
        targets,
        _start(features, outputs, init),
        jnp.asarray(l2, dtype),
        jnp.asarray(tolerance, dtype),
        jnp.asarray(max_iterations),
        loss=loss,
        mesh=mesh,
    )


def _start(features: Values, outputs: int, init: Probe | None) -> Float[Array, "f1 c"]:
    shape = (features.shape[1] + 1, outputs)
    if init is None:
        return jnp.zeros(shape, features.dtype)
    start = jnp.concatenate([init.weights, init.bias[None]]).astype(features.dtype)
    if start.shape != shape:
        raise ValueError(
            f"init has weights {init.weights.shape}, this fit needs ({shape[0] - 1}, {outputs})"
        )
    return start


def _fields(solution: lbfgs.Solution) -> dict[str, Any]:
    return {
        "weights": solution.parameters[:-1],
        "bias": solution.parameters[-1],
        "loss": float(solution.loss),
        "grad_norm": float(solution.grad_norm),
        "iterations": int(solution.iterations),
    }


def _check_l2(l2: float) -> None:
    if not (np.isfinite(l2) and l2 >= 0):
        raise ValueError(f"l2 is {l2}: use a finite number, 0 or above")
