"""The series that say whose a device is and in which state, and its values under the pod that alone has it."""
