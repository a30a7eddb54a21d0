import tempfile

import torch
import torch.nn.functional as F
from harness import main, section
from torch_geometric import nn
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose, NormalizeFeatures, ToUndirected
from torch_geometric.utils import degree, dense_to_sparse, scatter, softmax, subgraph, to_dense_adj, to_undirected


def graph(nodes=12, edges=30, features=6, classes=3):
    return Data(
        x=torch.randn(nodes, features), edge_index=torch.randint(0, nodes, (2, edges)),
        y=torch.randint(0, classes, (nodes,)),
    )  # fmt: skip


class Network(torch.nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.first, self.second = kind(6, 8, **options), kind(8, 3, **options)

    def forward(self, x, edges):
        return self.second(F.relu(self.first(x, edges)), edges)


def steps(model, data, edges=None, count=3):
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(count):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index if edges is None else edges), data.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def convolutions():
    kinds = [nn.GCNConv, nn.SAGEConv, nn.GATConv, nn.GraphConv, nn.TAGConv, nn.GATv2Conv, nn.TransformerConv]
    return [steps(Network(kind), graph()) for kind in kinds]


@section
def edge_and_isomorphism():
    def small(inside, outside):
        return torch.nn.Sequential(torch.nn.Linear(inside, 8), torch.nn.ReLU(), torch.nn.Linear(8, outside))

    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.EdgeConv(small(12, 8)), nn.GINConv(small(8, 3), train_eps=True)

        def forward(self, x, edges):
            return self.second(self.first(x, edges), edges)

    return steps(Two(), graph())


@section
def sparse_adjacency():
    data = graph()
    a = torch.sparse_coo_tensor(data.edge_index.flip(0), torch.ones(30), (12, 12)).coalesce()
    found = []
    for kind in (nn.GCNConv, nn.SAGEConv, nn.GraphConv):
        torch.manual_seed(1)
        by_list = steps(Network(kind), data)
        torch.manual_seed(1)
        found.append([by_list, steps(Network(kind), data, a), steps(Network(kind), data, a.to_sparse_csr())])
    return found


@section
def own_layer():
    class Mean(nn.MessagePassing):
        def __init__(self, inside, outside):
            super().__init__(aggr="mean")
            self.project = torch.nn.Linear(inside, outside)

        def forward(self, x, edges):
            return self.propagate(edges, x=self.project(x))

        def message(self, x_j, x_i):
            return x_j - 0.5 * x_i

    return steps(Network(Mean), graph())


@section
def batches_and_pooling():
    made = DataLoader([graph(nodes) for nodes in (5, 7, 9, 6)], batch_size=2, shuffle=True)
    convolution, found = nn.GCNConv(6, 4), []
    for batch in made:
        h = convolution(batch.x, batch.edge_index)
        pooled = [pool(h, batch.batch) for pool in (nn.global_mean_pool, nn.global_max_pool, nn.global_add_pool)]
        found.append([batch.num_graphs, batch.ptr, torch.cat(pooled, 1)])
    return found


@section
def sequential_and_norms():
    model = nn.Sequential("x, edges, batch", [
        (nn.GCNConv(6, 8), "x, edges -> x"), nn.GraphNorm(8), torch.nn.ReLU(),
        (nn.GATConv(8, 4, heads=2), "x, edges -> x"), (nn.global_mean_pool, "x, batch -> x"),
        torch.nn.Linear(8, 3)])  # fmt: skip
    batch = Batch.from_data_list([graph(), graph()])
    loss = model(batch.x, batch.edge_index, batch.batch).square().mean()
    loss.backward()
    return [loss.item(), [p.grad.abs().sum() for p in model.parameters() if p.grad is not None]]


@section
def whole_models():
    found = []
    for kind in (nn.GCN, nn.GraphSAGE, nn.GAT, nn.GIN):
        data, model = graph(), kind(6, 8, num_layers=2, out_channels=3)
        found.append(steps(model, data, count=2))
    return found


@section
def autoencoder():
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.deviation = nn.GCNConv(6, 4), nn.GCNConv(6, 4)

        def forward(self, x, edges):
            return self.mean(x, edges), self.deviation(x, edges)

    data, model = graph(), nn.VGAE(Encoder())
    z = model.encode(data.x, data.edge_index)
    negative = torch.randint(0, 12, (2, 30))
    loss = model.recon_loss(z, data.edge_index, negative) + model.kl_loss() / 12
    loss.backward()
    return [loss.item(), model.encoder.mean.lin.weight.grad.abs().sum()]


@section
def helpers():
    data = graph()
    edges, weights = dense_to_sparse(to_dense_adj(data.edge_index)[0])
    kept, _ = subgraph(torch.tensor([0, 1, 2, 3, 4, 5]), data.edge_index)
    changed = Compose([ToUndirected(), AddSelfLoops(), NormalizeFeatures()])(data.clone())
    return [edges, weights, kept, degree(data.edge_index[0], 12), scatter(data.x, data.y, reduce="mean"),
            softmax(torch.randn(30), data.edge_index[1]), to_undirected(data.edge_index).shape[1],
            changed.edge_index.shape[1], changed.x.sum(), data.is_undirected(), data.has_self_loops()]  # fmt: skip


@section
def dataset_on_disk():
    class Own(InMemoryDataset):
        def __init__(self, root):
            super().__init__(root)
            self.load(self.processed_paths[0])

        @property
        def processed_file_names(self):
            return ["data.pt"]

        def process(self):
            self.save([graph(4), graph(6)], self.processed_paths[0])

    with tempfile.TemporaryDirectory() as folder:
        made, again = Own(folder), Own(folder)
        return [len(made), made.num_features, again[1].x, repr(again[0])]


main()
