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
    config.seed = 0  # of weights, order and transformations
    config.fidelity = "paper"  # or "authors": see FIDELITY for what it flips
    config.method = "simclr"  # a name of invclr_jax.methods, or an import path
    config.method_options = {}  # fields of a method that is named by its import path
    config.batch_size = 512  # over all devices
    config.num_epochs = later(int)  # passes over the training data; None: the method's
    config.num_steps = later(int)  # instead of num_epochs
    config.chunks = 1  # parts of a device's batch; activations of one are alive at a time
    config.model = dict(
        name="resnet50",  # or an import path, with options
        width=64,  # channels of the first stage
        stem="auto",  # "cifar" for small pictures, "standard"; "auto" goes by the size
        conv="auto",  # or "xla": XLA's own convolutions on CPUs too
        dtype="float32",  # of activations, or "bfloat16"
        precision="default",  # of float32 products on GPUs and TPUs: "high", "highest"
        remat=False,  # recompute blocks in the backward pass: less memory on GPUs and TPUs
        projection_dim=later(int),  # None: the method's, 128 for SimCLR
        options={},  # further fields of the encoder, such as pool="token" of vit_tiny
    )
    config.head = dict(
        name=later(str),  # None: the method's; or an import path
        options={},  # its fields, such as hidden=(512,)
    )
    config.contrastive = dict(
        loss=later(str),  # "info_nce" or "nt_xent" for SimCLR
        temperature=later(float),  # tau, the divisor of cosine similarities
    )
    config.penalty = dict(
        weight=0.1,  # lambda; 0 is plain contrastive learning
        clip=1.0,  # the largest mean over the batch that has a gradient
        estimator="sampled",  # or "moments", "forward", "exact", "finite"
        feature="unit",  # h: also "centred", "relative", and "canonical" with finite
        num_samples=100,  # L, draws of alpha' for each sample
        every=1,  # apply it each n-th step with n times the weight
        ramp_epochs=0.0,  # lambda grows from 0 over so many epochs
        pair="alpha",  # of finite: "alpha" keeps beta; "views" takes the second view as it is
        ridge=later(float),  # of the feature canonical; None: stable_ridge, for the batch
    )
    config.optimizer = dict(
        name="lars",  # or "sgd", "adamw", "muon", or an import path, with options
        base_learning_rate=3.0,  # at the end of the ramp
        ramp_epochs=10.0,  # linear warm-up
        schedule=later(str),  # the paper's, by "step" or "epoch"; "warmup_cosine"; or a path
        schedule_options={},  # arguments of a schedule that is named by its import path
        momentum=0.9,  # of SGD and LARS
        weight_decay=later(float),  # None: the method's
        trust_coefficient=0.001,  # of LARS
        rule=later(str),  # of LARS: "optax", "torchlars" or "clipped"
        mask="none",  # or "batch_norm_and_bias": those are neither adapted nor decayed
        options={},  # further arguments of the optimiser
    )
    config.batch_norm = dict(
        scope=later(str),  # "global", "per_device", "groups" or "per_chunk"
        groups=later(int),  # how many, of the scope "groups"
        running_variance=later(str),  # "biased" as Flax's, "unbiased" as PyTorch's
    )
    config.data = dict(
        name="cifar10",  # or an import path, with options
        path=later(str),  # folder or file
        on_device=later(bool),  # keep the data in device memory; None: when it fits
        verify=True,  # checksums of official archives
        download=False,  # fetch a missing CIFAR
        seed=0,  # of Spirograph's factors
        num_train=100_000,  # Spirograph only
        num_test=20_000,  # Spirograph only
        stream=dict(  # of the name "stream": pictures that are read while training
            format=later(str),  # "folder", "parquet" or "tfds"; None: what lies at the path
            train="train",  # folder or split of the training pictures
            test=later(str),  # None: test, validation, val or valid, if there is one
            size=later(int),  # side of the squares that are sent to the devices; None: transform's
            workers=later(int),  # processes that read; None: one a core; 0: threads
            on_error="refuse",  # or "skip": another picture of the class is read in its place
            labels=True,  # whether to read labels
            image_column="image",  # of parquet files
            label_column="label",  # of parquet files
            statistics=1000,  # pictures that channel statistics are measured from; 0: none
        ),
        options={},  # arguments of a data set of your own
    )
    config.transform = dict(
        # None: the data's; "image", "spirograph", a preset such as "byol_first", which has a
        # strength and probabilities of its own; or an import path. All take options.
        name=later(str),
        penalised=("colour",),  # what alpha is made of: also "crop", "affine"
        strength=0.5,  # of the colour jitter
        variant=later(str),  # of the colour jitter: "paper" or "authors"
        normalise=later(str),  # of Spirograph's intensity: "image" or "row"
        jitter_probability=0.8,  # of colour jitter
        grey_probability=0.2,  # of losing all colour
        size=later(int),  # picture size the encoder sees; None: the data's, 32 for Spirograph
        channels=later(int),  # None: the data's
        mean=later(tuple),  # channel statistics; None: the data's
        std=later(tuple),  # standard deviations, likewise
        options={},  # further arguments of the transformation
    )
    config.views = dict(
        number=later(int),  # views of an image in a step; None: the method's, mostly 2
        size=later(int),  # picture size of the third view and further; None: transform.size
        second_options={},  # keys of config.transform in which the second view differs
        other_options={},  # likewise the third and further
    )
    config.online_probe = dict(
        enabled=False,  # fit a linear classifier while training; the encoder does not see it
        learning_rate=0.1,  # of the classifier
    )
    config.checkpoint = dict(
        every_steps=1000,  # save one each so many steps
        keep=3,  # the newest so many
    )
    config.log = dict(
        every_steps=50,  # write metrics each so many steps
        tensorboard=True,  # also write TensorBoard files
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
    """Options of your own classes take any key."""
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
