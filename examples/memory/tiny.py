"""A tiny model of the Qwen2 kind with random weights: the whole recipe can be tried with it,
without a GPU.

    python tiny.py FOLDER practice.jsonl

writes ``FOLDER/tiny.gguf`` and a tokenizer, learned from the texts of a few practice answers,
beside it.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from practice import TEMPLATE
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

WORDS, WIDTH, LAYERS, HEADS, KV, INNER = 4096, 64, 2, 4, 2, 128
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokenizer(practice: Path, folder: Path) -> None:
    """Learn a byte-level tokenizer, digit by digit as the real one has them, and save it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=SPECIAL, initial_alphabet=alphabet
    )
    with practice.open() as lines:
        told = [json.loads(line) for line in islice(lines, 0, None, 50)]
    made.train_from_iterator([text["content"] for one in told for text in one["messages"]], trainer)
    whole = PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
    )
    whole.save_pretrained(folder)


def weights(path: Path) -> None:
    """Write random tensors by the names and settings that a Qwen2 GGUF has."""
    rng = np.random.default_rng(1)
    file = GGUFWriter(path, "qwen2")
    file.add_block_count(LAYERS)
    file.add_context_length(8192)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(KV)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_freq_base(1e6)
    narrow = WIDTH // HEADS * KV
    shapes = {"token_embd.weight": (WORDS, WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        each = {
            "attn_norm.weight": (WIDTH,),
            "ffn_norm.weight": (WIDTH,),
            "attn_q.weight": (WIDTH, WIDTH),
            "attn_k.weight": (narrow, WIDTH),
            "attn_v.weight": (narrow, WIDTH),
            "attn_q.bias": (WIDTH,),
            "attn_k.bias": (narrow,),
            "attn_v.bias": (narrow,),
            "attn_output.weight": (WIDTH, WIDTH),
            "ffn_gate.weight": (INNER, WIDTH),
            "ffn_up.weight": (INNER, WIDTH),
            "ffn_down.weight": (WIDTH, INNER),
        }
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in each.items()}
    for name, shape in shapes.items():
        values = np.ones(shape) if "norm" in name else rng.normal(0.0, 0.02, shape)
        file.add_tensor(name, values.astype(np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    tokenizer(Path(sys.argv[2]), target)
    weights(target / "tiny.gguf")
