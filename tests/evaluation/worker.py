"""One process of a job that evaluates: FILE PROCESS COUNT PORT are its arguments."""

import sys

import jax
import numpy as np

N = 23


def main(file, process, count, port):
    if count > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", count, process)
    # Only now: these modules make arrays.
    from invclr_jax.evaluation import features, knn, probes
    from tests.evaluation.test_features import KEY, TRANSFORM, encode

    x = np.random.default_rng(0).integers(0, 256, (N, 2, 3, 3), dtype=np.uint8)
    counted = []
    curve = features.average_features_curve(
        encode, TRANSFORM, x, KEY, [1, 3], batch_size=2, progress=counted.append
    )
    assert sum(counted) == N
    probes.ROWS_TO_DIVIDE = 10
    probe = probes.fit_classifier(curve[3], np.arange(N) % 3, num_classes=3, l2=1e-2)
    scores = np.asarray(probe.scores(curve[1]))
    knn.BATCH = 4
    near = knn.knn_predict(curve[3], np.arange(N) % 3, curve[1], num_classes=3, k=5)
    found = {"one": curve[1], "three": curve[3], "scores": scores, "near": near}
    np.savez(f"{file}{process}", **found, loss=probe.loss)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
