import torch
from harness import main, section
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping
from ignite.metrics import Accuracy, Loss, RunningAverage

DATA = [(torch.full((4, 3), float(i)), torch.tensor([0, 1, 1, 0])) for i in range(3)]


@section
def training():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = create_supervised_trainer(model, optimizer, torch.nn.CrossEntropyLoss())
    RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
    losses = []
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda e: losses.append(e.state.output))
    state = trainer.run(DATA, max_epochs=2)
    return [losses, state.metrics["loss"]]


@section
def evaluation():
    model = torch.nn.Linear(3, 2)
    metrics = {"accuracy": Accuracy(), "loss": Loss(torch.nn.CrossEntropyLoss())}
    return create_supervised_evaluator(model, metrics=metrics).run(DATA).metrics


@section
def handlers():
    import tempfile

    model = torch.nn.Linear(3, 2)
    trainer = Engine(lambda engine, batch: engine.state.iteration)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, EarlyStopping(1, lambda e: -e.state.epoch, trainer))
    with tempfile.TemporaryDirectory() as folder:
        saver = Checkpoint({"model": model}, DiskSaver(folder), n_saved=1)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
        trainer.run(DATA, max_epochs=5)
        loaded = torch.load(saver.last_checkpoint)
    return [trainer.state.epoch, sorted(loaded)]


main()
