"""L-BFGS for linear models, entirely on the devices: one jitted loop, no callbacks to the host.

It minimises `loss(X W + b) + l2·|W|²` with b free. What a general optimiser cannot know, and this
one uses, is that the scores are linear in (W, b):

- along a direction only the scores `X V` are needed, so a step costs one product with X and one
  with its transpose, however many points the line search tries;
- the Hessian is near `Xᵀ diag(w) X` for every class at once, w the curvature of the loss in each
  row. Its inverse (`preconditioner.py`) is the initial matrix of the two-loop recursion. Features
  that differ in scale or are strongly correlated then need no more steps than white ones.

Shapes: n rows, f features, c columns of scores, f1 = f + 1 rows of parameters, the last of them b.

Rows may be divided over devices. Each device then holds its own rows and their scores, all hold
the parameters and the pairs, and sums over rows are also summed over devices.

Nocedal and Wright, Numerical Optimization, Algorithms 7.4 and 7.5. `optax.lbfgs` starts from a
multiple of the identity and evaluates the whole model at every point of its line search.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from invclr_jax import parallel
from invclr_jax.evaluation.linear_solver import preconditioner
from invclr_jax.evaluation.linear_solver.line_search import search
from invclr_jax.evaluation.linear_solver.preconditioner import Preconditioner

REFRESH = 8
"""Steps between two checks of the curvature; scores are accumulated in between."""

REBUILD = 8.0
"""The preconditioner is rebuilt when the mean curvature has fallen by this factor: fitted rows stop
counting, and the few that are left have a different covariance."""

PATIENCE = 25
"""Steps without progress in loss or gradient after which rounding is taken to be the limit."""


class Loss(NamedTuple):
    """A convex loss of scores.

    Attributes:
      rows: (scores `[n, c]`, targets) -> `[n]`, the loss of each row.
      curvature: scores `[n, c]` -> `[n]`, the mean eigenvalue of the Hessian of each row's loss.
    """

    rows: Callable[[Array, Any], Array]
    curvature: Callable[[Array], Array]


class Solution(NamedTuple):
    """Where the loop ended: W and below it b, the objective, its gradient norm, steps taken."""

    parameters: Float[Array, "f1 c"]
    loss: Float[Array, ""]
    grad_norm: Float[Array, ""]
    iterations: Int[Array, ""]


class _Pairs(NamedTuple):
    """The last steps s and gradient changes y, newest first, and 1/(s·y)."""

    steps: Float[Array, "m f1 c"]
    changes: Float[Array, "m f1 c"]
    inverse: Float[Array, " m"]


class _State(NamedTuple):
    parameters: Float[Array, "f1 c"]
    scores: Float[Array, "n c"]
    value: Float[Array, ""]
    gradient: Float[Array, "f1 c"]
    pairs: _Pairs
    initial: Preconditioner
    best: Float[Array, "f1 c"]
    best_value: Float[Array, ""]
    best_norm: Float[Array, ""]
    idle: Int[Array, ""]
    iterations: Int[Array, ""]
    going: Bool[Array, ""]


class _Problem(NamedTuple):
    """The objective of centred features, with the scores given wherever they are known.

    `share` is 1/n for a row of the data and 0 for a row that pads a device.
    """

    features: Float[Array, "n f"]
    mean: Float[Array, " f"]
    targets: Any
    share: Float[Array, " n"]
    l2: Float[Array, ""]
    loss: Loss
    axis: parallel.Axis

    def scores(self, parameters):
        return self.features @ parameters[:-1] + parameters[-1:]

    def _of_own_rows(self, scores):
        return jnp.sum(self.loss.rows(scores, self.targets) * self.share)

    def total(self, tree):
        """The sum over devices of what each has for its own rows."""
        return parallel.sum_over_devices(tree, self.axis)

    def value(self, parameters, scores):
        return self.total(self._of_own_rows(scores)) + self.l2 * jnp.sum(parameters[:-1] ** 2)

    def gradient(self, parameters, scores):
        residual = jax.grad(self._of_own_rows)(scores)
        # residualᵀ X takes a quarter of the time of Xᵀ residual on the CPU; the barrier keeps the
        # compiler from turning the one into the other.
        weights = jax.lax.optimization_barrier(residual.T @ self.features).T
        gradient = self.total(jnp.concatenate([weights, residual.sum(0, keepdims=True)]))
        return gradient.at[:-1].add(2 * self.l2 * parameters[:-1])

    def norm(self, gradient):
        """Norm of the gradient in (W, b) before centring, where scores are (x + mean) W + b."""
        bias = gradient[-1:]
        return jnp.hypot(
            jnp.linalg.norm(gradient[:-1] + self.mean[:, None] * bias), jnp.linalg.norm(bias)
        )

    def along(self, parameters, scores, direction, direction_scores):
        """t -> the objective and its slope at `parameters + t·direction`."""

        def value_and_slope(t):
            moved = scores + t * direction_scores
            value, residual = jax.value_and_grad(self._of_own_rows)(moved)
            value, slope = self.total((value, jnp.vdot(residual, direction_scores)))
            weights = parameters[:-1] + t * direction[:-1]
            return (
                value + self.l2 * jnp.sum(weights**2),
                slope + 2 * self.l2 * jnp.vdot(weights, direction[:-1]),
            )

        return value_and_slope


def minimise(
    features: Float[Array | np.ndarray, "n f"],
    targets: Any,
    start: Float[Array, "f1 c"],
    l2: Float[Array, ""],
    tolerance: Float[Array, ""],
    max_iterations: Int[Array, ""],
    *,
    loss: Loss,
    memory: int = 10,
    mesh: jax.sharding.Mesh | None = None,
) -> Solution:
    """Minimises `loss(X W + b) + l2·|W|²` over (W, b).

    Args:
      features: X.
      targets: second argument of the loss, one row per row of X.
      start: initial W, with b as its last row.
      l2: weight of the penalty on W; b is free.
      tolerance: Euclidean norm of the gradient in (W, b) to stop at. The loop also stops when
        rounding allows no further progress.
      max_iterations: limit on the number of steps.
      loss: the loss of the scores.
      memory: pairs kept for the two-loop recursion.
      mesh: devices to divide the rows over; features and targets are then NumPy arrays, the same
        on every process; None for the default device.
    """
    share = np.full(len(features), 1 / len(features), features.dtype)
    shared = (start, l2, tolerance, max_iterations)
    if mesh is None:
        return _minimise((features, targets, share), shared, loss=loss, memory=memory, axis=None)
    rows = parallel.divide((features, np.asarray(targets), share), mesh)
    shared = jax.tree.map(np.asarray, shared)  # any process may give them to its own devices
    solution = _on_mesh(rows, shared, loss=loss, memory=memory, mesh=mesh)
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), solution)


@functools.partial(jax.jit, static_argnames=("loss", "memory", "mesh"))
def _on_mesh(rows, shared, *, loss: Loss, memory: int, mesh: jax.sharding.Mesh) -> Solution:
    options = {"loss": loss, "memory": memory, "axis": parallel.AXIS}
    return jax.shard_map(
        functools.partial(_minimise, **options),
        mesh=mesh,
        in_specs=(parallel.BY_ROW, parallel.WHOLE),
        out_specs=parallel.WHOLE,
        check_vma=False,
    )(rows, shared)


@functools.partial(jax.jit, static_argnames=("loss", "memory", "axis"))
def _minimise(rows, shared, *, loss: Loss, memory: int, axis: parallel.Axis) -> Solution:
    """`minimise` with all rows, or on one of the devices of an axis with its own rows."""
    features, targets, share = rows
    start, l2, tolerance, max_iterations = shared
    with jax.default_matmul_precision("highest"):
        # If the mean is large compared with the spread, centring saves the digits of float32.
        real = share > 0
        sums = jnp.sum(features, axis=0, where=real[:, None]), jnp.sum(real, dtype=share.dtype)
        total, count = parallel.sum_over_devices(sums, axis)
        mean = total / count  # exact for a constant feature, unlike a sum of shares
        problem = _Problem(features - mean[None], mean, targets, share, l2, loss, axis)
        # Scores accumulated over a few steps are not quite X W + b: leave a margin.
        target_norm = 0.95 * tolerance
        state = jax.lax.while_loop(
            lambda state: (
                state.going
                & (state.iterations < max_iterations)
                & (problem.norm(state.gradient) > target_norm)
            ),
            functools.partial(_step, problem),
            _initial_state(problem, start.at[-1].add(mean @ start[:-1]), memory),
        )
        # Where rounding ends the loop, the last steps wander: the best of them is the answer.
        parameters = jnp.where(state.going, state.parameters, state.best)
        parameters = parameters.at[-1].add(-mean @ parameters[:-1])
        value, norm = _objective(features, targets, share, parameters, l2, loss, axis)
    return Solution(parameters, value, norm, state.iterations)


@functools.partial(jax.jit, static_argnames="loss")
def objective(
    features: Float[Array, "n f"],
    targets: Any,
    parameters: Float[Array, "f1 c"],
    l2: Float[Array, ""],
    *,
    loss: Loss,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The objective and the norm of its gradient, from scratch; arguments as for `minimise`."""
    share = jnp.full(len(features), 1 / len(features), features.dtype)
    with jax.default_matmul_precision("highest"):
        return _objective(features, targets, share, parameters, l2, loss, None)


