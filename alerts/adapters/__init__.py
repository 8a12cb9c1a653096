"""Groups that record the series of gpugauge from other exporters; loaded only where those are in use."""
