"""Real servers on the loopback interface, and the requirements for stores on each: `make test-stores`.

`install` gets the servers, `process` runs one, `services` starts, fills and opens each. If a server cannot
be installed, its tests are skipped with the reason.
"""
