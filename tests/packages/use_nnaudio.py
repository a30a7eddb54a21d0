import torch
from harness import main, section
from nnAudio import features


def sound():
    return torch.sin(torch.arange(4000) * 0.2)[None] + 0.1 * torch.randn(1, 4000)


@section
def stft():
    x = sound()
    layer = features.STFT(n_fft=256, hop_length=128, iSTFT=True, verbose=False)
    return [layer(x, output_format="Magnitude")[0, :8, :4], layer.inverse(layer(x, output_format="Complex"))[0, :20]]


@section
def mel():
    layer = features.MelSpectrogram(sr=8000, n_fft=256, n_mels=20, hop_length=128, verbose=False)
    return [
        layer(sound())[0, :, :4],
        features.MFCC(sr=8000, n_mfcc=10, n_fft=256, n_mels=20, verbose=False)(sound())[0, :, :3],
    ]


@section
def constant_q():
    layer = features.CQT2010v2(sr=8000, hop_length=128, fmin=100, n_bins=36, verbose=False)
    return layer(sound())[0, :, :3]


@section
def trained():
    layer = features.MelSpectrogram(sr=8000, n_fft=256, n_mels=8, hop_length=256, trainable_mel=True, verbose=False)
    layer(sound()).mean().backward()
    return layer.mel_basis.grad[:, 10:20]


main()
