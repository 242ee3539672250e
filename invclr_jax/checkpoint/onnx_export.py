"""Encoders as ONNX files, by jax2onnx 0.17.

Its requirements exclude our version of Orbax, which it does not use for this: it is installed
without them.
"""

import os

from invclr_jax.checkpoint.encoder import Encoder
from invclr_jax.checkpoint.exporting import portable
from invclr_jax.files import write_atomically


def to_onnx(encoder: Encoder, path: str | os.PathLike[str], *, shape: tuple[int, int, int]) -> None:
    """Writes a model from float32 pictures `[n, h, w, c]` in [0, 1] to features `[n, d]`.

    Args:
      encoder: any whose function JAX can trace.
      path: the file to write.
      shape: height, width and channels of the pictures.
    """
    try:
        import jax2onnx
        import onnx
    except ImportError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install 'invclr_jax[onnx]', then pip install "
            "--no-deps jax2onnx, whose Orbax requirement is stricter than needed here"
        ) from None
    model = jax2onnx.to_onnx(portable(encoder, shape), [("n", *shape)], model_name="encoder")
    onnx.checker.check_model(model)
    write_atomically(path, model.SerializeToString())
