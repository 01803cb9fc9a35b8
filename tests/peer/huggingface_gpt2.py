"""GPT-2 as Hugging Face computes it, for tests/mpi/peer_huggingface_test.cpp: random weights, nothing is downloaded.

  huggingface_gpt2.py write DIR   weights.safetensors of a small GPT2LMHeadModel, and its logits and loss in expected.safetensors
  huggingface_gpt2.py read DIR    whether back.safetensors loads into that model and holds the same weights
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
from transformers import GPT2Config, GPT2LMHeadModel

torch.set_num_threads(1)
BATCH, TOKENS, VOCABULARY = 3, 20, 101


def small_model():
    torch.manual_seed(11)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=24, n_embd=48, n_layer=3, n_head=4,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():  # its own initial values leave biases 0 and norms 1, which would hide mistakes
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def write(folder):
    model = small_model()
    model.save_pretrained(folder, safe_serialization=True)
    os.rename(f"{folder}/model.safetensors", f"{folder}/weights.safetensors")
    index = torch.arange(BATCH * (TOKENS + 1)).view(BATCH, TOKENS + 1)
    tokens = (index * index + 7 * index) % VOCABULARY
    with torch.no_grad():
        logits = model(tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        same = model(tokens, labels=tokens).loss  # the model's own shift gives the same loss
    assert abs(loss - same) < 1e-5, (loss, same)
    save_file({"tokens": tokens.float(), "logits": logits.contiguous(), "loss": loss}, f"{folder}/expected.safetensors")


def read(folder):
    model, back = small_model(), load_file(f"{folder}/back.safetensors")
    expected = {name: value.clone() for name, value in model.transformer.state_dict().items()}
    result = GPT2LMHeadModel(model.config).transformer.load_state_dict(back, strict=True)
    assert not result.missing_keys and not result.unexpected_keys, result
    for name, value in expected.items():
        assert torch.equal(back[name], value), name
    os.rename(f"{folder}/back.safetensors", f"{folder}/model.safetensors")
    loaded = GPT2LMHeadModel.from_pretrained(folder)  # as a user would; ties the head
    assert torch.equal(loaded.lm_head.weight, expected["wte.weight"])


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
