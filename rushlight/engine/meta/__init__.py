"""The engine of the meta device: arrays with a shape and a dtype and no values."""
