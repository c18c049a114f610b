"""Memory and names of other libraries: protocols, pickles, labels, lazy arrays."""
