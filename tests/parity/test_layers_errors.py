"""Bad input to layers: PyTorch's exception type and words, and nothing changed by the call that failed."""

from __future__ import annotations

import pickle
import re
import warnings

import convert
import numpy as np
import opdb
import pytest
import torch
import torch.nn.utils.prune

import rushlight
import rushlight.nn.utils.prune

# (layer, what is done with it): ``m`` is the layer. Or only an expression, where building already fails.
CASES = [
    # linear
    ("nn.Linear(3, 4)", "m(r(2, 5))"),
    ("nn.Linear(3, 4)", "m(r(2, 3).double())"),
    ("nn.Linear(3, 4)", "m(r(2, 3).long())"),
    ("nn.Linear(3, 4)", "m(r())"),
    ("nn.Linear(3, 4)", "m([1.0, 2.0, 3.0])"),
    ("nn.Linear(3, 4)", "m(None)"),
    ("nn.Linear(3, 4)", "m()"),
    ("nn.Linear(3, 4)", "m(r(2, 3), r(2, 3))"),
    "nn.Linear(-3, 4)",
    "nn.Linear(3, -4)",
    "nn.Linear(3)",
    "nn.Linear(3.5, 4)",
    "nn.Linear('3', 4)",
    ("nn.Bilinear(3, 4, 5)", "m(r(2, 3), r(2, 3))"),
    ("nn.Bilinear(3, 4, 5)", "m(r(2, 3), r(3, 4))"),
    "nn.Bilinear(0, 4, 5)",
    ("nn.LazyLinear(3)", "m(r())"),
    # convolution
    ("nn.Conv2d(3, 8, 3)", "m(r(1, 4, 8, 8))"),
    ("nn.Conv2d(3, 8, 3)", "m(r(4, 8, 8))"),
    ("nn.Conv2d(3, 8, 3)", "m(r(1, 3, 2, 2))"),
    ("nn.Conv2d(3, 8, 7, padding=1)", "m(r(1, 3, 4, 4))"),
    ("nn.Conv2d(3, 8, 3, dilation=4)", "m(r(1, 3, 8, 8))"),
    ("nn.Conv2d(3, 8, 3)", "m(r(8, 8))"),
    ("nn.Conv2d(3, 8, 3)", "m(r(1, 3, 8, 8, 8))"),
    ("nn.Conv2d(3, 8, 3)", "m(r(1, 3, 8, 8).double())"),
    ("nn.Conv2d(3, 8, 3)", "m(r(1, 3, 8, 8).long())"),
    ("nn.Conv2d(4, 8, 3, groups=2)", "m(r(1, 3, 8, 8))"),
    ("nn.Conv1d(3, 8, 3)", "m(r(1, 4, 8))"),
    ("nn.Conv1d(3, 8, 3)", "m(r(1, 1, 4, 8))"),
    ("nn.Conv1d(3, 8, 9)", "m(r(1, 3, 8))"),
    ("nn.Conv3d(3, 8, 3)", "m(r(1, 4, 8, 8, 8))"),
    ("nn.Conv3d(3, 8, 3)", "m(r(3, 8))"),
    ("nn.Conv3d(3, 8, 3)", "m(r(1, 3, 8, 2, 8))"),
    ("nn.ConvTranspose2d(3, 8, 3)", "m(r(1, 4, 8, 8))"),
    ("nn.ConvTranspose2d(3, 8, 3)", "m(r(8, 8))"),
    ("nn.ConvTranspose2d(3, 8, 3, stride=2)", "m(r(1, 3, 8, 8), output_size=[40, 40])"),
    ("nn.ConvTranspose2d(3, 8, 3, stride=2)", "m(r(1, 3, 8, 8), output_size=[17])"),
    ("nn.ConvTranspose2d(3, 8, 3, output_padding=1)", "m(r(1, 3, 8, 8))"),
    ("nn.ConvTranspose1d(3, 8, 3)", "m(r(1, 4, 8))"),
    ("nn.Conv2d(3, 8, 3, padding=5, padding_mode='reflect')", "m(r(1, 3, 4, 4))"),
    ("nn.Conv2d(3, 8, 3, padding=5, padding_mode='circular')", "m(r(1, 3, 4, 4))"),
    "nn.Conv2d(3, 8, 3, groups=2)",
    "nn.Conv2d(4, 7, 3, groups=2)",
    "nn.Conv2d(4, 8, 3, groups=0)",
    "nn.Conv2d(4, 8, 3, padding_mode='wrap')",
    "nn.Conv2d(4, 8, 3, padding='full')",
    "nn.Conv2d(4, 8, 3, padding='same', stride=2)",
    "nn.Conv2d(4, 8, -3)",
    "nn.Conv2d(-4, 8, 3)",
    "nn.ConvTranspose2d(4, 8, 3, padding_mode='reflect')",
    ("nn.Conv2d(4, 8, 3, stride=0)", "m(r(1, 4, 8, 8))"),
    ("nn.Conv2d(4, 8, 3, padding=-1)", "m(r(1, 4, 8, 8))"),
    ("nn.Conv2d(4, 8, 3, dilation=0)", "m(r(1, 4, 8, 8))"),
    ("nn.LazyConv2d(8, 3)", "m(r(8, 8))"),
    ("nn.LazyConv2d(8, 3)", "m(r(1, 3, 2, 2))"),
    ("nn.Fold((4, 5), 2)", "m(r(1, 11, 12))"),
    ("nn.Fold((4, 5), 2)", "m(r(1, 12, 11))"),
    ("nn.Fold((4, 5), 2)", "m(r(12))"),
    ("nn.Unfold(3)", "m(r(1, 2, 2, 2))"),
    ("nn.Unfold(3)", "m(r(2, 2))"),
    # pooling
    ("nn.MaxPool2d(3)", "m(r(1, 2, 2, 2))"),
    ("nn.MaxPool2d(3)", "m(r(2, 2))"),
    ("nn.MaxPool2d(2, padding=2)", "m(r(1, 2, 4, 4))"),
    ("nn.MaxPool2d(0)", "m(r(1, 2, 4, 4))"),
    ("nn.MaxPool2d(2, stride=0)", "m(r(1, 2, 4, 4))"),
    ("nn.MaxPool2d(2, padding=-1)", "m(r(1, 2, 4, 4))"),
    ("nn.MaxPool2d((2, 2, 2))", "m(r(1, 2, 4, 4))"),
    ("nn.MaxPool1d(3)", "m(r(1, 2, 2))"),
    ("nn.MaxPool1d(3)", "m(r(4))"),
    ("nn.MaxPool1d(3)", "m(r(1, 1, 2, 2))"),
    ("nn.MaxPool3d(3)", "m(r(2, 2))"),
    ("nn.AvgPool2d(3)", "m(r(1, 2, 2, 2))"),
    ("nn.AvgPool2d(2, padding=2)", "m(r(1, 2, 4, 4))"),
    ("nn.AvgPool2d(2, divisor_override=0)", "m(r(1, 2, 4, 4))"),
    ("nn.AvgPool1d(5)", "m(r(1, 2, 3))"),
    ("nn.AvgPool3d(3)", "m(r(1, 2, 2, 2, 2))"),
    ("nn.AdaptiveAvgPool2d(3)", "m(r(4, 4))"),
    ("nn.AdaptiveAvgPool2d(-1)", "m(r(1, 2, 4, 4))"),
    ("nn.AdaptiveMaxPool2d((2, 2, 2))", "m(r(1, 2, 4, 4))"),
    ("nn.AdaptiveMaxPool1d(2)", "m(r(4))"),
    ("nn.MaxUnpool2d(2)", "m(r(1, 1, 2, 2), torch.zeros(1, 1, 2, 3, dtype=torch.int64))"),
    ("nn.MaxUnpool2d(2)", "m(r(1, 1, 2, 2), torch.full((1, 1, 2, 2), 99))"),
    ("nn.MaxUnpool2d(2)", "m(r(1, 1, 2, 2), r(1, 1, 2, 2))"),
    ("nn.MaxUnpool2d(2)", "m(r(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, dtype=torch.int64), output_size=[9, 9])"),
    "nn.FractionalMaxPool2d(2)",
    "nn.FractionalMaxPool2d(2, output_size=2, output_ratio=0.5)",
    "nn.FractionalMaxPool2d(2, output_ratio=1.5)",
    ("nn.FractionalMaxPool2d(2, output_size=9)", "m(r(1, 2, 4, 4))"),
    ("nn.LPPool2d(2, 3)", "m(r(1, 2, 2, 2))"),
    # padding
    ("nn.ReflectionPad2d(4)", "m(r(1, 2, 4, 4))"),
    ("nn.ReflectionPad1d(1)", "m(r(4))"),
    ("nn.ReplicationPad2d(1)", "m(r(4, 4))"),
    ("nn.CircularPad2d(5)", "m(r(1, 2, 4, 4))"),
    ("nn.ZeroPad2d(-3)", "m(r(1, 2, 4, 4))"),
    ("nn.ConstantPad1d(1, 2.0)", "m(r())"),
    ("nn.ZeroPad2d((1, 2, 3))", "m(r(1, 2, 4, 4))"),
    # normalization
    ("nn.BatchNorm1d(3)", "m(r(2, 4))"),
    ("nn.BatchNorm1d(3)", "m(r(1, 3))"),
    ("nn.BatchNorm1d(3)", "m(r(3))"),
    ("nn.BatchNorm1d(3)", "m(r(2, 3, 4, 5))"),
    ("nn.BatchNorm2d(3)", "m(r(2, 3))"),
    "F.batch_norm(r(4, 3), torch.zeros(3), None, training=True)",
    "F.instance_norm(r(2, 3, 4), None, torch.zeros(3))",
    "F.instance_norm(r(2, 3, 4), torch.zeros(4), torch.zeros(4))",
    ("nn.BatchNorm2d(3)", "m(r(2, 4, 5, 5))"),
    ("nn.BatchNorm2d(3)", "m(r(1, 3, 1, 1))"),
    ("nn.BatchNorm2d(3)", "m(r(2, 3, 4, 4).double())"),
    ("nn.BatchNorm2d(3, momentum=None)", "m(r(2, 4, 5, 5))"),
    ("nn.BatchNorm2d(3).eval()", "m(r(2, 4, 5, 5))"),
    ("nn.BatchNorm3d(3)", "m(r(2, 3, 4, 4))"),
    ("nn.BatchNorm2d(3, affine=False)", "m(r(2, 4, 5, 5))"),
    ("nn.LazyBatchNorm2d()", "m(r(2, 3))"),
    ("nn.SyncBatchNorm(3)", "m(r(3))"),
    ("nn.InstanceNorm1d(3)", "m(r(2, 3, 1))"),
    ("nn.InstanceNorm1d(3)", "m(r(3))"),
    ("nn.InstanceNorm2d(3)", "m(r(2, 3))"),
    ("nn.InstanceNorm2d(3, affine=True)", "m(r(2, 4, 5, 5))"),
    ("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", "m(r(2, 4, 5, 5))"),
    ("nn.LayerNorm(4)", "m(r(2, 3))"),
    ("nn.LayerNorm((3, 4))", "m(r(2, 3, 5))"),
    ("nn.LayerNorm((3, 4))", "m(r(4))"),
    ("nn.LayerNorm(4)", "m(r(2, 4).double())"),
    ("nn.LayerNorm(4)", "m(r(2, 4).long())"),
    "nn.LayerNorm(-1)",
    "nn.LayerNorm(2.5)",
    "nn.GroupNorm(3, 7)",
    ("nn.GroupNorm(2, 4)", "m(r(2, 6, 3))"),
    ("nn.GroupNorm(2, 4)", "m(r(4))"),
    "nn.GroupNorm(0, 4)",
    ("nn.RMSNorm(4)", "m(r(2, 3))"),
    ("nn.LocalResponseNorm(2)", "m(r(2, 3))"),
    # recurrent
    ("nn.LSTM(3, 4)", "m(r(5, 2, 7))"),
    ("nn.LSTM(3, 4)", "m(r(3))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3, 1))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3), (r(1, 2, 5), r(1, 2, 4)))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3), (r(1, 3, 4), r(1, 3, 4)))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3), (r(2, 2, 4), r(2, 2, 4)))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3), (r(1, 2, 4), r(1, 2, 5)))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3), (r(1, 4), r(1, 4)))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3), r(1, 2, 4))"),
    ("nn.LSTM(3, 4)", "m(r(5, 3), (r(1, 2, 4), r(1, 2, 4)))"),
    ("nn.LSTM(3, 4)", "m(r(5, 2, 3).double())"),
    ("nn.GRU(3, 4)", "m(r(5, 2, 7))"),
    ("nn.GRU(3, 4)", "m(r(5, 2, 3), r(1, 2, 5))"),
    ("nn.GRU(3, 4)", "m(r(5, 2, 3), r(2, 4))"),
    ("nn.GRU(3, 4)", "m(r(5, 3), r(1, 2, 4))"),
    ("nn.RNN(3, 4, batch_first=True)", "m(r(2, 5, 3), r(1, 5, 4))"),
    ("nn.RNN(3, 4)", "m(r(5, 2, 7))"),
    "nn.RNN(3, 4, nonlinearity='gelu')",
    "nn.GRU(3, 4, proj_size=2)",
    "nn.LSTM(3, 4, proj_size=4)",
    "nn.LSTM(3, 4, proj_size=-1)",
    "nn.LSTM(3, 4, num_layers=0)",
    "nn.LSTM(3, 0)",
    "nn.LSTM(3, 4.0)",
    "nn.LSTM(3, 4, dropout=1.5)",
    "nn.LSTM(3, 4, num_layers=2, dropout='x')",
    ("nn.LSTMCell(3, 4)", "m(r(2, 5))"),
    ("nn.LSTMCell(3, 4)", "m(r(2, 3), (r(2, 5), r(2, 4)))"),
    ("nn.LSTMCell(3, 4)", "m(r(2, 3, 1))"),
    ("nn.GRUCell(3, 4)", "m(r(2, 3), r(3, 4))"),
    ("nn.GRUCell(3, 4)", "m(r(2, 5))"),
    ("nn.RNNCell(3, 4, nonlinearity='foo')", "m(r(2, 3))"),
    "nn.utils.rnn.pack_padded_sequence(r(5, 3, 2), torch.tensor([2, 5, 3]))",
    "nn.utils.rnn.pack_padded_sequence(r(5, 3, 2), torch.tensor([5, 2]))",
    "nn.utils.rnn.pack_padded_sequence(r(5, 3, 2), torch.tensor([5, 3, 0]))",
    "nn.utils.rnn.pack_padded_sequence(r(5, 3, 2), torch.tensor([[5, 3, 1]]))",
    "nn.utils.rnn.pack_sequence([r(2, 3), r(4, 3)])",
    "nn.utils.rnn.pad_sequence([])",
    "nn.utils.rnn.pad_sequence([r(2, 3), r(4, 2)])",
    "nn.utils.rnn.pad_sequence([r(2, 3)], padding_side='middle')",
    # attention and transformers
    "nn.MultiheadAttention(10, 3)",
    "nn.MultiheadAttention(0, 3)",
    "nn.MultiheadAttention(8, 0)",
    ("nn.MultiheadAttention(8, 2)", "m(r(5, 2, 6), r(5, 2, 6), r(5, 2, 6))"),
    ("nn.MultiheadAttention(8, 2)", "m(r(5, 2, 8), r(5, 3, 8), r(5, 3, 8))"),
    ("nn.MultiheadAttention(8, 2)", "m(r(5, 2, 8), r(5, 2, 8), r(6, 2, 8))"),
    ("nn.MultiheadAttention(8, 2)", "m(r(5, 2, 8), r(5, 8), r(5, 8))"),
    ("nn.MultiheadAttention(8, 2)", "m(r(8), r(8), r(8))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, attn_mask=torch.ones(4, 5, dtype=torch.bool))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, attn_mask=torch.ones(2, 5, 5, dtype=torch.bool))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, attn_mask=torch.ones(5, dtype=torch.bool))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, attn_mask=torch.ones(5, 5, dtype=torch.int64))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, key_padding_mask=torch.ones(5, 2, dtype=torch.bool))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, key_padding_mask=torch.ones(2, 5, dtype=torch.int64))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, key_padding_mask=torch.ones(5, dtype=torch.bool))"),
    ("nn.MultiheadAttention(8, 2)", "m(*[r(5, 2, 8)] * 3, is_causal=True)"),
    ("nn.MultiheadAttention(8, 2).eval()", "m(*[r(5, 2, 8)] * 3, attn_mask=torch.ones(4, 5, dtype=torch.bool))"),
    ("nn.TransformerEncoderLayer(8, 2)", "m(r(5, 2, 6))"),
    ("nn.TransformerEncoderLayer(8, 2)", "m(r(5, 2, 8), torch.ones(4, 4, dtype=torch.bool))"),
    ("nn.TransformerEncoderLayer(8, 2)", "m(r(5, 2, 8), torch.ones(5, 5, dtype=torch.int64))"),
    ("nn.TransformerDecoderLayer(8, 2, dropout=0.0)", "m(r(5, 2, 8), r(5, 3, 8))"),
    ("nn.Transformer(8, 2, 1, 1, 16)", "m(r(5, 2, 8), r(5, 3, 8))"),
    ("nn.Transformer(8, 2, 1, 1, 16)", "m(r(5, 2, 6), r(5, 2, 8))"),
    "nn.TransformerEncoderLayer(9, 2)",
    "nn.TransformerEncoderLayer(8, 2, activation='foo')",
    "nn.TransformerEncoderLayer(8, 2, dropout=1.5)",
    "F.scaled_dot_product_attention(r(2, 4, 8), r(2, 4, 6), r(2, 4, 8))",
    "F.scaled_dot_product_attention(r(2, 4, 8), r(2, 5, 8), r(2, 4, 8))",
    "F.scaled_dot_product_attention(r(8), r(8), r(8))",
    "F.scaled_dot_product_attention(r(2, 4, 8), r(2, 4, 8).double(), r(2, 4, 8))",
    "F.scaled_dot_product_attention(*[r(2, 4, 8)] * 3, attn_mask=torch.ones(4, 4, dtype=torch.bool), is_causal=True)",
    "F.scaled_dot_product_attention(*[r(2, 4, 8)] * 3, attn_mask=torch.ones(3, 4, dtype=torch.bool))",
    "F.scaled_dot_product_attention(*[r(2, 4, 8)] * 3, attn_mask=torch.ones(4, 4, dtype=torch.int64))",
    # dropout
    "nn.Dropout(1.5)",
    "nn.Dropout(-0.1)",
    "nn.AlphaDropout(2)",
    "F.dropout(r(3), 1.5)",
    "F.alpha_dropout(r(3), -1)",
    "F.feature_alpha_dropout(r(3), -1, True)",
    ("nn.Dropout(0.5)", "m([1.0])"),
    # embedding
    ("nn.Embedding(5, 3)", "m(torch.tensor([5]))"),
    ("nn.Embedding(5, 3)", "m(torch.tensor([-1]))"),
    ("nn.Embedding(5, 3)", "m(torch.tensor([1.0]))"),
    ("nn.Embedding(5, 3)", "m([1, 2])"),
    ("nn.Embedding(5, 3, max_norm=0.1)", "m(torch.tensor([1, 7]))"),
    "nn.Embedding(-5, 3)",
    "nn.Embedding(5, 3, padding_idx=5)",
    "nn.Embedding(5, 3, padding_idx=-6)",
    "nn.Embedding.from_pretrained(r(3))",
    ("nn.EmbeddingBag(5, 3)", "m(torch.tensor([1, 2]))"),
    ("nn.EmbeddingBag(5, 3)", "m(torch.tensor([1, 9]), torch.tensor([0]))"),
    ("nn.EmbeddingBag(5, 3)", "m(torch.tensor([[1, 2]]), torch.tensor([0]))"),
    ("nn.EmbeddingBag(5, 3, mode='max')", "m(torch.tensor([[1, 2]]), per_sample_weights=r(1, 2))"),
    # activations
    ("nn.PReLU(4)", "m(r(2, 3))"),
    ("nn.GLU()", "m(r(2, 3))"),
    ("nn.Softmax(3)", "m(r(2, 3))"),
    ("nn.LogSoftmax(-3)", "m(r(2, 3))"),
    ("nn.Softmax2d()", "m(r(2, 3))"),
    ("nn.Softmax(1)", "m(r(2, 3).long())"),
    "nn.Hardtanh(1, -1)",
    ("nn.Threshold(1, 2)", "m('a')"),
    ("nn.GELU(approximate='foo')", "m(r(2))"),
    ("nn.Softshrink(-1)", "m(r(2))"),
    ("nn.RReLU(1, 0)", "m(r(2))"),
    # losses
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.tensor([0, 1, 4]))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.tensor([0, -1, 2]))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.tensor([0, 1]))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.tensor([0.0, 1.0, 2.0]))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.tensor([0, 1, 2], dtype=torch.int32))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.zeros(3, 4, dtype=torch.int64))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), r(3, 5))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), torch.zeros(3, 1, dtype=torch.int64))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4, 5, 5), torch.zeros(3, 5, dtype=torch.int64))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4, 5, 5), torch.zeros(3, 5, 6, dtype=torch.int64))"),
    ("nn.CrossEntropyLoss(weight=torch.ones(3))", "m(r(3, 4), torch.tensor([0, 1, 2]))"),
    ("nn.CrossEntropyLoss(label_smoothing=1.5)", "m(r(3, 4), torch.tensor([0, 1, 2]))"),
    ("nn.CrossEntropyLoss(reduction='avg')", "m(r(3, 4), torch.tensor([0, 1, 2]))"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4), [0, 1, 2])"),
    ("nn.CrossEntropyLoss()", "m(r(3, 4).long(), torch.tensor([0, 1, 2]))"),
    ("nn.NLLLoss()", "m(r(3, 4), torch.tensor([0, 1, 4]))"),
    ("nn.NLLLoss()", "m(r(3, 4), torch.tensor([[0, 1, 2]]))"),
    ("nn.NLLLoss(weight=torch.ones(4).double())", "m(r(3, 4), torch.tensor([0, 1, 2]))"),
    ("nn.BCELoss()", "m(r(3), torch.ones(3))"),
    ("nn.BCELoss()", "m(r(3).sigmoid(), torch.ones(4))"),
    ("nn.BCELoss()", "m(r(3).sigmoid(), torch.ones(3, dtype=torch.int64))"),
    ("nn.BCELoss()", "m(r(3).sigmoid(), 2 * torch.ones(3))"),
    ("nn.BCEWithLogitsLoss()", "m(r(3), torch.ones(3, 1))"),
    ("nn.BCEWithLogitsLoss()", "m(r(3), torch.ones(3, dtype=torch.int64))"),
    ("nn.MSELoss()", "m(r(3), r(4))"),
    ("nn.MSELoss(reduction='foo')", "m(r(3), r(3))"),
    ("nn.MSELoss()", "m(r(3), 1.0)"),
    ("nn.L1Loss()", "m(r(2, 3), r(2))"),
    ("nn.SmoothL1Loss(beta=-1)", "m(r(3), r(3))"),
    ("nn.HuberLoss(delta=0)", "m(r(3), r(3))"),
    ("nn.KLDivLoss()", "m(r(3), r(4))"),
    ("nn.KLDivLoss(reduction='foo')", "m(r(3), r(3))"),
    ("nn.CTCLoss()", "m(r(10, 2, 5), torch.ones(2, 4).long(), torch.tensor([11, 10]), torch.tensor([4, 4]))"),
    ("nn.CTCLoss()", "m(r(10, 2, 5), torch.ones(2, 4).long(), torch.tensor([10, 10]), torch.tensor([4, 5]))"),
    ("nn.CTCLoss(blank=5)", "m(r(10, 2, 5), torch.ones(2, 4).long(), torch.tensor([9, 9]), torch.tensor([4, 4]))"),
    ("nn.CosineEmbeddingLoss()", "m(r(2, 3), r(2, 4), torch.ones(2))"),
    ("nn.CosineEmbeddingLoss()", "m(r(2, 3), r(2, 3), torch.ones(3))"),
    ("nn.MarginRankingLoss()", "m(r(2, 3), r(2, 3), torch.ones(2))"),
    ("nn.MultiMarginLoss()", "m(r(2, 3), torch.tensor([0, 3]))"),
    "nn.MultiMarginLoss(p=3)",
    ("nn.MultiLabelMarginLoss()", "m(r(2, 3), torch.zeros(2, 4).long())"),
    ("nn.TripletMarginLoss()", "m(r(2, 3), r(2, 4), r(2, 3))"),
    "nn.TripletMarginLoss(margin=-1)",
    ("nn.GaussianNLLLoss()", "m(r(3), r(3), -torch.ones(3))"),
    ("nn.GaussianNLLLoss()", "m(r(3), r(3), torch.ones(4))"),
    ("nn.PoissonNLLLoss(reduction='foo')", "m(r(3), r(3))"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6])", "m(r(2, 4), torch.tensor([0, 9]))"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6])", "m(r(2, 5), torch.tensor([0, 1]))"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6])", "m(r(2, 4), torch.tensor([0, 1, 2]))"),
    "nn.AdaptiveLogSoftmaxWithLoss(4, 9, [6, 3])",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 9, [])",
    # vision and shapes
    ("nn.PixelShuffle(2)", "m(r(1, 3, 4, 4))"),
    ("nn.PixelShuffle(2)", "m(r(4, 4))"),
    ("nn.PixelShuffle(0)", "m(r(1, 4, 4, 4))"),
    ("nn.PixelUnshuffle(3)", "m(r(1, 3, 4, 4))"),
    ("nn.ChannelShuffle(3)", "m(r(1, 4, 2, 2))"),
    ("nn.Upsample()", "m(r(1, 2, 4, 4))"),
    ("nn.Upsample(scale_factor=2, size=8)", "m(r(1, 2, 4, 4))"),
    ("nn.Upsample(scale_factor=2, mode='linear')", "m(r(1, 2, 4, 4))"),
    ("nn.Upsample(scale_factor=2, mode='foo')", "m(r(1, 2, 4, 4))"),
    ("nn.Upsample(scale_factor=2)", "m(r(4))"),
    ("nn.Upsample(size=(2, 2, 2))", "m(r(1, 2, 4, 4))"),
    ("nn.Upsample(size=0)", "m(r(1, 2, 4, 4))"),
    ("nn.Upsample(scale_factor=2, align_corners=True)", "m(r(1, 2, 4, 4))"),
    "F.grid_sample(r(1, 2, 4, 4), r(1, 3, 3, 3))",
    "F.grid_sample(r(1, 2, 4, 4), r(2, 3, 3, 2))",
    "F.grid_sample(r(1, 2, 4, 4), r(1, 3, 3, 2), mode='foo')",
    "F.affine_grid(r(1, 2, 2), (1, 1, 4, 4))",
    "F.affine_grid(r(1, 2, 3), (1, 1, 4))",
    "F.affine_grid(r(1, 2, 3), (1, 1, 0, 4))",
    ("nn.Flatten(3)", "m(r(2, 3))"),
    ("nn.Unflatten(1, (2, 2))", "m(r(2, 3))"),
    "nn.Unflatten(1, 2)",
    ("nn.CosineSimilarity(dim=3)", "m(r(2, 3), r(2, 3))"),
    ("nn.PairwiseDistance()", "m(r(2, 3), r(2, 4))"),
    "F.one_hot(torch.tensor([3]), 2)",
    "F.gumbel_softmax(r(3), dim=4)",
    # initializers and utilities
    "nn.init.xavier_uniform_(r(3))",
    "nn.init.kaiming_normal_(r(3))",
    "nn.init.kaiming_uniform_(r(3, 3), mode='fan')",
    "nn.init.orthogonal_(r(3))",
    "nn.init.eye_(r(3))",
    "nn.init.dirac_(r(3, 3))",
    "nn.init.sparse_(r(3), 0.1)",
    "nn.init.uniform_(r(3), 2.0, 1.0)",
    "nn.init.normal_(r(3), 0.0, -1.0)",
    "nn.init.calculate_gain('foo')",
    "nn.utils.vector_to_parameters([1.0], [])",
    "nn.utils.clip_grad_norm_([nn.Parameter(r(3))], 1.0, norm_type='foo')",
    "nn.utils.weight_norm(nn.Linear(2, 2), 'foo')",
    "nn.utils.spectral_norm(nn.Linear(2, 2), 'foo')",
    "nn.utils.parametrizations.weight_norm(nn.Linear(2, 2), 'foo')",
    "nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), 'bias')",
    "nn.utils.parametrize.remove_parametrizations(nn.Linear(2, 2), 'weight')",
    "nn.utils.prune.l1_unstructured(nn.Linear(2, 2), 'weight', 1.5)",
    "nn.utils.prune.l1_unstructured(nn.Linear(2, 2), 'weight', 9)",
    "nn.utils.prune.l1_unstructured(nn.Linear(2, 2), 'foo', 1)",
    "nn.utils.prune.remove(nn.Linear(2, 2), 'weight')",
    "nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))",
    # containers and modules
    ("nn.Sequential(nn.Linear(2, 2))", "m[1]"),
    ("nn.ModuleList([nn.Linear(2, 2)])", "m[1]"),
    ("nn.Sequential(nn.Linear(2, 2))", "m(r(2, 2), 1)"),
    "nn.Sequential(3)",
    "nn.ModuleList([3])",
    "nn.ModuleDict({'a.b': nn.Linear(2, 2)})",
    ("nn.Linear(2, 2)", "m.load_state_dict({'weight': r(3, 3), 'bias': r(2)})"),
    ("nn.Linear(2, 2)", "m.load_state_dict({'weight': r(2, 2)})"),
    ("nn.Linear(2, 2)", "m.load_state_dict({'weight': r(2, 2), 'bias': r(2), 'more': r(1)})"),
    ("nn.Linear(2, 2)", "setattr(m, 'weight', r(2, 2))"),
    ("nn.Linear(2, 2)", "m.foo"),
]

