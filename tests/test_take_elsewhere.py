"""`invclr import`, `export`, `adapt` and `audit`: from weights to a program, by command."""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import invclr_jax as ic
from invclr_jax.checkpoint import exporting
from invclr_jax.models import network, resnet
from invclr_jax.transforms.normalise import Normalise

pytest.importorskip("flatbuffers")
ROOT = pathlib.Path(__file__).parents[1]


def run(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "invclr_jax.main", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_from_weights_to_programs(tmp_path):
    module = resnet.ResNet10(width=4)
    pictures = jnp.zeros((2, 8, 8, 3))
    params, statistics, _ = jax.jit(lambda key: network.init(module, key, pictures))(
        jax.random.key(0)
    )
    variables = {"params": params, **statistics}
    plain = Normalise((0.0,) * 3, (1.0,) * 3)
    encoder = ic.Encoder(module=module, variables=variables, transform=plain)
    weights, workdir = tmp_path / "weights.safetensors", tmp_path / "run"
    exporting.to_safetensors(encoder, weights)
    options = ("--arch=resnet10", "--width=4", "--stem=cifar", "--size=8", f"--input={weights}")
    run("import", *options, f"--workdir={workdir}")
    loaded = ic.load_encoder(workdir)
    jax.tree.map(np.testing.assert_array_equal, dict(loaded.variables["params"]), params)
    assert loaded.transform.mean == (0.485, 0.456, 0.406)
    assert "holds a run already" in run("import", *options, f"--workdir={workdir}", code=1)

    run("export", f"--workdir={workdir}", f"--output={tmp_path / 'e.program'}", "--platforms=cpu")
    program = jax.export.deserialize(bytearray((tmp_path / "e.program").read_bytes()))
    images = np.random.default_rng(0).random((40, 8, 8, 3), np.float32)
    levels = np.round(images * 255).astype(np.uint8)
    np.testing.assert_allclose(
        program.call(levels / np.float32(255)), loaded.encode(levels), atol=1e-5
    )
    assert "ends in .safetensors" in run("export", f"--workdir={workdir}", "--output=e.txt", code=1)

    npz = tmp_path / "pictures.npz"
    np.savez(npz, train_images=levels)
    adapted = tmp_path / "adapted.program"
    run("adapt", f"--workdir={workdir}", f"--images={npz}", f"--output={adapted}", "--steps=2")
    program = jax.export.deserialize(bytearray(adapted.read_bytes()))
    assert program.call(images).shape == (40, 32)

    output = tmp_path / "audit"
    text = run("audit", f"--workdir={workdir}", f"--images={npz}", "--quick", f"--output={output}")
    assert "ratio" in text
    assert sorted(p.name for p in output.iterdir()) == ["report.html", "run.json"]
    assert "give --workdir or --function" in run("audit", code=1)
    assert "pass trust" in run("audit", "--function=os:getcwd", f"--images={npz}", code=1)
