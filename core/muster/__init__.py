"""The pure core of Muster: it decides from values.

What may not be here: I/O, the clock, logging, `await`, the environment, and any import beyond the
standard library and numpy. Whoever needs the time is given `now`; whoever fails as expected gets a
reason back.
"""
