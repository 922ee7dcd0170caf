"""Makes the data of windlass-tokens from published lists of merges.

usage: python3 vocabularies.py LIST OUTPUT

LIST is a `.tiktoken` file, also compressed (`.gz`): a token in Base64 and its rank in every line.
The format of OUTPUT is described in crates/tokens/data/README.md.
"""

import base64
import gzip
import struct
import sys


def read_ranks(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as lines:
        pairs = (line.split() for line in lines if line.strip())
        return {base64.b64decode(token): int(rank) for token, rank in pairs}


def split_of(token, ranks):
    """Returns the two tokens whose merge makes this one: the merges of lower rank are applied."""
    parts = [bytes([byte]) for byte in token]
    limit = ranks[token]
    while len(parts) > 2:
        candidates = [
            (ranks[a + b], at)
            for at, (a, b) in enumerate(zip(parts, parts[1:]))
            if ranks.get(a + b, limit) < limit
        ]
        _, at = min(candidates)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return tuple(ranks[part] for part in parts)


def main(list_path, output_path):
    ranks = read_ranks(list_path)
    assert sorted(ranks.values()) == list(range(len(ranks))), "ranks have gaps"
    by_rank = sorted(ranks, key=ranks.get)
    assert all(len(token) == 1 for token in by_rank[:256]), "bytes come first"
    assert len(ranks) < 1 << 18, "a token has 18 bits"
    with open(output_path, "wb") as output:
        output.write(bytes(ranks[bytes([byte])] for byte in range(256)))
        for token in by_rank[256:]:
            left, right = split_of(token, ranks)
            low = (left & 0xFFFF, right & 0xFFFF, left >> 16 | right >> 16 << 4)
            output.write(struct.pack("<HHB", *low))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
