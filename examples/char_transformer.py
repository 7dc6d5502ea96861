"""A tiny transformer learns to write like a book, one character at a time.

Run: python examples/char_transformer.py

The book is Alice's Adventures in Wonderland (examples/data).
"""

import math
from pathlib import Path

import torch
from common import arguments, save_losses
from torch import nn
from torch.distributions import Categorical

BOOK = Path(__file__).parent / "data" / "alice.txt"


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("future", torch.ones(context, context).triu(1).bool())

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(shape[-1])
        scores = scores.masked_fill(self.future[:length, :length], -math.inf)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
            nn.Dropout(0.1),
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary, width=64, heads=4, layers=2, context=64):
        super().__init__()
        self.context = context
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def write(self, start, length):
        """Continue `start` (a list of tokens) by `length` sampled ones."""
        tokens = list(start)
        for _ in range(length):
            logits = self(torch.tensor([tokens[-self.context :]]))[0, -1]
            tokens.append(Categorical(logits=logits).sample().item())
        return tokens


def batches(tokens, context, size):
    """Random pieces of the text, and the same pieces one character later, for ever."""
    while True:
        start = torch.randint(len(tokens) - context - 1, (size, 1))
        index = start + torch.arange(context)
        yield tokens[index], tokens[index + 1]


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def main():
    args = arguments(__doc__, steps=500, batch=32)
    torch.manual_seed(args.seed)
    text = BOOK.read_text(encoding="ascii")
    alphabet = sorted(set(text))
    number = {character: i for i, character in enumerate(alphabet)}
    tokens = torch.tensor([number[character] for character in text])
    train_tokens, test_tokens = tokens[:-15_000], tokens[-15_000:]

    model = Transformer(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    data = batches(train_tokens, model.context, args.batch)
    losses = []
    for step in range(1, args.steps + 1):
        loss = loss_of(model, *next(data))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == args.steps:
            print(f"step {step}: loss {sum(losses[-100:]) / len(losses[-100:]):.3f}")

    model.eval()
    with torch.no_grad():
        held_out = loss_of(model, *next(batches(test_tokens, model.context, 128))).item()
    print(f"held-out loss {held_out:.3f} (an even guess: {math.log(len(alphabet)):.3f})\n")
    print("".join(alphabet[i] for i in model.write([number[c] for c in "Alice "], args.steps // 2)))
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
