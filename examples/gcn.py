"""A graph convolutional network finds the communities of a graph when few nodes are labelled."""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter


class GraphConvolution(nn.Module):
    """Mix every node's features with its neighbours'."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.empty(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.empty(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        output = torch.mm(adj, torch.mm(input, self.weight))
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def communities(nodes=150, classes=3, features=12, seed=0):
    """A graph with dense communities; the nodes' features say little."""
    rng = np.random.RandomState(seed)
    labels = np.arange(nodes) % classes
    same = labels[:, None] == labels[None, :]
    edges = np.triu(rng.rand(nodes, nodes) < np.where(same, 0.15, 0.015), 1)
    adj = torch.from_numpy((edges | edges.T).astype(np.float32)) + torch.eye(nodes)
    adj = adj / adj.sum(dim=1, keepdim=True)
    x = rng.randn(nodes, features) + 0.5 * rng.randn(classes, features)[labels]
    return adj, torch.from_numpy(x.astype(np.float32)), torch.from_numpy(labels)


def accuracy(output, labels):
    return (output.max(1)[1].type_as(labels) == labels).double().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--weight_decay", type=float, default=5e-4)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    adj, features, labels = communities()
    idx_train, idx_test = torch.arange(0, 24), torch.arange(24, 150)
    model = GCN(features.shape[1], args.hidden, int(labels.max().item()) + 1, args.dropout)
    print(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    for epoch in range(1, args.epochs + 1):
        model.train()
        optimizer.zero_grad()
        loss = F.nll_loss(model(features, adj)[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            model.eval()
            output = model(features, adj)
            acc_train = accuracy(output[idx_train], labels[idx_train])
            print(f"epoch {epoch}: loss_train {loss.item():.4f}, acc_train {acc_train:.4f}")
    model.eval()
    found = accuracy(model(features, adj)[idx_test], labels[idx_test])
    print(f"test accuracy {found:.4f}")


if __name__ == "__main__":
    main()
