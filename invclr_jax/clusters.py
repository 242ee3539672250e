"""Joining the processes of a job: by flags, or by what the cluster says.

JAX reads SLURM's, Open MPI's, Kubernetes' and Cloud TPU's description of a job by itself. Here is
only when to ask it: where the environment describes several processes, or the user says so.
"""

import os
from collections.abc import Mapping

import jax


def describes_job(environment: Mapping[str, str]) -> str | None:
    """The kind of cluster whose variables describe a job of several processes; None if none do.

    Args:
      environment: variables of this process.
    """
    if "SLURM_STEP_NODELIST" in environment and environment.get("SLURM_NTASKS", "1") != "1":
        return "SLURM"
    if "OMPI_MCA_orte_hnp_uri" in environment and environment["OMPI_COMM_WORLD_SIZE"] != "1":
        return "Open MPI"
    if "," in environment.get("TPU_WORKER_HOSTNAMES", ""):
        return "Cloud TPU"
    if "KUBERNETES_SERVICE_HOST" in environment and "JOB_COMPLETION_INDEX" in environment:
        return "Kubernetes"
    return None


def join(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    distributed: bool | None = None,
) -> None:
    """Joins the job that arguments or the cluster describe; does nothing if neither does.

    Args:
      coordinator: host:port of the first process; None to ask the cluster, like the next two.
      num_processes: processes of the job.
      process_id: number of this one.
      distributed: True to ask the cluster in any case, as multi-host TPU VMs need, which describe
        themselves by no variable; False to stay alone; None to see.
    """
    given = (coordinator, num_processes, process_id)
    if distributed is None:
        kind = describes_job(os.environ)
        distributed = kind is not None or any(value is not None for value in given)
    if not distributed:
        return
    try:
        jax.distributed.initialize(*given)
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"this process cannot join a job ({error}): give --coordinator=HOST:PORT, "
            "--num_processes and --process_id, or --nodistributed to train alone"
        ) from error
