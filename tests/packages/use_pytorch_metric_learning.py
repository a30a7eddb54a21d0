import torch
from harness import main, section, train
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers

LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])


def trained(loss_function, miner=None, parameters=()):
    torch.manual_seed(0)
    model, x = torch.nn.Linear(6, 4), torch.randn(8, 6)

    def loss():
        z = model(x)
        return loss_function(z, LABELS, miner(z, LABELS) if miner else None)

    return train(torch.optim.SGD([*model.parameters(), *parameters], lr=0.05), loss, 2)


@section
def pairs_and_triplets():
    functions = [losses.ContrastiveLoss(), losses.TripletMarginLoss(), losses.NTXentLoss(), losses.SupConLoss(),
                 losses.MultiSimilarityLoss(), losses.CircleLoss(), losses.LiftedStructureLoss()]  # fmt: skip
    return [trained(function) for function in functions]


@section
def classes():
    functions = [losses.ArcFaceLoss(3, 4), losses.CosFaceLoss(3, 4), losses.ProxyAnchorLoss(3, 4),
                 losses.NormalizedSoftmaxLoss(3, 4), losses.SoftTripleLoss(3, 4)]  # fmt: skip
    return [trained(function, parameters=function.parameters()) for function in functions]


@section
def mined():
    function = losses.TripletMarginLoss(
        distance=distances.CosineSimilarity(),
        reducer=reducers.ThresholdReducer(low=0),
        embedding_regularizer=regularizers.LpRegularizer(),
    )
    chosen = [miners.MultiSimilarityMiner(), miners.TripletMarginMiner(type_of_triplets="semihard"),
              miners.BatchHardMiner()]  # fmt: skip
    return [trained(function, miner) for miner in chosen]


@section
def memory():
    return trained(losses.CrossBatchMemory(losses.NTXentLoss(), 4, memory_size=12))


main()
