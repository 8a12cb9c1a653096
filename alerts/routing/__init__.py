"""Configuration of Alertmanager: who is notified of which alert."""
