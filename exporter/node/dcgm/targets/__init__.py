"""What to watch and read: fields of entities, each beside the device that exposes its values."""