# The same exception in other words: PyTorch's speak of something inside that failed later on.
OTHER_WORDS = {
    ("nn.LocalResponseNorm(2)", "m(r(2, 3))"): "Expected 3D or higher dimensionality input (got 2 dimensions)",
    "nn.LSTM(3, 4, num_layers=2, dropout='x')": "dropout should be a number in range [0, 1]",
    ("nn.MultiheadAttention(8, 2)", "m(r(5, 2, 8), r(5, 3, 8), r(5, 3, 8))"): "the same batch size, but got 2 and 3",
    ("nn.TransformerDecoderLayer(8, 2, dropout=0.0)", "m(r(5, 2, 8), r(5, 3, 8))"): "batch size, but got 2 and 3",
    "F.scaled_dot_product_attention(r(2, 4, 8), r(2, 4, 6), r(2, 4, 8))": "query and key to agree in dimension -1",
    "F.scaled_dot_product_attention(r(2, 4, 8), r(2, 5, 8), r(2, 4, 8))": "value and key to agree in dimension -2",
    ("nn.Embedding(5, 3, max_norm=0.1)", "m(torch.tensor([1, 7]))"): "index out of range in self",
}

# The failed call leaves something behind, as in PyTorch.
LEAVES = {
    ("nn.LazyConv2d(8, 3)", "m(r(1, 3, 2, 2))"): "a lazy layer gets its weights first",
    ("nn.Linear(2, 2)", "m.load_state_dict({'weight': r(3, 3), 'bias': r(2)})"): "what fits is loaded",
    ("nn.Linear(2, 2)", "m.load_state_dict({'weight': r(2, 2)})"): "what fits is loaded",
    ("nn.Linear(2, 2)", "m.load_state_dict({'weight': r(2, 2), 'bias': r(2), 'more': r(1)})"): "what fits is loaded",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case if isinstance(case, str) else " ".join(case))
