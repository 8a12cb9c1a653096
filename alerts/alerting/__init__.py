"""Groups with the alerts, one module per subject."""
