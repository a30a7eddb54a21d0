"""Promises of XLA arrays: eager code on accelerators, recorded and run as whole programs.

    array       the promise
    recording   what was asked for since somebody last looked, and the programs that answer
    kinds       what a recorded call is: a function, its static arguments, the shapes that go in and come out
    namespace   what rules see

See docs/design/deferred.md.
"""
