import tempfile

from datasets import Dataset
from harness import main, section
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

WORDS = ["<pad>", "<eos>", *"the cat dog sat on a mat and ran to far good bad yes no".split()]  # noqa: SIM905


def tokenizer():
    tokens = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>")


def config(**more):
    return GPT2Config(
        vocab_size=len(WORDS), n_positions=32, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, pad_token_id=0, eos_token_id=1, bos_token_id=1, **more,
    )  # fmt: skip


def options(folder):
    return dict(
        output_dir=folder, per_device_train_batch_size=2, max_steps=3, learning_rate=1e-2, report_to=[],
        logging_steps=1,
        save_strategy="no", disable_tqdm=True, use_cpu=True, seed=0, bf16=False, gradient_checkpointing=False,
    )  # fmt: skip


def losses(trainer):
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@section
def supervised():
    data = Dataset.from_dict({"text": ["the cat sat on a mat", "the dog ran to a mat", "a cat ran far and sat"] * 2})
    with tempfile.TemporaryDirectory() as folder:
        trainer = SFTTrainer(
            GPT2LMHeadModel(config()), SFTConfig(**options(folder), max_length=16), train_dataset=data,
            processing_class=tokenizer(),
        )  # fmt: skip
        return losses(trainer)


PAIRS = {
    "prompt": ["the cat", "the dog", "a cat"] * 2,
    "chosen": [" sat on a mat", " ran far", " sat good"] * 2,
    "rejected": [" bad", " no no", " ran bad"] * 2,
}


@section
def preferences():
    with tempfile.TemporaryDirectory() as folder:
        trainer = DPOTrainer(
            GPT2LMHeadModel(config()), GPT2LMHeadModel(config()), args=DPOConfig(**options(folder), beta=0.1),
            train_dataset=Dataset.from_dict(PAIRS), processing_class=tokenizer(),
        )  # fmt: skip
        return losses(trainer)


@section
def rewards():
    from transformers import GPT2ForSequenceClassification

    with tempfile.TemporaryDirectory() as folder:
        trainer = RewardTrainer(
            GPT2ForSequenceClassification(config(num_labels=1)), RewardConfig(**options(folder)),
            train_dataset=Dataset.from_dict(PAIRS), processing_class=tokenizer(),
        )  # fmt: skip
        return losses(trainer)


main()
