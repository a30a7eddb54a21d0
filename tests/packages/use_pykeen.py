import logging

import torch
from harness import main, section
from pykeen.datasets import Nations
from pykeen.models import ComplEx, DistMult, RotatE, TransE
from pykeen.pipeline import pipeline
from pykeen.training import SLCWATrainingLoop

logging.disable(logging.CRITICAL)


@section
def trained():
    found = pipeline(
        dataset="nations", model="TransE", model_kwargs={"embedding_dim": 8},
        training_kwargs={"num_epochs": 2, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False}, random_seed=0, device="cpu",
    )  # fmt: skip
    return [found.losses, found.get_metric("both.realistic.inverse_harmonic_mean_rank")]


@section
def models():
    triples = Nations().training
    return [
        kind(triples_factory=triples, embedding_dim=4, random_seed=0).score_hrt(triples.mapped_triples[:5])
        for kind in (DistMult, ComplEx, RotatE, TransE)
    ]


@section
def looped():
    data = Nations()
    model = ComplEx(triples_factory=data.training, embedding_dim=8, random_seed=1)
    loop = SLCWATrainingLoop(
        model=model, triples_factory=data.training, optimizer=torch.optim.Adam(model.parameters(), lr=1e-2)
    )
    return loop.train(data.training, num_epochs=2, batch_size=256, use_tqdm=False)


main()
