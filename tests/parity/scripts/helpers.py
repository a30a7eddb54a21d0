"""What the scripts print with. Knows neither PyTorch nor rushlight."""

import warnings


def attempt(label, function, *args, **kwargs):
    """Call and print what came of it: the result or the error, and every warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            print(label, "->", function(*args, **kwargs))
        except Exception as error:
            print(label, "!!", type(error).__name__, error)
    for warning in caught:
        print("    warned:", warning.category.__name__, warning.message)


def section(title):
    print(f"\n== {title}")


def count_up(module, torch):
    """Fill parameters and buffers with 0, 1, 2, … / 10, so that both sides have the same weights."""
    with torch.no_grad():
        for t in [*module.parameters(), *module.buffers()]:
            t.copy_(torch.arange(t.numel()).reshape(t.shape) / 10)
    return module
