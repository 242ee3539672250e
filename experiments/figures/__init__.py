"""One module for each result of the paper, then our own questions."""

from experiments.experiment import Experiment
from experiments.figures import (
    cost,
    ensembling,
    estimators,
    features,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    larger,
    normalisation,
    onset,
    scoreboard,
    spirograph_invariance,
    table1,
    table2,
    table3,
    trajectories,
)

EXPERIMENTS: dict[str, Experiment] = {
    "scoreboard": scoreboard.EXPERIMENT,
    "features": features.EXPERIMENT,
    "trajectories": trajectories.EXPERIMENT,
    "fig2": fig2.EXPERIMENT,
    "table1": table1.EXPERIMENT,
    "spirograph_invariance": spirograph_invariance.EXPERIMENT,
    "fig3": fig3.EXPERIMENT,
    "fig4": fig4.EXPERIMENT,
    "fig5": fig5.EXPERIMENT,
    "table2": table2.EXPERIMENT,
    "fig6": fig6.EXPERIMENT,
    "table3": table3.EXPERIMENT,
    "ensembling": ensembling.EXPERIMENT,
    "cost": cost.EXPERIMENT,
    "estimators": estimators.EXPERIMENT,
    "normalisation": normalisation.EXPERIMENT,
    "onset": onset.EXPERIMENT,
    "larger": larger.EXPERIMENT,
}
