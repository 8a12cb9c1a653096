"""What commands tell of pods and nodes beyond the reason."""
