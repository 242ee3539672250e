"""Any Flax module as training and evaluation call it.

Modules differ in what they keep beside parameters (batch norm's statistics, nothing), in whether
they are told that they train (`train`, `deterministic`), and in the random numbers they draw
(dropout). Here they are alike: `(params, statistics)` and a key.
"""

import dataclasses
import inspect
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.models.dtypes import Shaped

STATISTICS = "batch_stats"
"""The collection that `statistics` always has, empty where a module keeps none."""


def init(module: nn.Module, key: PRNGKeyArray, inputs: Array) -> tuple[PyTree, PyTree, Array]:
    """Fresh parameters and statistics in the dtype of the inputs, and the outputs.

    Args:
      module: any module of one input.
      key: of the parameters.
      inputs: an example, `[n, ...]`.

    Returns:
      `params`, the other collections by name, and what the module makes of the inputs.
    """
    outputs, made = module.init_with_output(key, inputs, **_mode(module, train=False))
    variables = jax.tree.map(lambda leaf: _as(leaf, inputs.dtype), dict(made))
    params = variables.pop("params", {})
    return params, {STATISTICS: {}} | variables, outputs


def train(
    module: nn.Module, params: PyTree, statistics: PyTree, inputs: Array, key: PRNGKeyArray
) -> tuple[Array, PyTree]:
    """Outputs in train mode and the updated statistics.

    Args:
      module: any module of one input.
      params: its parameters.
      statistics: its other collections.
      inputs: `[n, ...]`.
      key: of dropout and other random numbers; the same on every device, which draws its own.
    """
    variables, kept = _variables(params, statistics)
    options = _mode(module, train=True) | {"rngs": {"dropout": _of_device(module, key)}}
    outputs: Any = module.apply(variables, inputs, mutable=kept or False, **options)
    if not kept:
        return outputs, statistics
    outputs, updated = outputs
    return outputs, statistics | {name: updated[name] for name in kept}


def evaluate(module: nn.Module, variables: PyTree, inputs: Array) -> Array:
    """Outputs in eval mode.

    Args:
      module: any module of one input.
      variables: `{"params": ..., "batch_stats": ...}`; empty collections are allowed.
      inputs: `[n, ...]`.
    """
    outputs: Any = module.apply(_filled(variables), inputs, **_mode(module, train=False))
    return outputs


def output_dim(module: nn.Module, inputs: Shaped) -> int:
    """The length of a module's output vectors, without computing one."""
    if hasattr(module, "representation_dim"):
        return module.representation_dim
    example = lambda: jnp.zeros(inputs.shape, inputs.dtype)  # noqa: E731
    return jax.eval_shape(lambda: init(module, jax.random.key(0), example())[2]).shape[-1]


def spread(module: nn.Module, **fields: Any) -> nn.Module:
    """The module with those of the fields that it has, such as `axis` and `groups`.

    Your own module normalises over devices as it is: give `flax.linen.BatchNorm` the
    `axis_name` `parallel.AXIS` for statistics of all of them.
    """
    known = {field.name for field in dataclasses.fields(module)}
    return module.clone(**{name: value for name, value in fields.items() if name in known})


def like(module: nn.Module, other: nn.Module) -> nn.Module:
    """The module spread over devices as another one is, and as precise unless it says how much."""
    names = ("axis", "groups", "unbiased")
    fields = {name: getattr(other, name) for name in names if hasattr(other, name)}
    precision = getattr(other, "precision", None)  # of your own module it may be any of JAX's
    if isinstance(precision, str) and getattr(module, "precision", None) == "default":
        fields["precision"] = precision
    return spread(module, **fields)


def on_one_device(module: nn.Module) -> nn.Module:
    """The module for use outside of training: without device axis and groups."""
    return spread(module, axis=None, groups=1)


def _as(leaf: Array, dtype: Any) -> Array:
    return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def _mode(module: nn.Module, *, train: bool) -> dict[str, Any]:
    """The argument that says whether the module trains."""
    known = inspect.signature(type(module).__call__).parameters
    if "train" in known:
        return {"train": train}
    return {"deterministic": not train} if "deterministic" in known else {}


def _filled(variables: PyTree) -> dict[str, PyTree]:
    return {name: tree for name, tree in variables.items() if jax.tree.leaves(tree)}


def _variables(params: PyTree, statistics: PyTree) -> tuple[dict[str, PyTree], list[str]]:
    kept = _filled(statistics)
    return {"params": params, **kept}, list(kept)


def _of_device(module: nn.Module, key: PRNGKeyArray) -> PRNGKeyArray:
    return jax.random.fold_in(key, parallel.device_index(getattr(module, "axis", None)))
