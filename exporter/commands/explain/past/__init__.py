"""What `gpugauge explain --prometheus` adds: idle GPUs and past waits for a pending pod, likely causes for a running one."""
