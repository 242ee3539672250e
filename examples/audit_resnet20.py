"""Audits an encoder that others trained: the CIFAR ResNet20 of He et al. (2016).

    python -m examples.audit_resnet20 --weights=resnet20_cifar10.safetensors --data=FOLDER

The weights are those of akamaster/pytorch_resnet_cifar10 as a safetensors file with torch's names.
The forward pass below is all that an audit needs to know of a network.
"""

import pathlib

import jax.numpy as jnp
import numpy as np
from absl import app, flags
from jax import lax, nn
from safetensors.numpy import load_file

import invclr_jax as ic
from invclr_jax.evaluation.features import in_batches
from invclr_jax.evaluation.metrics import accuracy
from invclr_jax.transforms.image import ImageTransform

_WEIGHTS = flags.DEFINE_string("weights", None, "The safetensors file.", required=True)
_DATA = flags.DEFINE_string("data", None, "Folder of CIFAR-10.", required=True)
_OUTPUT = flags.DEFINE_string("output", "audit", "Folder for the report.")
_QUICK = flags.DEFINE_bool("quick", False, "Fewer draws.")


# The network, as a user would write it ---------------------------------------------------------

MEAN, STD = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]], np.float32)


def conv(w, name, x, stride=1):
    """A 3×3 convolution with torch's weights."""
    kernel = w[f"{name}.weight"].transpose(2, 3, 1, 0)
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (stride,) * 2, [(1, 1)] * 2, dimension_numbers=layout
    )


def norm(w, name, x):
    """Batch norm by its running statistics."""
    scale = w[f"{name}.weight"] / np.sqrt(w[f"{name}.running_var"] + 1e-5)
    return (x - w[f"{name}.running_mean"]) * scale + w[f"{name}.bias"]


def block(w, name, x, stride):
    """A basic block."""
    y = nn.relu(norm(w, f"{name}.bn1", conv(w, f"{name}.conv1", x, stride)))
    y = norm(w, f"{name}.bn2", conv(w, f"{name}.conv2", y))
    if stride > 1:  # every second pixel, new channels of zeros before and after
        quarter = y.shape[-1] // 4
        x = jnp.pad(x[:, ::2, ::2], [(0, 0)] * 3 + [(quarter, quarter)])
    return nn.relu(y + x)


def resnet20(w, images):
    """Features `[n, 64]` of pictures in [0, 1], `[n, 32, 32, 3]`."""
    x = nn.relu(norm(w, "bn1", conv(w, "conv1", (images - MEAN) / STD)))
    for stage in (1, 2, 3):
        for index in range(3):
            x = block(w, f"layer{stage}.{index}", x, 2 if stage > 1 and index == 0 else 1)
    return x.mean((1, 2))


# The audit -------------------------------------------------------------------------------------

TRANSFORM = ImageTransform(
    32,
    (0, 0, 0),
    (1, 1, 1),
    affine=[1 / 8, 1 / 8, 1 / 8, 0.25, 0.2, 0.2],  # ±45 degrees, ±4 pixels, scale, shear
    penalised=("colour", "affine"),
)


def encoder(path):
    """The function images -> features, and the network's own linear layer."""
    w = load_file(path)

    def encode(images):
        return resnet20(w, images)

    def classify(z):
        return np.asarray(z) @ w["linear.weight"].T + w["linear.bias"]

    return encode, classify


def main(_):
    """Prints the accuracy and the report, and writes the report as JSON and as a page."""
    test = ic.load_data("cifar10", path=_DATA.value).test
    encode, classify = encoder(_WEIGHTS.value)
    whole = ic.Encoder.from_function(encode, TRANSFORM)
    z = in_batches(lambda rows, _: whole.encode(rows), test.images, 500)
    print(f"accuracy of its own linear layer: {accuracy(classify(z).argmax(1), test.labels):.2f} %")
    report = ic.audit(
        encode, test.images, TRANSFORM, test.labels, quick=_QUICK.value, name="ResNet20"
    )
    print(report)
    folder = pathlib.Path(_OUTPUT.value)
    report.to_json(folder / "resnet20.json")
    report.to_html(folder / "resnet20.html")


if __name__ == "__main__":
    app.run(main)
