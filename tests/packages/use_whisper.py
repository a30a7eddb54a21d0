import numpy as np
import torch
import whisper
from harness import main, section

SIZES = whisper.model.ModelDimensions(
    n_mels=80, n_audio_ctx=1500, n_audio_state=16, n_audio_head=2, n_audio_layer=1, n_vocab=51865, n_text_ctx=16,
    n_text_state=16, n_text_head=2, n_text_layer=1,
)  # fmt: skip


def model():
    made = whisper.model.Whisper(SIZES)
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.05)
    return made


@section
def spectrogram():
    sound = np.sin(np.linspace(0, 2000, 16000)).astype(np.float32)
    return whisper.log_mel_spectrogram(whisper.pad_or_trim(torch.from_numpy(sound)))[:4, :5]


@section
def training():
    net, losses = model(), []
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    mel, tokens = torch.randn(1, 80, 3000), torch.randint(0, 50000, (1, 7))
    for _ in range(2):
        logits = net(mel, tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def encoding():
    with torch.no_grad():
        return model().eval().embed_audio(torch.randn(1, 80, 3000))[0, :2]


main()
