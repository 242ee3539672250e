"""Asks of any encoder: how invariant is it, and to what?

    python -m examples.audit

`encode` is any function from images in [0, 1] to features `[n, d]`: JAX, PyTorch or, as here,
NumPy. `examples/audit_resnet20.py` audits a network that others trained.
"""

import pathlib
import tempfile

import numpy as np

import invclr_jax as ic
from invclr_jax.evaluation.audit.settings import AuditSettings
from invclr_jax.transforms.image import ImageTransform

TRANSFORM = ImageTransform(
    16, (0, 0, 0), (1, 1, 1), crop=False, grey_probability=0, penalised=("colour",)
)


def encode(images):
    """The mean colour of each quarter, and how much it varies there."""
    quarters = np.asarray(images).reshape(len(images), 2, 8, 2, 8, 3)
    parts = [quarters.mean((2, 4)), quarters.std((2, 4))]
    return np.concatenate(parts, axis=-1).reshape(len(images), -1)


def main():
    """Prints the report and writes its page."""
    rng = np.random.default_rng(0)
    images = rng.uniform(0.2, 0.8, (60, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
    settings = AuditSettings(varied_images=30, num_draws=2, grid=3, shifts=2, resamples=50)
    report = ic.audit(encode, images, TRANSFORM, settings=settings, name="mean colours")
    print(report)
    print(f"hue is {report.metrics['ratio/hue']:.2f} of all variance")
    with tempfile.TemporaryDirectory() as folder:  # choose a folder that stays
        page = pathlib.Path(folder) / "audit.html"
        report.to_html(page)
        print(f"wrote a page of {page.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
