#!/bin/sh
# For Prolog= in slurm.conf: notes the job in the file of each of its GPUs, for `gpugauge --hpc-job-mapping-dir`.
# It always succeeds: Slurm drains a node whose prolog fails, and no job should fail because of its label.
folder=${GPUGAUGE_JOBS:-/run/gpu-jobs}
mkdir -p "$folder" || exit 0
for part in $(printf '%s' "${SLURM_JOB_GPUS:-}" | tr ',' ' '); do
  # 0,1 or 0-3
  for gpu in $(seq "${part%-*}" "${part#*-}" 2>/dev/null); do
    grep -qxF "${SLURM_JOB_ID:-}" "$folder/$gpu" 2>/dev/null || printf '%s\n' "${SLURM_JOB_ID:-}" >>"$folder/$gpu"
  done
done
exit 0
