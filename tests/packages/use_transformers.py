import tempfile

import torch
from harness import main, section
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    CLIPConfig,
    CLIPModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
    get_linear_schedule_with_warmup,
    logging,
    set_seed,
)

logging.set_verbosity_error()
TEXT = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def gpt2(**more):
    return GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, **TEXT, **more))


def bert(kind=BertForMaskedLM, **more):
    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=50, **more
    )
    return kind(config)


def llama(config=LlamaConfig, kind=LlamaForCausalLM, **more):
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return kind(config(num_key_value_heads=2, max_position_embeddings=64, **sizes, **TEXT, **more))


def t5():
    config = T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config)


def words(*shape):
    return torch.randint(3, 50, shape)


def steps(model, count=3, **inputs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, 1, 10)
    losses = []
    model.train()
    for _ in range(count):
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@section
def gpt2_training():
    x = words(2, 12)
    return steps(gpt2(), input_ids=x, labels=x)


@section
def gpt2_greedy():
    return gpt2().eval().generate(words(1, 5), max_new_tokens=12, do_sample=False)


@section
def gpt2_sampling():
    return gpt2().eval().generate(words(2, 5), max_new_tokens=10, do_sample=True, top_k=20, top_p=0.9, temperature=0.8)


@section
def gpt2_beams():
    return gpt2().eval().generate(words(1, 5), max_new_tokens=8, num_beams=3, num_return_sequences=2)


@section
def gpt2_save_and_load():
    model, x = gpt2().eval(), words(1, 6)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        again = GPT2LMHeadModel.from_pretrained(folder).eval()
        auto = AutoModelForCausalLM.from_pretrained(folder).eval()
        return [again(x).logits[0, -1], auto(x).logits[0, -1], model(x).logits[0, -1]]


@section
def bert_masked():
    x = words(2, 10)
    return steps(bert(), input_ids=x, attention_mask=(torch.arange(10) < 8).long().expand(2, 10), labels=x)


@section
def bert_classifying():
    return steps(
        bert(BertForSequenceClassification, num_labels=3), input_ids=words(4, 8), labels=torch.tensor([0, 1, 2, 1])
    )


@section
def bert_attentions():
    model = bert(attn_implementation="eager").eval()
    out = model(input_ids=words(1, 6), output_attentions=True, output_hidden_states=True)
    return [out.logits[0, 0], len(out.hidden_states), out.attentions[0][0, 0]]


@section
def llama_training():
    x = words(2, 10)
    return steps(llama(), input_ids=x, labels=x)


@section
def llama_generating():
    return llama().eval().generate(words(2, 4), max_new_tokens=10, do_sample=False)


@section
def llama_checkpointing():
    model, x = llama(), words(2, 10)
    model.gradient_checkpointing_enable()
    return steps(model, count=2, input_ids=x, labels=x)


@section
def mistral():
    x = words(1, 12)
    return steps(llama(MistralConfig, MistralForCausalLM, sliding_window=4), count=2, input_ids=x, labels=x)


@section
def qwen2():
    return llama(Qwen2Config, Qwen2ForCausalLM).eval().generate(words(1, 4), max_new_tokens=8, do_sample=False)


@section
def neox():
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    x = words(2, 8)
    return steps(GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=50, **sizes)), count=2, input_ids=x, labels=x)


@section
def t5_training():
    return steps(t5(), input_ids=words(2, 8), labels=words(2, 6))


@section
def t5_generating():
    return t5().eval().generate(words(2, 8), max_new_tokens=8, do_sample=False)


@section
def vit():
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4
    )
    model = ViTForImageClassification(config)
    return steps(model, pixel_values=torch.randn(2, 3, 16, 16), labels=torch.tensor([0, 1]))


@section
def clip():
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = CLIPConfig(
        text_config={**tower, "vocab_size": 50, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config={**tower, "image_size": 16, "patch_size": 4},
        projection_dim=16,
    )
    out = CLIPModel(config)(input_ids=words(2, 7), pixel_values=torch.randn(2, 3, 16, 16), return_loss=True)
    return [out.loss, out.logits_per_image]


@section
def whisper():
    config = WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=50, max_source_positions=20, max_target_positions=20,
        num_mel_bins=8, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    return steps(model, count=2, input_features=torch.randn(1, 8, 40), labels=words(1, 6))


@section
def trainer():
    class Lines(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, i):
            line = torch.arange(i, i + 8) % 47 + 3
            return {"input_ids": line, "labels": line}

    with tempfile.TemporaryDirectory() as folder:
        set_seed(1)
        arguments = TrainingArguments(
            folder, max_steps=6, per_device_train_batch_size=4, learning_rate=1e-3, logging_steps=2, report_to=[],
            disable_tqdm=True, save_steps=3, use_cpu=True,
        )  # fmt: skip
        run = Trainer(gpt2(), arguments, train_dataset=Lines(), eval_dataset=Lines())
        result = run.train()
        run.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
        return [result.training_loss, run.evaluate()["eval_loss"]]


main()
