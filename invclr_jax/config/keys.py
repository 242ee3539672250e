"""Every key with the paper's value, and what `fidelity` decides.

A key that is None is decided later: by `fidelity` (see `FIDELITY` and each method's `defaults`) or
by the data set (picture size, channel statistics, transformation).
"""

import ml_collections
from ml_collections import config_dict

from invclr_jax.config.checks import check, check_choice
from invclr_jax.config.values import flatten, get_key, set_key
from invclr_jax.methods import METHODS, find_method

FIDELITY = {
    # key: (paper's value, authors' value), whatever the method
    "transform.variant": ("paper", "authors"),
    "transform.normalise": ("image", "row"),
    "optimizer.rule": ("optax", "torchlars"),
    "optimizer.schedule": ("step", "epoch"),
    "batch_norm.running_variance": ("biased", "unbiased"),
}


def default_config() -> ml_collections.ConfigDict:
    """Every key of the project with the paper's CIFAR value (appendix, tables 4 to 6)."""
    later = config_dict.placeholder  # a typed None; each key needs its own
    config = ml_collections.ConfigDict()
    config.seed = 0
    config.fidelity = "paper"  # or "authors": see FIDELITY for what it flips
    config.method = "simclr"  # a name of invclr_jax.methods, or an import path
    config.method_options = {}  # fields of a method that is named by its import path
    config.batch_size = 512  # over all devices
    config.num_epochs = later(int)
    config.num_steps = later(int)  # instead of num_epochs
    config.chunks = 1  # parts of a device's batch; activations of one are alive at a time
    config.model = dict(
        name="resnet50",  # or an import path, with options
        width=64,
        stem="auto",
        conv="auto",
        dtype="float32",
        precision="default",  # of float32 products on GPUs and TPUs: "high", "highest"
        remat=False,  # recompute blocks in the backward pass: less memory on GPUs and TPUs
        projection_dim=later(int),  # None: the method's, 128 for SimCLR
        options={},  # further fields of the encoder, such as pool="token" of vit_tiny
    )
    # None: the method's with options, such as hidden=(512,); or an import path
    config.head = dict(name=later(str), options={})
    config.contrastive = dict(loss=later(str), temperature=later(float))
    config.penalty = dict(
        weight=0.1,  # lambda; 0 is plain contrastive learning
        clip=1.0,
        estimator="sampled",
        feature="unit",
        num_samples=100,  # L
        every=1,  # apply it each n-th step with n times the weight
        ramp_epochs=0.0,  # lambda grows from 0 over so many epochs
        pair="alpha",  # of finite: "alpha" keeps beta; "views" takes the second view as it is
        ridge=later(float),  # of the feature canonical; None: stable_ridge, for the batch
    )
    config.optimizer = dict(
        name="lars",  # or "sgd", "adamw", "muon", or an import path, with options
        base_learning_rate=3.0,
        ramp_epochs=10.0,
        schedule=later(str),  # the paper's, by "step" or "epoch"; "warmup_cosine"; or a path
        schedule_options={},
        momentum=0.9,
        weight_decay=later(float),
        trust_coefficient=0.001,
        rule=later(str),  # of LARS: "optax", "torchlars" or "clipped"
        mask="none",  # or "batch_norm_and_bias": those are neither adapted nor decayed
        options={},
    )
    config.batch_norm = dict(
        scope=later(str),  # "global", "per_device", "groups" or "per_chunk"
        groups=later(int),
        running_variance=later(str),  # "biased" as Flax's, "unbiased" as PyTorch's
    )
    config.data = dict(
        name="cifar10",  # or an import path, with options
        path=later(str),
        on_device=later(bool),  # None: when it fits
        verify=True,  # checksums of official archives
        download=False,  # fetch a missing CIFAR
        seed=0,  # of Spirograph's factors
        num_train=100_000,  # Spirograph only
        num_test=20_000,
        stream=dict(  # of the name "stream": pictures that are read while training
            format=later(str),  # "folder", "parquet" or "tfds"; None: what lies at the path
            train="train",
            test=later(str),  # None: test, validation, val or valid, if there is one
            size=later(int),  # side of the squares that are sent to the devices; None: transform's
            workers=later(int),  # processes that read; None: one a core; 0: threads
            on_error="refuse",  # or "skip": another picture of the class is read in its place
            labels=True,
            image_column="image",
            label_column="label",
            statistics=1000,  # pictures that channel statistics are measured from; 0: none
        ),
        options={},
    )
    config.transform = dict(
        # None: the data's; "image", "spirograph", a preset such as "byol_first", which has a
        # strength and probabilities of its own; or an import path. All take options.
        name=later(str),
        penalised=("colour",),  # what alpha is made of: also "crop", "affine"
        strength=0.5,
        variant=later(str),  # of the colour jitter: "paper" or "authors"
        normalise=later(str),  # of Spirograph's intensity: "image" or "row"
        jitter_probability=0.8,
        grey_probability=0.2,
        size=later(int),  # picture size the encoder sees; None: the data's, 32 for Spirograph
        channels=later(int),  # None: the data's
        mean=later(tuple),  # channel statistics; None: the data's
        std=later(tuple),
        options={},
    )
    config.views = dict(
        number=later(int),  # views of an image in a step; None: the method's, mostly 2
        size=later(int),  # picture size of the third view and further; None: transform.size
        second_options={},  # keys of config.transform in which the second view differs
        other_options={},  # likewise the third and further
    )
    config.online_probe = dict(enabled=False, learning_rate=0.1)
    config.checkpoint = dict(every_steps=1000, keep=3)
    config.log = dict(
        every_steps=50,
        tensorboard=True,
        tracker="",  # "wandb" or "trackio"
        project="invclr_jax",  # of the tracker
    )
    config.eval = dict(
        every_steps=0,  # evaluate while training; 0 for never
        protocol="invariance",  # names of `invclr evaluate`, comma separated
        num_samples=10,  # M of the protocol average
        limit=5000,  # training and test rows to use
    )
    for name, method in METHODS.items():
        if method.options:
            config[name] = {
                key: later(bool) if value is None else value
                for key, value in method.options.items()
            }
    config.lock()
    _unlock_options(config)
    return config


def _unlock_options(config: ml_collections.ConfigDict) -> None:
    """Options of one's own classes take any key."""
    for key, value in config.items():
        if isinstance(value, ml_collections.ConfigDict):
            if key.endswith("options"):
                value.unlock()
            else:
                _unlock_options(value)


def resolve(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """A checked copy in which every key that `fidelity` decides has its value."""
    config = config.copy_and_resolve_references()
    check_choice("fidelity", config.fidelity, ("paper", "authors"))
    if config.method is None:
        raise ValueError("config.method is None: its default is 'simclr'")
    method = find_method(config.method)
    for key, values in (FIDELITY | dict(method.defaults)).items():
        if get_key(config, key) is None:
            set_key(config, key, values[config.fidelity == "authors"])
    check(config, flatten(default_config()))
    return config
