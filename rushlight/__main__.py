"""``python -m rushlight train.py`` and ``python -m rushlight quickstart``."""

from .cli import main

if __name__ == "__main__":
    main()
