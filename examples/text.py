"""A small corpus made from a grammar, for the language models: predictable enough to learn in seconds."""

import random

SUBJECTS = ["the cat", "a dog", "the old man", "my sister", "the captain", "a small child"]
VERBS = ["sees", "likes", "follows", "finds", "paints", "remembers"]
OBJECTS = ["the moon", "a red ball", "the sea", "an open door", "the long road", "a candle"]
ENDINGS = ["in the morning", "at night", "every day", "without a word"]


def sentences(count, seed=0):
    """Sentences of one form; who does it decides when, so that there is something to remember."""
    rng = random.Random(seed)
    for _ in range(count):
        who = rng.randrange(len(SUBJECTS))
        yield f"{SUBJECTS[who]} {rng.choice(VERBS)} {rng.choice(OBJECTS)} {ENDINGS[who % len(ENDINGS)]} ."