def _objective(features, targets, share, parameters, l2, loss: Loss, axis: parallel.Axis):
    problem = _Problem(features, jnp.zeros_like(features[0]), targets, share, l2, loss, axis)
    scores = problem.scores(parameters)
    gradient = problem.gradient(parameters, scores)
    return problem.value(parameters, scores), problem.norm(gradient)


def _initial_state(problem: _Problem, start: Array, memory: int) -> _State:
    scores = problem.scores(start)
    value = problem.value(start, scores)
    gradient = problem.gradient(start, scores)
    none = jnp.zeros((memory, *start.shape), start.dtype)
    return _State(
        parameters=start,
        scores=scores,
        value=value,
        gradient=gradient,
        pairs=_Pairs(none, none, none[:, 0, 0]),
        initial=preconditioner.unbuilt(problem.features),
        best=start,
        best_value=value,
        best_norm=problem.norm(gradient),
        idle=jnp.zeros((), jnp.int32),
        iterations=jnp.zeros((), jnp.int32),
        going=jnp.array(True),
    )


def _step(problem: _Problem, state: _State) -> _State:
    """Direction, line search, new gradient, new pair."""
    scores, initial = jax.lax.cond(
        state.iterations % REFRESH == 0,
        lambda: _refresh(problem, state.parameters, state.initial),
        lambda: (state.scores, state.initial),
    )
    direction = -_two_loops(state.gradient, state.pairs, initial)
    slope = jnp.vdot(state.gradient, direction)
    direction_scores = problem.scores(direction)
    along = problem.along(state.parameters, scores, direction, direction_scores)
    t, value = search(along, state.value, slope)

    parameters = state.parameters + t * direction
    scores = scores + t * direction_scores
    gradient = problem.gradient(parameters, scores)
    norm = problem.norm(gradient)
    slack = 4 * jnp.finfo(value.dtype).eps * jnp.abs(state.best_value)
    better = (value < state.best_value - slack) | (norm < 0.9 * state.best_norm)
    idle = jnp.where(better, 0, state.idle + 1)
    return _State(
        parameters=parameters,
        scores=scores,
        value=value,
        gradient=gradient,
        pairs=_remember(state.pairs, t * direction, gradient - state.gradient),
        initial=initial,
        best=jnp.where(norm < state.best_norm, parameters, state.best),
        best_value=jnp.minimum(value, state.best_value),
        best_norm=jnp.minimum(norm, state.best_norm),
        idle=idle,
        iterations=state.iterations + 1,
        going=(slope < 0) & (idle < PATIENCE),
    )


