"""SimCLR (Chen et al., 2020): both views through one encoder, contrasted within the batch."""

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.objectives import contrastive
from invclr_jax.training import views
from invclr_jax.training.state import Learner, TrainState

LOSSES = {"info_nce": contrastive.info_nce, "nt_xent": contrastive.nt_xent}


def init(learner: Learner, params: PyTree, batch_stats: PyTree, key: PRNGKeyArray) -> PyTree:
    """SimCLR keeps nothing."""
    return {}


def loss(
    params: PyTree,
    state: TrainState,
    x: Array,
    key: PRNGKeyArray,
    learner: Learner,
    penalised: bool,
) -> tuple[Float[Array, ""], views.Outcome]:
    """Eq. 13 for this device's share of the batch."""
    options = learner.config.contrastive
    draws = views.draw(learner, key, len(x), penalised)
    projected, (penalty, batch_stats) = views.map_chunks(
        lambda rows: _project_views(learner, params, state.batch_stats, *rows),
        (x, draws),
        learner.config.chunks,
    )
    p, q, z = projected
    contrast = LOSSES[options.loss](p, q, options.temperature, axis=learner.axis)
    total, terms = views.add_penalty(learner, state.step, contrast, penalty, penalised)
    others = len(p) * parallel.axis_size(learner.axis)
    candidates = others if options.loss == "info_nce" else 2 * others - 1
    terms["mutual_information_bound"] = contrastive.mutual_information_bound(contrast, candidates)
    return total, views.Outcome(batch_stats, {}, z, terms)


def _project_views(learner, params, batch_stats, x, draws):
    # The second view comes first because penalties of pairs can reuse it.
    z_prime, stats = views.view(learner, params, batch_stats, x, draws.second)
    updated = batch_stats | {"encoder": stats}
    penalty, z, stats = views.penalised_view(learner, params, updated, x, draws, z_prime)
    p, head = learner.project(params, batch_stats, z)
    q, head = learner.project(params, batch_stats | {"head": head}, z_prime)
    return (p, q, z), (penalty, {"encoder": stats, "head": head})
