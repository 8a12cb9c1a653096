"""The dashboards, one module each, and the rows that several of them share."""
