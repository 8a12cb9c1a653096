"""HPC jobs: the files that name the job of each GPU, and its label."""
