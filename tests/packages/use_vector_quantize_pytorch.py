import torch
from harness import main, section, train
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize


@section
def codebook():
    quantizer, x = VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0), torch.randn(2, 12, 8)
    found = []
    for _ in range(3):
        quantized, indices, loss = quantizer(x)
        found.append([quantized[0, 0], indices[1], loss])
    quantizer.eval()
    return [found, quantizer.codebook[0], quantizer.get_codes_from_indices(indices)[0, 0]]


@section
def residual():
    quantizer = ResidualVQ(dim=8, num_quantizers=3, codebook_size=16, kmeans_init=True, kmeans_iters=4)
    quantized, indices, loss = quantizer(torch.randn(2, 24, 8))
    return [quantized[0, 0], indices[0, :5], loss]


@section
def scalars():
    quantizer, x = FSQ([8, 5, 5]), torch.randn(2, 6, 3)
    quantized, indices = quantizer(x)
    return [quantized[0], indices, (quantizer.indices_to_codes(indices) - quantized).abs().max()]


@section
def training():
    encoder, decoder = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)
    quantizer = LFQ(codebook_size=16, dim=8, entropy_loss_weight=0.1, diversity_gamma=1.0)
    parameters = [*encoder.parameters(), *decoder.parameters(), *quantizer.parameters()]
    optimizer, x = torch.optim.AdamW(parameters, lr=1e-2), torch.randn(2, 10, 4)

    def loss():
        quantized, _, extra = quantizer(encoder(x))
        return (decoder(quantized) - x).square().mean() + extra

    return train(optimizer, loss, 3)


main()
