"""What is kept from one collection to the next."""
