"""Features of more pictures than one machine encodes, by Ray Data; behind `extract --engine=ray`.

The inputs are divided into shards of consecutive rows. Workers read their rows themselves, encode
them and write a file for each shard, as a whole; a worker that dies is started again, and a job
that is started again makes only the shards that are missing. What the transformations of a row are
depends on the seed and its number alone, so the features are those of the plain command.
"""

import dataclasses
import json
import logging
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from invclr_jax.checkpoint import Encoder, load_encoder
from invclr_jax.evaluation import fingerprint
from invclr_jax.evaluation.extraction import (
    check_input,
    divided,
    extract_rows,
    read_inputs,
    write_npz,
)
from invclr_jax.evaluation.progress import bar
from invclr_jax.files import replacing, write_atomically
from invclr_jax.transforms.base import takes_images

NOTE = "extract.json"
"""What the shards of a folder were made from."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What to encode, and how.

    Attributes:
      workdir: the run's folder, which every worker can read, as the input.
      step: which checkpoint; None for the newest.
      trust: packages whose classes the checkpoint may name.
      input: npz file, class folders or parquet files.
      output: folder for the shards.
      num_samples: M; 0 for no transformation.
      seed: of the transformations.
      batch_size: inputs that each device takes at a time.
      shard_rows: rows of a shard.
      format: of the shards, `npz` or `parquet`.
    """

    workdir: str
    input: str
    output: str
    step: int | None = None
    trust: tuple[str, ...] = ()
    num_samples: int = 0
    seed: int = 0
    batch_size: int = 500
    shard_rows: int = 10_000
    format: str = "npz"

    def __post_init__(self):
        if self.format not in WRITERS:
            raise ValueError(
                f"no format {self.format!r} (--shard_format): use one of {', '.join(WRITERS)}"
            )
        if self.shard_rows < 1:
            raise ValueError(f"shard_rows is {self.shard_rows}: use 1 or more")

    def encoder(self) -> Encoder:
        """The encoder."""
        return load_encoder(self.workdir, self.step, trust=self.trust)

    def inputs(self, encoder: Encoder) -> dict[str, Any]:
        """Images and labels by name."""
        return read_inputs(pathlib.Path(self.input), encoder.config.transform.size)


@dataclasses.dataclass(frozen=True)
class Shard:
    """Consecutive rows of one array of the input.

    Attributes:
      name: of the array.
      number: of the shard, from 0.
      count: shards of the array.
      start: first row.
      stop: the row after the last.
    """

    name: str
    number: int
    count: int
    start: int
    stop: int

    def path(self, job: Job) -> pathlib.Path:
        """Its file."""
        file = f"{self.name}-{self.number:05d}-of-{self.count:05d}.{job.format}"
        return pathlib.Path(job.output) / file


def run(job: Job, *, workers: int, gpus: float = 0, address: str | None = None) -> list[Shard]:
    """Makes the shards that are missing.

    Args:
      job: what to do.
      workers: processes that encode at the same time.
      gpus: of each of them.
      address: of a Ray cluster; None for one on this machine.

    Returns:
      All shards.
    """
    shards = _prepare(job)
    missing = [shard for shard in shards if not shard.path(job).exists()]
    if len(missing) < len(shards):
        logging.getLogger(__name__).info(
            "%d of %d shards are there already", len(shards) - len(missing), len(shards)
        )
    if missing:
        _encode(job, missing, workers, gpus, address)
    return shards


def _prepare(job: Job) -> list[Shard]:
    """Checks everything that can be checked here, and says what the folder is made from."""
    encoder = job.encoder()
    images, _ = divided(job.inputs(encoder))
    if not images:
        raise ValueError(f"{job.input} (--input) holds no images")
    factors = job.num_samples > 0 and not takes_images(encoder.transform)
    for name, x in images.items():
        check_input(name, x, factors=factors)
    made_from = {
        "encoder": fingerprint.of_encoder(encoder.encode_inputs),
        "inputs": {name: fingerprint.of_images(x) for name, x in images.items()},
        "num_samples": job.num_samples,
        "seed": job.seed,
        "shard_rows": job.shard_rows,
    }
    note = pathlib.Path(job.output) / NOTE
    if note.exists() and json.loads(note.read_text()) != made_from:
        raise ValueError(
            f"{job.output} (--output) holds shards of other features, see {NOTE} in it: choose "
            "another folder, or remove this one"
        )
    write_atomically(note, json.dumps(made_from, indent=1) + "\n")
    return [shard for name, x in images.items() for shard in _shards(job, name, len(x))]


def _shards(job: Job, name: str, num_rows: int) -> Iterator[Shard]:
    count = -(-num_rows // job.shard_rows)
    for number in range(count):
        start = number * job.shard_rows
        yield Shard(name, number, count, start, min(start + job.shard_rows, num_rows))


def _encode(job: Job, missing: list[Shard], workers: int, gpus: float, address: str | None) -> None:
    try:
        import ray
        import ray.data
    except ModuleNotFoundError:
        raise ValueError(
            "--engine=ray needs Ray, which is not installed: pip install 'invclr_jax[ray]'"
        ) from None
    own = not ray.is_initialized()
    if own:
        ray.init(address=address, log_to_driver=False)
    items = [dataclasses.asdict(shard) for shard in missing]
    try:
        done = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            EncodeShards,
            fn_constructor_args=(job,),
            batch_size=1,
            concurrency=min(workers, len(items)),
            num_gpus=gpus,
            max_restarts=-1,
            max_task_retries=-1,
        )
        with bar("rows", sum(shard.stop - shard.start for shard in missing)) as progress:
            for row in done.iter_rows():
                if progress is not None:
                    progress(int(row["rows"]))
    finally:
        if own:
            ray.shutdown()


class EncodeShards:
    """A worker: the encoder and the inputs stay with it from shard to shard."""

    def __init__(self, job: Job):
        self.job, self.encoder = job, job.encoder()
        self.images, self.labels = divided(job.inputs(self.encoder))

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Encodes and writes shards; a row for each says how many rows it has."""
        count = len(batch["start"])
        shards = [Shard(**{k: _plain(batch[k][i]) for k in batch}) for i in range(count)]
        for shard in shards:
            self.make(shard)
        return {"rows": np.array([shard.stop - shard.start for shard in shards])}

    def make(self, shard: Shard) -> None:
        """One shard: features, the number of each row, and labels where there are any."""
        job, rows = self.job, range(shard.start, shard.stop)
        options = {"num_samples": job.num_samples, "seed": job.seed, "batch_size": job.batch_size}
        z = extract_rows(self.encoder, self.images[shard.name], rows, **options)
        arrays = {"features": z, "row": np.arange(shard.start, shard.stop)}
        labels = self.labels.get(shard.name.replace("images", "labels"))
        if labels is not None and len(labels) == len(self.images[shard.name]):
            arrays["label"] = labels[shard.start : shard.stop]
        WRITERS[job.format](shard.path(job), arrays)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _write_parquet(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
    import pyarrow
    import pyarrow.parquet

    z = arrays["features"]
    values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(z.reshape(-1)), z.shape[1])
    table = pyarrow.table({name: arrays[name] for name in arrays if name != "features"})
    table = table.append_column("features", values)
    with replacing(path) as file:
        pyarrow.parquet.write_table(table, file)


WRITERS: dict[str, Callable[[pathlib.Path, dict[str, np.ndarray]], None]] = {
    "npz": write_npz,
    "parquet": _write_parquet,
}
