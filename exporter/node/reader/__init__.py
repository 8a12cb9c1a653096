"""The child process that holds the native libraries, what it says through its pipes, and who watches over it."""