def _refresh(problem: _Problem, parameters: Array, old: Preconditioner):
    """Scores without accumulated rounding; a new preconditioner if the curvature fell."""
    scores = problem.scores(parameters)
    curvature = problem.loss.curvature(scores) * problem.share
    mean = problem.total(curvature.sum())
    fell = (mean < old.weight / REBUILD) & (mean > 0)
    build = functools.partial(
        preconditioner.build, problem.features, curvature, problem.l2, problem.axis
    )
    return scores, jax.lax.cond(fell, build, lambda: old)


def _two_loops(gradient: Array, pairs: _Pairs, initial: Preconditioner) -> Array:
    """The approximate inverse Hessian times the gradient (Algorithm 7.4)."""

    def backwards(vector, pair):
        amount = pair.inverse * jnp.vdot(pair.steps, vector)
        return vector - amount * pair.changes, amount

    def forwards(vector, pair_and_amount):
        pair, amount = pair_and_amount
        amount = amount - pair.inverse * jnp.vdot(pair.changes, vector)
        return vector + amount * pair.steps, None

    vector, amounts = jax.lax.scan(backwards, gradient, pairs)
    vector = _scale(pairs, initial) * initial(vector)
    return jax.lax.scan(forwards, vector, (pairs, amounts), reverse=True)[0]


def _scale(pairs: _Pairs, initial: Preconditioner) -> Float[Array, ""]:
    """s·y/(y·H0 y) of the newest pair: the curvature that H0 should have shown along it."""
    expected = pairs.inverse[0] * jnp.vdot(pairs.changes[0], initial(pairs.changes[0]))
    return jnp.where(expected > 0, 1 / jnp.where(expected > 0, expected, 1), 1)


def _remember(pairs: _Pairs, step: Array, change: Array) -> _Pairs:
    """Puts a pair in front; one without positive curvature (rounding) is given no weight."""
    product = jnp.vdot(step, change)
    least = jnp.finfo(step.dtype).eps * jnp.linalg.norm(step) * jnp.linalg.norm(change)
    inverse = jnp.where(product > least, 1 / jnp.where(product > least, product, 1), 0)
    new = _Pairs(step, change, inverse)
    return jax.tree.map(lambda new, old: jnp.concatenate([new[None], old[:-1]]), new, pairs)
