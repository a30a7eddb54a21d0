"""The parts of a DataLoader: how samples become batches, how they are fetched, how worker processes send them."""
