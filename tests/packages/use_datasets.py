import torch
from datasets import Dataset, Features, Value, concatenate_datasets
from harness import main, section


def data():
    return Dataset.from_dict({"x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "n": [1, 2, 3], "word": ["a", "b", "c"]})


@section
def formatted():
    torched = data().with_format("torch")
    row, rows = torched[0], torched[1:]
    return [row["x"], row["n"], str(row["x"].dtype), str(rows["n"].dtype), rows["x"], rows["word"]]


@section
def loaded():
    loader = torch.utils.data.DataLoader(data().with_format("torch", columns=["x", "n"]), batch_size=2, shuffle=True)
    return [[batch["x"], batch["n"]] for batch in loader]


@section
def mapped():
    made = data().map(lambda row: {"y": torch.tensor(row["x"]) * 2}).with_format("torch", dtype=torch.float64)
    return [made["y"][:], str(made[0]["y"].dtype)]


@section
def streamed():
    stream = data().to_iterable_dataset(num_shards=1).with_format("torch")
    return [row["x"] for row in stream]


@section
def tensors_in():
    made = Dataset.from_dict({"t": torch.arange(6).view(3, 2), "b": [torch.ones(1), torch.zeros(1), torch.ones(1)]})
    both = concatenate_datasets([made, made]).cast(Features({"t": [Value("int32")], "b": [Value("float32")]}))
    return both.with_format("torch")[3:]["t"]


main()
