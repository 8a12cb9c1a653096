"""Events of the driver: XIDs, and that it is about to be unbound."""
