"""From a configuration to objects: the one place where that is done."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_collections
import optax

from invclr_jax import data, importing, parallel
from invclr_jax.methods import find_method
from invclr_jax.methods.base import Method
from invclr_jax.models import build, network
from invclr_jax.objectives.penalty import make_estimator
from invclr_jax.objectives.term import Penalty
from invclr_jax.training import optimizer, schedules
from invclr_jax.training.loop import total_steps
from invclr_jax.training.online_probe import OnlineProbe
from invclr_jax.training.state import Recipe
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.build import build_transform

SPIROGRAPH_SIZE = 32


@dataclasses.dataclass(frozen=True, eq=False)
class Own:
    """Objects of the user's that take the place of what a configuration describes.

    Attributes:
      encoder: any Flax module, images -> `[n, d]`.
      head: any Flax module, `[n, d]` -> `[n, p]`.
      transform: any `Transform`.
      dataset: the data.
      tx: any optax transformation.
      schedule: the learning rate by step.
    """

    encoder: nn.Module | None = None
    head: nn.Module | None = None
    transform: Transform | None = None
    dataset: data.Dataset | None = None
    tx: optax.GradientTransformation | None = None
    schedule: optax.Schedule | None = None


NOTHING = Own()


def load_data(config: ml_collections.ConfigDict, *, trust: importing.Trust = None) -> data.Dataset:
    """The data set that a configuration names.

    Args:
      config: reads `data` and `transform.size`.
      trust: packages that an import path may be in; None for any.
    """
    options, name = config.data, config.data.name
    if name.startswith(importing.UNNAMED):
        raise ValueError(
            f"the data set was passed as an object, {name.removeprefix(importing.UNNAMED)}, and "
            "cannot be loaded by its name: pass it again, as dataset="
        )
    if importing.is_path(name):
        loader = importing.find(name, home="invclr_jax.data", trust=trust)
        return data.load(loader, path=options.path, **options.options.to_dict())
    known = {key: options[key] for key in data.options_of(name) if key in options}
    if "size" in data.options_of(name):
        known["size"] = config.transform.size
    if name == "stream":
        known |= {key: value for key, value in options.stream.items() if value is not None}
        known["channels"] = config.transform.channels or 3
    return data.load(name, path=options.path, **known)


def describe(
    config: ml_collections.ConfigDict, dataset: data.Dataset, own: Own = NOTHING
) -> ml_collections.ConfigDict:
    """The configuration with what the data and the user's own objects decide.

    It tells how to make every object again, or that it cannot be told.

    Args:
      config: resolved.
      dataset: the data, for picture size, channels, statistics and the transform that suits it.
      own: the user's objects.
    """
    config = config.copy_and_resolve_references()
    options, images = config.transform, dataset.train.images
    pictures = images.ndim == 4
    if options.name is None:
        options.name = dataset.transform
    if options.size is None:
        options.size = images.shape[1] if pictures else SPIROGRAPH_SIZE
    if options.channels is None:
        options.channels = images.shape[3] if pictures else 3
    for key in ("mean", "std"):
        if options[key] is None and getattr(dataset, key) is not None:
            options[key] = tuple(getattr(dataset, key))
    for section, thing in (
        ("model", own.encoder),
        ("head", own.head),
        ("transform", own.transform),
    ):
        if thing is not None:
            _record(config[section], thing)
    for key, thing in (("name", own.tx), ("schedule", own.schedule)):
        if thing is not None:
            config.optimizer[key] = importing.name_of(thing)
    if own.dataset is not None and config.data.name not in ("", own.dataset.name):
        config.data.name = importing.UNNAMED + own.dataset.name
    return config


def _record(section: ml_collections.ConfigDict, thing: Any) -> None:
    described = importing.describe(thing)
    if described is None:
        section.name, options = importing.name_of(thing), {}
    else:
        section.name, options = described.name, described.options
    section.options = options


def from_config(
    config: ml_collections.ConfigDict,
    dataset: data.Dataset,
    own: Own = NOTHING,
    *,
    axis: parallel.Axis = parallel.AXIS,
    num_devices: int | None = None,
) -> Recipe:
    """The method and the optimiser that a configuration describes.

    Args:
      config: resolved and described, see `describe`.
      dataset: the data, for the length of an epoch and the online probe's outputs.
      own: the user's objects.
      axis: mapped device axis, None for one device without `pmap`.
      num_devices: along `axis`; None for all.
    """
    if num_devices is None:
        num_devices = jax.device_count() if axis else 1
    data.check_batch_size(config.batch_size, num_devices * config.chunks)
    per_epoch = data.steps_per_epoch(len(dataset.train), config.batch_size)
    options = {"steps_per_epoch": per_epoch, "total_steps": total_steps(config, per_epoch)}
    schedule = own.schedule
    if schedule is None and own.tx is None:
        schedule = schedules.make_schedule(config.optimizer, **options)
    transform = own.transform or build_transform(config.transform)
    size, channels = config.transform.size, config.transform.channels
    return Recipe(
        method=_method(config, own, transform, options, axis, num_devices),
        tx=own.tx or optimizer.make_optimizer(config.optimizer, schedule),
        image_shape=(size, size, channels),
        seed=config.seed,
        dtype="float64" if config.model.dtype == "float64" else "float32",
        probe=_probe(config, dataset) if config.online_probe.enabled else None,
    )


def _method(config, own: Own, transform: Transform, steps, axis, num_devices) -> Method:
    kind = find_method(config.method)
    encoder = own.encoder or build.build_encoder(config.model, image_size=config.transform.size)
    encoder = build.on_devices(
        encoder,
        _norm_of_chunk(config),
        axis=axis,
        num_devices=num_devices,
        batch_size=config.batch_size // config.chunks,
    )
    head = own.head
    if head is None and config.head.name is not None:
        head = build.build_module(config.head.name, config.head.options.to_dict(), "head")
    if head is None:
        head = _with(
            kind.default_head(encoder, config.model.projection_dim), config.head.options.to_dict()
        )
    return kind.from_config(
        config,
        encoder=encoder,
        head=network.like(head, encoder),
        transform=transform,
        **_other_views(config, own),
        penalty=_penalty(config, steps["steps_per_epoch"]) if config.penalty.weight else None,
        axis=axis,
        chunks=config.chunks,
        total_steps=steps["total_steps"],
        **config.method_options.to_dict(),
    )


def _with(head: nn.Module, options: Mapping[str, Any]) -> nn.Module:
    """The method's head with some of its fields changed."""
    known = {field.name for field in dataclasses.fields(head)} - {"parent", "name"}
    if unknown := options.keys() - known:
        raise ValueError(
            f"config.head.options has {', '.join(sorted(unknown))}: {type(head).__name__} has "
            f"{', '.join(sorted(known))}"
        )
    return head.clone(**options)


