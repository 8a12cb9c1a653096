"""The few fields that are decoded, the records that are kept, and the values of our own annotations and labels."""
