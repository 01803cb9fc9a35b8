"""GPT-2, Llama and Mixtral as Hugging Face computes them, for tests/mpi/peer_huggingface_test.cpp: random weights, nothing is downloaded.

  huggingface.py write DIR   for each of MODELS, DIR/NAME/model.safetensors.index.json and its files in fp32, and
                             DIR/NAME/expected.safetensors in fp64: logits, loss, its gradients, the weights after five steps of AdamW
  huggingface.py read DIR    whether DIR/NAME/back.safetensors loads into that model and holds the same weights

tests/data/llama and tests/data/moe_aux are what it wrote (torch 2.11.0, transformers 4.57.1).
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
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM)
from transformers.models.llama import modeling_llama
from transformers.models.mixtral import modeling_mixtral

torch.set_num_threads(1)
BATCH, TOKENS, VOCABULARY = 2, 12, 23


def llama(tied):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                        num_key_value_heads=1, intermediate_size=20, max_position_embeddings=131072,
                                        rms_norm_eps=1e-5, rope_theta=500000.0, rope_scaling=scaling, tie_word_embeddings=tied))


def mixtral(layers, aux_loss):
    return MixtralForCausalLM(MixtralConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
                                            num_key_value_heads=1, intermediate_size=12, max_position_embeddings=TOKENS,
                                            rms_norm_eps=1e-5, rope_theta=1e6, num_local_experts=4, num_experts_per_tok=2,
                                            output_router_logits=aux_loss > 0, router_aux_loss_coef=aux_loss))


MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=TOKENS + 1, n_embd=16, n_layer=2, n_head=2,
                                               resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    "llama": lambda: llama(tied=False),
    "llama_tied": lambda: llama(tied=True),
    "moe": lambda: mixtral(layers=2, aux_loss=0),
    # This model has only one layer. For several, Hugging Face multiplies means over the tokens of all layers, while the
    # paper does so in each layer.
    "moe_aux": lambda: mixtral(layers=1, aux_loss=0.1),
}


def small_model(kind):
    torch.manual_seed(11)
    model = MODELS[kind]().eval()
    with torch.no_grad():  # its own initial biases of 0 and norms of 1 would hide mistakes
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def norm_in_double(self, x):
    """LlamaRMSNorm.forward, which rounds to float inside whatever the model's type is."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def softmax_in_double(x, dim, dtype=None, softmax=torch.nn.functional.softmax):
    """That of Mixtral's router, which is in float whatever the model's type is."""
    return softmax(x, dim=dim, dtype=torch.float64 if x.dtype == torch.float64 else dtype)


def balancing_in_double(*arguments, balancing=modeling_mixtral.load_balancing_loss_func):
    """The auxiliary loss, whose shares of tokens are in float."""
    rounded, torch.Tensor.float = torch.Tensor.float, torch.Tensor.double
    try:
        return balancing(*arguments)
    finally:
        torch.Tensor.float = rounded


class InDouble:
    """Nothing is rounded to float inside."""
    PLACES = [(modeling_llama.LlamaRMSNorm, "forward", norm_in_double),
              (modeling_mixtral.MixtralRMSNorm, "forward", norm_in_double),
              (torch.nn.functional, "softmax", softmax_in_double),
              (modeling_mixtral, "load_balancing_loss_func", balancing_in_double)]

    def __enter__(self):
        self.rounded = [(place, name, getattr(place, name)) for place, name, _ in self.PLACES]
        for place, name, exact in self.PLACES:
            setattr(place, name, exact)

    def __exit__(self, *_):
        for place, name, rounded in self.rounded:
            setattr(place, name, rounded)


def named(model):
    return {name.removeprefix("transformer."): value for name, value in model.named_parameters()}


def write(kind, folder):
    model = small_model(kind)
    model.save_pretrained(folder, max_shard_size="10KB")  # a small size gives several files and an index
    index = torch.arange(BATCH * (TOKENS + 1)).view(BATCH, TOKENS + 1)
    tokens = (index * index + 7 * index) % VOCABULARY
    in_float = model(tokens[:, :-1]).logits

    model.double()
    with InDouble():
        expected = values_of(model, tokens, in_float)
    save_file(expected, f"{folder}/expected.safetensors")


def values_of(model, tokens, in_float):
    output = model(tokens[:, :-1])
    assert (output.logits - in_float).norm() < 1e-6 * output.logits.norm(), "another norm"
    own = model(tokens, labels=tokens)  # computed in fp32, and its auxiliary loss includes one more token
    auxiliary = model.config.router_aux_loss_coef * own.aux_loss if own.get("aux_loss") is not None else 0
    assert abs(own.loss - auxiliary - loss_of(model, tokens)[0]) < 1e-6, "another loss"
    expected = {"tokens": tokens.to(torch.float32), "logits": output.logits.detach().contiguous()}
    # eps is large, because the gradient of a key's bias is only rounding noise and would otherwise move it as much as
    # others.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), eps=1e-4, weight_decay=0.1)
    for step in range(5):
        optimizer.zero_grad()
        loss, total = loss_of(model, tokens)
        total.backward()
        if step == 0:
            expected["loss"] = loss.detach()
            expected.update({f"gradient.{name}": value.grad.clone() for name, value in named(model).items()})
        optimizer.step()
    expected.update({f"after.{name}": value.detach().contiguous() for name, value in named(model).items()})
    return expected


def loss_of(model, tokens):
    """The cross-entropy, and what is trained: with the auxiliary loss of a mixture of experts."""
    output = model(tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), tokens[:, 1:].flatten())
    if getattr(model.config, "output_router_logits", False):
        return loss, loss + model.config.router_aux_loss_coef * output.aux_loss
    return loss, loss


def read(kind, folder):
    expected, back = named(small_model(kind)), load_file(f"{folder}/back.safetensors")
    assert back.keys() == expected.keys(), back.keys() ^ expected.keys()
    os.rename(f"{folder}/back.safetensors", f"{folder}/model.safetensors")
    loaded = named(type(small_model(kind)).from_pretrained(folder))  # as a user would load it
    for name, value in expected.items():
        assert torch.equal(back[name], value), name
        assert torch.equal(loaded[name], value), name


action = {"write": write, "read": read}[sys.argv[1]]
for kind in MODELS:
    action(kind, f"{sys.argv[2]}/{kind}")