def test_bad_input(case):
    theirs, _ = outcome(case, torch)
    ours, kept = outcome(case, rushlight)
    assert theirs[0] != "no error"
    assert ours[0] == theirs[0], (ours, theirs)
    if case in OTHER_WORDS:
        assert OTHER_WORDS[case] in ours[1] != theirs[1]
    else:
        assert ours[1] == theirs[1]
    assert kept != (case in LEAVES), "the failed call changed the layer, or drew random numbers"


def test_where_pytorch_reads_beyond_a_tensor():
    """Its numbers are whatever is in memory there: a check it lacks."""
    with pytest.raises(RuntimeError, match=r"lengths.* at most the padded length, 5, but got 6"):
        rushlight.nn.utils.rnn.pack_padded_sequence(rushlight.ones(5, 3, 2), rushlight.tensor([6, 3, 1]))


# What is no tensor: the lists and arrays that people pass by mistake.
@pytest.mark.parametrize("wrong", [[1.0, 2.0], np.zeros((2, 3), np.float32), None, 1.5], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", [n for n, o in opdb.SCORED.items() if n.startswith("nn.functional.") and "|" not in n])
def test_no_tensor(name, wrong):
    entry = opdb.ENTRIES[name]
    sample = next(iter(entry.sample_inputs("cpu", opdb.dtype_of(entry, opdb.Options()))))
    args = (tuple(sample.args), dict(sample.kwargs))
    function = name.removeprefix("nn.functional.")
    theirs = raised(getattr(torch.nn.functional, function), wrong, *args)
    ours = raised(getattr(rushlight.nn.functional, function), wrong, *convert.Converter()(args))
    if "must be Tensor" in theirs[1]:
        assert ours[0] == theirs[0]
        assert about(ours[1]) == about(theirs[1])
    else:  # PyTorch's own AttributeErrors: any of the two, or what the array's shape is refused for
        assert ours[0] in ("TypeError", "AttributeError", "RuntimeError", "ValueError")


def about(text):
    """Which argument is wrong and what came; PyTorch has other names for some functions inside."""
    return text.partition("(): argument ")[2].replace("numpy.", "")


def raised(function, first, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            function(first, *args, **kwargs)
    return type(caught.value).__name__, str(caught.value)


def outcome(case, library):
    """((exception type, text), whether the layer and the generator are as before)."""

    def r(*shape):
        values = np.cos(np.arange(1.0, np.prod(shape) + 1) * 1.7).astype(np.float32).reshape(shape)
        return library.tensor(values)

    names = {"torch": library, "nn": library.nn, "F": library.nn.functional, "r": r}
    build, call = case if isinstance(case, tuple) else (None, case)
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if build is not None:
            names["m"] = eval(build, names)
        before = state(names.get("m"), library)
        try:
            return ("no error", repr(eval(call, names))), True
        except Exception as error:
            kept = build is None or before == state(names["m"], library)
            return (type(error).__name__, normal(str(error))), kept


def normal(text):
    """Without what differs by nature: the class's module, the order of a set, PyTorch's name of a C++ function."""
    text = text.replace("rushlight.tensor.Tensor", "torch.Tensor").partition(" (while checking arguments for")[0]
    return re.sub(r"\{('[^}]*)\}", lambda found: str(sorted(found[1].split(", "))), text)


def state(module, library):
    if module is None:
        return None
    return pickle.dumps([(k, v.shape, v.tolist()) for k, v in module.state_dict().items() if materialized(v)]), (
        library.get_rng_state().tolist()
    )


def materialized(t):
    return "Uninitialized" not in type(t).__name__
