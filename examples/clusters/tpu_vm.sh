#!/bin/bash
# Trains on all hosts of a Cloud TPU slice: ./tpu_vm.sh NAME ZONE CONFIG WORKDIR [flags]
#
#     examples/clusters/tpu_vm.sh my-slice us-central1-a cifar10 /mnt/shared/runs/c10 \
#         --config.data.path=/mnt/shared/datasets
#
# The workdir must be on a disk that all hosts mount. A preempted slice that is made again goes on with
# the same command.
set -euo pipefail
name=$1 zone=$2 config=$3 workdir=$4
shift 4
on_all() { gcloud compute tpus tpu-vm ssh "$name" --zone="$zone" --worker=all --command="$1"; }

on_all 'pip install --quiet "invclr_jax[tpu] @ file:///mnt/shared/invclr_jax"'
# Hosts of a slice describe themselves to JAX by no variable: --distributed makes it ask them.
on_all "~/.local/bin/invclr train --distributed --config=$config --workdir=$workdir $*"
