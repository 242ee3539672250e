"""Copies to devices and back: the same bits, without the host where it would only wait."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax import parallel


def state():
    """Fresh arrays of JAX, as `create_state` gives them."""
    return jax.jit(lambda: {"a": jnp.arange(6.0).reshape(2, 3), "b": jnp.int32(7)})()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("make", [state, lambda: jax.device_get(state())], ids=["jax", "numpy"])
def test_replicated_and_back(make, count):
    devices = jax.local_devices()[:count]
    copies = parallel.replicate(make(), devices)
    assert copies["a"].shape == (count, 2, 3)
    assert copies["a"].sharding.device_set == set(devices)
    for name, expected in jax.device_get(state()).items():
        np.testing.assert_array_equal(copies[name], np.stack([expected] * count))
        found = parallel.unreplicate(copies)[name]
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_one_device_gets_arrays_without_the_host(monkeypatch):
    def fail(*_):
        raise AssertionError("replicate went through the host")

    monkeypatch.setattr(jax, "make_array_from_callback", fail)
    parallel.replicate(state(), jax.local_devices()[:1])
    with pytest.raises(AssertionError, match="through the host"):
        parallel.replicate(jax.device_get(state()), jax.local_devices()[:1])


def test_arrays_of_another_device_are_moved():
    first, second = jax.local_devices()[:2]
    copies = parallel.replicate(jax.device_put(state(), first), [second])
    assert copies["a"].sharding.device_set == {second}


def test_what_was_copied_back_has_memory_of_its_own():
    copies = parallel.replicate(state(), jax.local_devices()[:1])
    view = np.asarray(copies["a"].addressable_data(0))
    assert not np.shares_memory(parallel.unreplicate(copies)["a"], view)
