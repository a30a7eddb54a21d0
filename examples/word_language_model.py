"""A word-level language model, recurrent or Transformer: ``--model LSTM | GRU | RNN_TANH | Transformer``."""

import argparse
import math

import text
import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    """An embedding, a recurrent network, and a decoder that shares the embedding's weights when --tied."""

    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.2, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        between = dropout if nlayers > 1 else 0.0
        if rnn_type in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=between)
        else:
            nonlinearity = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}[rnn_type]
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity=nonlinearity, dropout=between)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=500):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=pe.dtype).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0), :])


class TransformerModel(nn.Transformer):
    """Only the encoder half of ``nn.Transformer``, under a causal mask."""

    def __init__(self, ntoken, ninp, nhead, nhid, nlayers, dropout=0.2):
        super().__init__(d_model=ninp, nhead=nhead, dim_feedforward=nhid, num_encoder_layers=nlayers, dropout=dropout)
        self.src_mask = None
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        self.input_emb = nn.Embedding(ntoken, ninp)
        self.ninp = ninp
        self.decoder = nn.Linear(ninp, ntoken)
        nn.init.uniform_(self.input_emb.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def _generate_square_subsequent_mask(self, sz):
        return torch.log(torch.tril(torch.ones(sz, sz)))

    def forward(self, src):
        if self.src_mask is None or self.src_mask.size(0) != len(src):
            self.src_mask = self._generate_square_subsequent_mask(len(src))
        src = self.pos_encoder(self.input_emb(src) * math.sqrt(self.ninp))
        return F.log_softmax(self.decoder(self.encoder(src, mask=self.src_mask)), dim=-1)


def repackage_hidden(h):
    """The same values, cut from their history."""
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def tokenize(count, seed, word2idx):
    ids = []
    for sentence in text.sentences(count, seed):
        ids += [word2idx.setdefault(word, len(word2idx)) for word in sentence.split()]
    return torch.tensor(ids).type(torch.int64)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def main():
    parser = argparse.ArgumentParser(description="word-level language model")
    parser.add_argument("--model", default="LSTM", help="RNN_TANH, RNN_RELU, LSTM, GRU or Transformer")
    parser.add_argument("--emsize", type=int, default=32)
    parser.add_argument("--nhid", type=int, default=32)
    parser.add_argument("--nlayers", type=int, default=1)
    parser.add_argument("--nhead", type=int, default=2)
    parser.add_argument("--lr", type=float, default=None)
    parser.add_argument("--clip", type=float, default=0.25)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=10)
    parser.add_argument("--bptt", type=int, default=20)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--seed", type=int, default=1111)
    parser.add_argument("--double", action="store_true", help="compute in float64")
    args = parser.parse_args()
    if args.double:
        torch.set_default_dtype(torch.double)
    torch.manual_seed(args.seed)

    word2idx = {}
    train_data = batchify(tokenize(500, 0, word2idx), args.batch_size)
    val_data = batchify(tokenize(60, 1, word2idx), args.batch_size)
    ntokens = len(word2idx)
    if args.model == "Transformer":
        model = TransformerModel(ntokens, args.emsize, args.nhead, args.nhid, args.nlayers, args.dropout)
    else:
        model = RNNModel(args.model, ntokens, args.emsize, args.nhid, args.nlayers, args.dropout, args.tied)
    criterion = nn.NLLLoss()
    lr = args.lr or (2.0 if args.model == "Transformer" else 20.0)

    def run(batch, hidden):
        data, targets = get_batch(*batch)
        if args.model == "Transformer":
            return criterion(model(data).view(-1, ntokens), targets), hidden, len(data)
        output, hidden = model(data, repackage_hidden(hidden))
        return criterion(output, targets), hidden, len(data)

    def start_hidden():
        return None if args.model == "Transformer" else model.init_hidden(args.batch_size)

    def evaluate(source):
        model.eval()
        total, hidden = 0.0, start_hidden()
        with torch.no_grad():
            for i in range(0, source.size(0) - 1, args.bptt):
                loss, hidden, length = run((source, i, args.bptt), hidden)
                total += length * loss.item()
        return total / (len(source) - 1)

    best = None
    for epoch in range(1, args.epochs + 1):
        model.train()
        total, hidden, batches = 0.0, start_hidden(), range(0, train_data.size(0) - 1, args.bptt)
        for i in batches:
            model.zero_grad()
            loss, hidden, _ = run((train_data, i, args.bptt), hidden)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            for p in model.parameters():
                if p.grad is not None:  # the Transformer's decoder half is not used
                    p.data.add_(p.grad, alpha=-lr)
            total += loss.item()
        val_loss = evaluate(val_data)
        train_loss, ppl = total / len(batches), math.exp(val_loss)
        print(f"epoch {epoch} | lr {lr:.2f} | loss {train_loss:.4f} | valid loss {val_loss:.4f} | ppl {ppl:.3f}")
        if best is None or val_loss < best:
            best = val_loss
        else:
            lr /= 4.0


if __name__ == "__main__":
    main()
