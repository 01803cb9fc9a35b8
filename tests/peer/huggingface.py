"""GPT-2 and Llama as Hugging Face computes them, for tests/mpi/peer_huggingface_test.cpp: random weights, nothing is downloaded.

  huggingface.py write DIR   for each of MODELS, DIR/NAME/model.safetensors.index.json and its files in fp32, and
                             DIR/NAME/expected.safetensors in fp64: logits, loss, its gradients, the weights after five steps of AdamW
  huggingface.py read DIR    whether DIR/NAME/back.safetensors loads into that model and holds the same weights

tests/data/llama is what it wrote (torch 2.11.0, transformers 4.57.1).
"""
import importlib.util
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
if missing := [name for name in ("transformers", "safetensors") if importlib.util.find_spec(name) is None]:
    print("not installed:", ", ".join(missing))
    sys.exit(77)

import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

torch.set_num_threads(1)
BATCH, TOKENS, VOCABULARY = 2, 12, 23


def llama(tied):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                        num_key_value_heads=1, intermediate_size=20, max_position_embeddings=131072,
                                        rms_norm_eps=1e-5, rope_theta=500000.0, rope_scaling=scaling, tie_word_embeddings=tied))


MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=TOKENS + 1, n_embd=16, n_layer=2, n_head=2,
                                               resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    "llama": lambda: llama(tied=False),
    "llama_tied": lambda: llama(tied=True),
}


def small_model(kind):
    torch.manual_seed(11)
    model = MODELS[kind]().eval()
    with torch.no_grad():  # its own initial values leave biases 0 and norms 1, which would hide mistakes
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def norm_in_double(self, x):
    """LlamaRMSNorm.forward, which rounds to float inside whatever the model's type is."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def named(model):
    return {name.removeprefix("transformer."): value for name, value in model.named_parameters()}


def write(kind, folder):
    model = small_model(kind)
    model.save_pretrained(folder, max_shard_size="10KB")  # small: several files and an index
    index = torch.arange(BATCH * (TOKENS + 1)).view(BATCH, TOKENS + 1)
    tokens = (index * index + 7 * index) % VOCABULARY
    in_float = model(tokens[:, :-1]).logits

    rounded, modeling_llama.LlamaRMSNorm.forward = modeling_llama.LlamaRMSNorm.forward, norm_in_double
    model.double()
    logits = model(tokens[:, :-1]).logits
    assert (logits - in_float).norm() < 1e-6 * logits.norm(), "another norm"
    assert abs(model(tokens, labels=tokens).loss - loss_of(model, tokens)) < 1e-6, "another loss"  # its own is in fp32
    expected = {"tokens": tokens.float(), "logits": logits.detach().contiguous()}
    # eps: the gradient of a key's bias is nothing but rounding, and would move it as much as any other.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), eps=1e-4, weight_decay=0.1)
    for step in range(5):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        if step == 0:
            expected["loss"] = loss.detach()
            expected.update({f"gradient.{name}": value.grad.clone() for name, value in named(model).items()})
        optimizer.step()
    expected.update({f"after.{name}": value.detach().contiguous() for name, value in named(model).items()})
    save_file(expected, f"{folder}/expected.safetensors")
    modeling_llama.LlamaRMSNorm.forward = rounded


def loss_of(model, tokens):
    return torch.nn.functional.cross_entropy(model(tokens[:, :-1]).logits.flatten(0, 1), tokens[:, 1:].flatten())


def read(kind, folder):
    expected, back = named(small_model(kind)), load_file(f"{folder}/back.safetensors")
    assert back.keys() == expected.keys(), back.keys() ^ expected.keys()
    os.rename(f"{folder}/back.safetensors", f"{folder}/model.safetensors")
    loaded = named(type(small_model(kind)).from_pretrained(folder))  # as a user would
    for name, value in expected.items():
        assert torch.equal(back[name], value), name
        assert torch.equal(loaded[name], value), name


action = {"write": write, "read": read}[sys.argv[1]]
for kind in MODELS:
    action(kind, f"{sys.argv[2]}/{kind}")