def _other_views(config: ml_collections.ConfigDict, own: Own) -> dict[str, Any]:
    """The number of views, and the transforms of those that differ from the first."""
    views = config.views
    changes = {"second": views.second_options.to_dict(), "others": views.other_options.to_dict()}
    if views.size is not None:
        changes["others"]["size"] = views.size
    if own.transform is not None and any(changes.values()):
        raise ValueError(
            "config.views changes keys of config.transform, but the transform was passed as an "
            "object: leave views.size, second_options and other_options empty, or name the "
            "transform in the config"
        )
    transform = config.transform.to_dict()
    made = {name: build_transform(transform | change) for name, change in changes.items() if change}
    return {"num_views": views.number, **made}


def _norm_of_chunk(config: ml_collections.ConfigDict) -> Mapping[str, Any]:
    """Batch norm as one chunk sees it: groups of the batch become groups of the chunk."""
    options = config.batch_norm
    return options.to_dict() | {"groups": max(options.groups // config.chunks, 1)}


def _penalty(config: ml_collections.ConfigDict, per_epoch: int) -> Penalty:
    options = config.penalty
    ramp = options.ramp_epochs * per_epoch
    return Penalty(
        weight=(lambda step: options.weight * jnp.minimum(step / ramp, 1))
        if ramp
        else options.weight,
        estimator=make_estimator(
            options.estimator,
            num_samples=options.num_samples,
            pair=options.pair,
            ridge=options.ridge,
            temperature=config.contrastive.temperature,
        ),
        feature=options.feature,
        clip=options.clip,
        every=options.every,
    )


def _probe(config: ml_collections.ConfigDict, dataset: data.Dataset) -> OnlineProbe:
    labels = dataset.train.labels
    if labels is None:
        raise ValueError("config.online_probe.enabled needs labels and the data set has none")
    is_regression = dataset.num_classes is None
    return OnlineProbe(
        num_outputs=labels.shape[1] if labels.ndim == 2 else dataset.num_classes or 1,
        is_regression=is_regression,
        learning_rate=config.online_probe.learning_rate,
    )
