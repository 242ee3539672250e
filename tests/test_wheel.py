"""The built wheel: what it holds, and that it works in an empty folder."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def pip(*words):
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *words], check=True, timeout=900)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    files = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    source = folder / "source"
    if files.returncode == 0:  # what a clean checkout would hold
        for name in files.stdout.split("\0"):
            path = ROOT / name
            if name and (path.is_symlink() or path.is_file()):
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, source / name, follow_symlinks=False)
    else:
        shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(".venv"))
    options = ("--no-deps", "--no-build-isolation", f"--wheel-dir={folder}")
    pip("wheel", *options, str(source))
    return next(folder.glob("*.whl"))


def test_it_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0].partition("-")[0] for name in names}
    assert tops == {"invclr_jax"}
    assert "invclr_jax/configs/spirograph_cpu.py" in names
    assert "invclr_jax/py.typed" in names
    for shipped in ("cifar10-cpu", "spirograph-cpu"):
        folder = f"invclr_jax/checkpoint/shipped/{shipped}/"
        assert any(name.startswith(folder) for name in names)


def test_it_trains_by_name_in_an_empty_folder(wheel, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    pip("install", "--no-deps", f"--target={site}", str(wheel))
    sizes = {"num_steps": 2, "batch_size": 16, "model.width": 4, "transform.size": 8}
    sizes |= {"data.num_train": 64, "data.num_test": 32}
    environment = os.environ | {"PYTHONPATH": str(site), "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"}

    def invclr(*words):
        return subprocess.run(
            [sys.executable, str(site / "bin" / "invclr"), *words],
            cwd=empty,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )

    overrides = [f"--config.{key}={value}" for key, value in sizes.items()]
    done = invclr("train", "--config=spirograph_cpu", "--workdir=x", *overrides)
    assert done.returncode == 0, done.stderr
    assert "step 2/2" in done.stdout
    done = invclr("evaluate", "--workdir=x", "--protocol=invariance", "--num_images=8")
    assert done.returncode == 0, done.stderr
    assert "ratio" in done.stdout
    assert {path.name for path in empty.iterdir()} == {"x"}
