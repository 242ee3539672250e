"""Extraction by Ray: the bits of the plain command, resumed by shard, a worker killed."""

import dataclasses
import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np
import pytest

from invclr_jax import ray_extract
from invclr_jax.evaluation.extraction import extract, extract_rows, read_inputs
from invclr_jax.ray_extract import EncodeShards, Job
from tests.data.streaming import made
from tests.tiny_run import make_run, tiny_config, tiny_images


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    root = tmp_path_factory.mktemp("ray")
    make_run(root / "run", tiny_config("arrays"), tiny_images())
    images = tiny_images().train
    np.savez(root / "x.npz", mine_images=images.array[:25], mine_labels=images.labels[:25])
    return Job(
        workdir=str(root / "run"),
        input=str(root / "x.npz"),
        output=str(root / "out"),
        num_samples=3,
        seed=5,
        batch_size=4,
        shard_rows=10,
    )


def whole(job):
    """What the plain command gives."""
    encoder = job.encoder()
    x = read_inputs(pathlib.Path(job.input), 8)["mine_images"]
    options = {"num_samples": job.num_samples, "seed": job.seed, "batch_size": job.batch_size}
    return encoder, x, options, extract(encoder, x, **options)


@pytest.mark.parametrize("num_samples", [0, 3])
@pytest.mark.parametrize("batch_size", [4, 500])
def test_any_rows_have_the_bits_of_the_whole(job, num_samples, batch_size):
    job = dataclasses.replace(job, num_samples=num_samples, batch_size=batch_size)
    encoder, x, options, z = whole(job)
    for rows in (range(0, 10), range(10, 20), range(20, 25), range(7, 8)):
        np.testing.assert_array_equal(extract_rows(encoder, x, rows, **options), z[rows])


def joined(job, shards):
    parts = [np.load(shard.path(job)) for shard in shards]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0].files}


def by_hand(job, tmp_path, **options):
    """The shards, made in this process, without Ray."""
    job = dataclasses.replace(job, output=str(tmp_path), **options)
    worker = EncodeShards(job)
    shards = ray_extract._prepare(job)
    table = [dataclasses.asdict(shard) for shard in shards]
    worker({name: np.array([row[name] for row in table]) for name in table[0]})
    return job, shards


def test_shards_hold_features_numbers_and_labels(job, tmp_path):
    job, shards = by_hand(job, tmp_path)
    found = joined(job, shards)
    np.testing.assert_array_equal(found["features"], whole(job)[3])
    np.testing.assert_array_equal(found["row"], np.arange(25))
    np.testing.assert_array_equal(found["label"], np.arange(25) % 3)
    names = sorted(path.name for path in tmp_path.iterdir())
    files = [f"mine_images-{i:05d}-of-00003.npz" for i in range(3)]
    assert names == [ray_extract.NOTE, *files]


def test_parquet_shards(job, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    job, shards = by_hand(job, tmp_path, format="parquet")
    tables = [parquet.read_table(shard.path(job)) for shard in shards]
    features = np.concatenate([np.stack(t["features"].to_numpy()) for t in tables])
    np.testing.assert_array_equal(features, whole(job)[3])
    assert [row for t in tables for row in t["row"].to_pylist()] == list(range(25))


@pytest.mark.parametrize("form", ["folder", "parquet"])
def test_pictures_are_read_from_folders_and_parquet(job, tmp_path, form):
    pytest.importorskip("pyarrow")
    make = {"folder": made.make_folder, "parquet": made.make_parquet}[form]
    place = make(tmp_path / "in")
    job, shards = by_hand(job, tmp_path / "out", input=str(place), num_samples=0)
    assert [shard.name for shard in shards] == ["train_images", "train_images", "test_images"]
    encoder, inputs = job.encoder(), read_inputs(place, 8)
    for name in ("train_images", "test_images"):
        found = joined(job, [shard for shard in shards if shard.name == name])
        z = encoder.encode(inputs[name], batch_size=4)
        np.testing.assert_array_equal(found["features"], z)
        np.testing.assert_array_equal(found["label"], inputs[name.replace("images", "labels")])


def test_what_is_there_is_not_made_again(job, tmp_path, monkeypatch):
    job, shards = by_hand(job, tmp_path)
    shards[1].path(job).unlink()
    asked = []
    monkeypatch.setattr(ray_extract, "_encode", lambda _, missing, *rest: asked.extend(missing))
    assert ray_extract.run(job, workers=1) == shards
    assert asked == [shards[1]]


def test_shards_of_other_features_are_refused(job, tmp_path):
    job, _ = by_hand(job, tmp_path)
    for change in ({"seed": 6}, {"num_samples": 1}, {"shard_rows": 11}):
        with pytest.raises(ValueError, match="holds shards of other features"):
            ray_extract._prepare(dataclasses.replace(job, **change))


def test_nonsense_gets_a_sentence(job, tmp_path):
    with pytest.raises(ValueError, match=r"no format 'csv' .*use one of npz, parquet"):
        dataclasses.replace(job, format="csv")
    with pytest.raises(ValueError, match="shard_rows is 0"):
        dataclasses.replace(job, shard_rows=0)
    np.savez(tmp_path / "x.npz", mine_labels=np.arange(3))
    empty = dataclasses.replace(job, input=str(tmp_path / "x.npz"), output=str(tmp_path / "o"))
    with pytest.raises(ValueError, match="holds no images"):
        ray_extract.run(empty, workers=1)


def test_without_ray_there_is_a_sentence(job, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match="pip install 'invclr_jax\\[ray\\]'"):
        ray_extract.run(dataclasses.replace(job, output=str(tmp_path)), workers=1)


def kill_a_worker(job, killed):
    """Kills the first worker that Ray shows, once a shard is there."""
    deadline = time.monotonic() + 300
    while not killed and time.monotonic() < deadline:
        if any(pathlib.Path(job.output).glob("*.npz")):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    title = (process / "cmdline").read_bytes()
                    if title.startswith(b"ray::") and b"EncodeShards" in title:
                        os.kill(int(process.name), signal.SIGKILL)
                        killed.append(process.name)
                        break
                except OSError:
                    continue
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_workers_one_of_them_killed(job, tmp_path):
    ray = pytest.importorskip("ray")
    job = dataclasses.replace(job, output=str(tmp_path), shard_rows=2, num_samples=50)
    ray.init(num_cpus=2, object_store_memory=10**8, include_dashboard=False, log_to_driver=False)
    killed = []
    killer = threading.Thread(target=kill_a_worker, args=(job, killed))
    killer.start()
    try:
        shards = ray_extract.run(job, workers=2)
    finally:
        killer.join()
        ray.shutdown()
    assert killed
    assert len(shards) == 13
    found = joined(job, shards)
    np.testing.assert_array_equal(found["row"], np.arange(25))
    np.testing.assert_array_equal(found["features"], whole(job)[3])
