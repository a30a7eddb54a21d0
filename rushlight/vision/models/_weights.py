"""What all builders of models refuse."""

from __future__ import annotations


def no_weights(weights, pretrained=None) -> None:
    """Raise for weights that would have to be fetched."""
    if weights is not None or pretrained:
        raise ValueError(
            "rushlight does not fetch weights: build the model with weights=None, then "
            "model.load_state_dict(torch.load(path)) with a file of torchvision's"
        )
