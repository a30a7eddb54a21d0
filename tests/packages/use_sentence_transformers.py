import tempfile

import torch
from harness import main, section
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast


def sentence_model(folder):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "dog", "sat", "ran", "here"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = BertConfig(vocab_size=10, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
    BertModel(config).save_pretrained(folder)
    return SentenceTransformer(modules=[Transformer(folder), Pooling(16), Dense(16, 8), Normalize()], device="cpu")


TEXTS = ["a cat sat here", "a dog ran", "cat here"]


@section
def encoding():
    with tempfile.TemporaryDirectory() as folder:
        model = sentence_model(folder)
        vectors = model.encode(TEXTS, convert_to_tensor=True)
        return [vectors[:, :4], util.cos_sim(vectors, vectors), util.semantic_search(vectors[:1], vectors, top_k=2)]


@section
def training():
    with tempfile.TemporaryDirectory() as folder:
        model = sentence_model(folder)
        model.eval()
        loss_of = losses.CosineSimilarityLoss(model)
        optimizer, found = torch.optim.SGD(model.parameters(), lr=0.1), []
        for _ in range(3):
            pairs = [model.tokenize(TEXTS[:2]), model.tokenize(TEXTS[1:])]
            loss = loss_of(pairs, torch.tensor([0.2, 0.9]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found


main()
