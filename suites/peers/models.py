"""GPT-2 and ResNet in plain PyTorch, Llama of Hugging Face: the program's models (src/specs/models), with its weights."""

import json
import re

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import samples


class Block(nn.Module):
    """A transformer block. x: [B, T, C]."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.attn["c_attn"](self.ln_1(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).flatten(2))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Hugging Face's names; the output layer is the token embedding. Returns the loss."""

    def __init__(self, layers=12, width=768, heads=12, sequence=1024, vocabulary=50257):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.make_data = lambda seed: samples.Tokens(vocabulary, sequence, seed)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[:tokens.size(1)]
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    def shards(self):
        return list(self.h)


def make_llama(layers=16, width=2048, heads=32, kv_heads=8, inner=8192, sequence=8192, vocabulary=128256, tied=True,
               rope_theta=500000.0, rope_factor=32.0):
    from transformers import LlamaConfig, LlamaForCausalLM

    class Llama(LlamaForCausalLM):
        """Returns the loss."""

        def forward(self, tokens, targets):
            logits = super().forward(tokens, use_cache=False).logits
            return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

        def shards(self):
            return list(self.model.layers)

        def make_data(self, seed):
            return samples.Tokens(vocabulary, sequence, seed)

    scaling = {"rope_type": "llama3", "factor": rope_factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    return Llama(LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
        intermediate_size=inner, max_position_embeddings=131072, rms_norm_eps=1e-5, rope_theta=rope_theta, rope_scaling=scaling,
        tie_word_embeddings=tied))


def conv_norm(into, out, kernel, stride):
    return (nn.Conv2d(into, out, kernel, stride, (kernel - 1) // 2, bias=False), nn.BatchNorm2d(out))


class Residual(nn.Module):
    """torchvision's BasicBlock or Bottleneck (which strides in its 3x3)."""

    def __init__(self, into, width, stride, bottleneck):
        super().__init__()
        out = 4 * width if bottleneck else width
        convs = ([(into, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck
                 else [(into, width, 3, stride), (width, out, 3, 1)])
        self.count = len(convs)
        for i, shape in enumerate(convs, 1):
            conv, norm = conv_norm(*shape)
            setattr(self, f"conv{i}", conv)
            setattr(self, f"bn{i}", norm)
        self.downsample = nn.Sequential(*conv_norm(into, out, 1, stride)) if into != out or stride != 1 else None

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = F.relu(y, inplace=True)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet(nn.Module):
    """torchvision's names; below 64 pixels CIFAR's stem (3x3, no pooling). Returns the loss."""

    BLOCKS = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3]}

    def __init__(self, layers=18, width=64, classes=None, image=None):
        super().__init__()
        bottleneck = layers == 50
        image, classes = image or (224 if bottleneck else 32), classes or (1000 if bottleneck else 10)
        self.pooled = image >= 64
        self.conv1, self.bn1 = conv_norm(3, width, 7 if self.pooled else 3, 2 if self.pooled else 1)
        channels, self.stages = width, []
        for stage, count in enumerate(self.BLOCKS[layers]):
            blocks = []
            for i in range(count):
                blocks.append(Residual(channels, width << stage, 2 if stage > 0 and i == 0 else 1, bottleneck))
                channels = (width << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)
        self.make_data = lambda seed: samples.Images(classes, image, seed)

    def forward(self, images, targets):
        x = F.relu(self.bn1(self.conv1(images)), inplace=True)
        if self.pooled:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return F.cross_entropy(self.fc(x.mean((2, 3))).float(), targets)

    def shards(self):
        return [block for stage in (self.layer1, self.layer2, self.layer3, self.layer4) for block in stage]


def make_model(text):
    """From the program's own words: "gpt2(layers=4, width=256)"."""
    name, options = re.fullmatch(r"(\w+)(?:\((.*)\))?", text).groups()
    pairs = (pair.split("=") for pair in (options or "").split(",") if pair.strip())
    return {"gpt2": GPT2, "llama": make_llama, "resnet": ResNet}[name](**{key.strip(): json.loads(value) for key, value in pairs})


def load_weights(model, path):
    """From a safetensors file that `shardmark train --save-weights` wrote."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        start = file.tell()
        for name, parameter in model.named_parameters():
            begin, end = header[name]["data_offsets"]
            file.seek(start + begin)
            value = torch.from_numpy(np.frombuffer(bytearray(file.read(end - begin)), np.float32))
            value = value.view(header[name]["shape"])
            # The projections of shardmark are [in, out], and those of nn.Linear are [out, in].
            parameter.data.copy_(value.t() if ".c_" in name and value.dim() == 2 else value)
