"""Real servers on the loopback interface, and what a store has to do on each: `make test-stores`.

`install` gets the servers, `process` runs one, `services` says how each is started, filled and opened. Where
a server cannot be had its tests are skipped, and say why.
"""
