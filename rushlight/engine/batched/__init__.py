"""The engine of ``vmap``: arrays with one hidden axis more than they show."""
