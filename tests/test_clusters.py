"""When a process joins a job, and with what; the jobs are in training/test_distributed."""

import jax
import pytest

from invclr_jax import clusters

SLURM = {"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "node[1-2]", "SLURM_PROCID": "0"}
MPI = {"OMPI_MCA_orte_hnp_uri": "1.0;tcp://10.0.0.1:1"}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({}, None),
        (SLURM | {"SLURM_NTASKS": "2"}, "SLURM"),
        (SLURM | {"SLURM_NTASKS": "1"}, None),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}, None),  # the batch script, outside srun
        (MPI | {"OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI"),
        (MPI | {"OMPI_COMM_WORLD_SIZE": "1"}, None),
        ({"TPU_WORKER_HOSTNAMES": "a,b"}, "Cloud TPU"),
        ({"TPU_WORKER_HOSTNAMES": "localhost"}, None),
        (POD | {"JOB_COMPLETION_INDEX": "0"}, "Kubernetes"),
        (POD, None),
    ],
)
def test_what_describes_a_job(environment, kind):
    assert clusters.describes_job(environment) == kind


@pytest.fixture
def joined(monkeypatch):
    """What `jax.distributed.initialize` was called with."""
    calls = []
    monkeypatch.setattr(jax.distributed, "initialize", lambda *given: calls.append(given))
    for name in (*SLURM, *MPI, *POD, "SLURM_NTASKS", "TPU_WORKER_HOSTNAMES"):
        monkeypatch.delenv(name, raising=False)
    return calls


def test_alone_without_a_cluster(joined):
    clusters.join()
    assert joined == []
    clusters.join(distributed=True)
    assert joined == [(None, None, None)]


def test_flags_are_enough(joined):
    clusters.join("localhost:1", 2, 0)
    assert joined == [("localhost:1", 2, 0)]


def test_slurm_needs_no_flags(joined, monkeypatch):
    for name, value in (SLURM | {"SLURM_NTASKS": "2"}).items():
        monkeypatch.setenv(name, value)
    clusters.join()
    assert joined == [(None, None, None)]
    clusters.join(distributed=False)
    assert len(joined) == 1


def test_a_job_that_is_not_there(monkeypatch):
    def refuse(*given):
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", refuse)
    with pytest.raises(ValueError, match="give --coordinator=HOST:PORT"):
        clusters.join(distributed=True)
