"""The authors' way to fit a linear classifier: torch L-BFGS, 500 calls, no line search."""

import time

import numpy as np
import torch

CALLS = 500


def fit_classifier(
    features: np.ndarray, labels: np.ndarray, *, num_classes: int, l2: float
) -> tuple[np.ndarray, np.ndarray, list[tuple[float, float]]]:
    """Runs 500 calls of up to 20 steps each, learning rate 1, from a random start.

    Returns:
      W `[f, C]`, b `[C]`, and (seconds since the start, objective) before each call.
    """
    x, y = torch.from_numpy(features), torch.from_numpy(labels.astype(np.int64))
    torch.manual_seed(0)
    model = torch.nn.Linear(features.shape[1], num_classes)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0)
    history: list[tuple[float, float]] = []
    start = time.perf_counter()

    def objective():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss = loss + l2 * model.weight.pow(2).sum()
        loss.backward()
        return loss

    for _ in range(CALLS):
        seconds = time.perf_counter() - start
        history.append((seconds, float(optimizer.step(objective).detach())))
    return model.weight.detach().numpy().T, model.bias.detach().numpy(), history
