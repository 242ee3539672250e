import jax
import jax.numpy as jnp
import numpy as np

from invclr_jax.methods import moco
from invclr_jax.methods.momentum import momentum_update
from tests.reference import relative_error


def test_momentum_update_matches_golden(golden, precision):
    stored = golden("moco")
    names = [str(name) for name in stored["names"]]
    keys = {name: jnp.asarray(stored[f"key_init_{name}"], precision) for name in names}
    for step in range(len(stored[f"query_{names[0]}"])):
        query = {name: jnp.asarray(stored[f"query_{name}"][step], precision) for name in names}
        keys = momentum_update(keys, query, float(stored["momentum"]))
        for name in names:
            error = relative_error(keys[name], stored[f"key_{name}"][step])
            assert error < (1e-14 if precision == np.float64 else 1e-6)


def test_queue_matches_golden(golden, precision):
    stored = golden("moco")
    queue, pointer = jnp.asarray(stored["queue_init"], precision), jnp.zeros((), jnp.int32)
    enqueue = jax.jit(moco.enqueue)
    for step, keys in enumerate(stored["keys"]):
        assert int(pointer) == stored["pointer"][step]
        queue, pointer = enqueue(queue, pointer, jnp.asarray(keys, precision))
        expected = stored["queue_after"][step].astype(precision)
        np.testing.assert_array_equal(queue, expected)
    assert int(pointer) == stored["pointer"][-1]
