"""Audits an encoder that others trained: the CIFAR ResNet20 of He et al. (2016).

    python -m examples.audit_resnet20 --weights=resnet20_cifar10.safetensors --data=FOLDER

The weights are those of akamaster/pytorch_resnet_cifar10 as a safetensors file with torch's names.
The forward pass in `examples/resnet20.py` is all that an audit needs to know of a network.
"""

import pathlib

from absl import app, flags

import invclr_jax as ic
from examples.resnet20 import encoder
from invclr_jax.evaluation.metrics import accuracy
from invclr_jax.transforms.image import ImageTransform

_WEIGHTS = flags.DEFINE_string("weights", None, "The safetensors file.", required=True)
_DATA = flags.DEFINE_string("data", None, "Folder of CIFAR-10.", required=True)
_OUTPUT = flags.DEFINE_string("output", "audit", "Folder for the report.")
_QUICK = flags.DEFINE_bool("quick", False, "Fewer draws.")

TRANSFORM = ImageTransform(
    32,
    (0, 0, 0),
    (1, 1, 1),
    affine=[1 / 8, 1 / 8, 1 / 8, 0.25, 0.2, 0.2],  # ±45 degrees, ±4 pixels, scale, shear
    penalised=("colour", "affine"),
)


def main(_):
    """Prints the accuracy and the report, and writes the report as JSON and as a page."""
    test = ic.load_data("cifar10", path=_DATA.value).test
    encode, classify = encoder(_WEIGHTS.value)
    whole = ic.Encoder.from_function(encode, TRANSFORM)
    z = whole.encode(test.images, batch_size=500)
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
