"""The series of devices and other entities: labels and values, as samples come."""
