"""What `gpugauge explain --prometheus` adds: idle GPUs and past waits of a pending pod, causes of a running one."""
