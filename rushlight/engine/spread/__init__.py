"""Arrays that lie in pieces on many devices, also of many processes: what a ``DTensor`` holds."""
