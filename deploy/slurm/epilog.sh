#!/bin/sh
# For Epilog= in slurm.conf: removes the job from the files that prolog.sh has written. It always succeeds, as that.
folder=${GPUGAUGE_JOBS:-/run/gpu-jobs}
for file in "$folder"/*; do
  [ -f "$file" ] || continue
  grep -qxF "${SLURM_JOB_ID:-}" "$file" || continue
  # The new content takes the place of the old at once: the exporter never reads half of it. Names with a dot in front are
  # no GPU for it.
  if grep -vxF "${SLURM_JOB_ID:-}" "$file" >"$folder/.${file##*/}"; then
    mv "$folder/.${file##*/}" "$file"
  else
    rm -f "$file" "$folder/.${file##*/}"
  fi
done
exit 0
