"""The reader process, which loads the native libraries; the protocol on its pipes; the parent process's side of it."""
