"""Recordings that are seen for the first time: run call by call with a library of arrays, while nothing is compiled.

``namespace.py`` is what rules see then, ``interpreter.py`` goes through a recording with it.
"""
