#!/usr/bin/env python3
"""Fits the model that says whether any tool fits (crates/select/src/choice/fit.rs).

    windlass tools bench SETS --out OUT
    fit.py SETS OUT

Prints what each feature counts, and how well that tells the two apart in five-fold cross-validation. Only the `dev` part of the
sets is looked at. Needs numpy.
"""
import glob
import json
import os
import sys

import numpy as np

RIDGE = 1.0


def load(sets, out):
    """Features, answers and groups of every case that has an answer."""
    features, labels, groups = [], [], []
    for path in sorted(glob.glob(os.path.join(sets, "*_irrel.jsonl"))):
        name = os.path.basename(path)[:-len(".jsonl")]
        with open(os.path.join(out, name + ".pred.jsonl"), encoding="utf-8") as file:
            told = {row["id"]: row["features"] for row in map(json.loads, file)}
        with open(path, encoding="utf-8") as file:
            for case in map(json.loads, file):
                if case["split"] == "dev":
                    features.append(told[case["id"]])
                    labels.append(case["label"])
                    groups.append(case["group"])
    return np.array(features), np.array(labels, float), np.array(groups)


def even(labels, groups):
    """Weights by which every group, and in it both answers, count the same."""
    weights = np.ones(len(labels))
    for group in set(groups):
        for label in (0, 1):
            these = (groups == group) & (labels == label)
            weights[these] = len(labels) / (2 * len(set(groups)) * max(1, these.sum()))
    return weights


def fit(features, labels, weights):
    """Logistic regression by Newton's method; the first feature, which is always 1, is not held back."""
    ridge = RIDGE * np.r_[0, np.ones(features.shape[1] - 1)]
    found = np.zeros(features.shape[1])
    for _ in range(50):
        guess = 1 / (1 + np.exp(-features @ found))
        slope = features.T @ (weights * (labels - guess)) - ridge * found
        bend = (features * (weights * guess * (1 - guess))[:, None]).T @ features + np.diag(ridge + 1e-9)
        found = found + np.linalg.solve(bend, slope)
    return found


def auroc(scores, labels):
    fits, others = scores[labels == 1], scores[labels == 0]
    above = (fits[:, None] > others).mean() + 0.5 * (fits[:, None] == others).mean()
    return 100 * above


def main(sets, out):
    features, labels, groups = load(sets, out)
    weights = even(labels, groups)
    parts = np.random.RandomState(0).permutation(len(labels)) % 5
    scores = np.zeros(len(labels))
    for part in range(5):
        seen = parts != part
        scores[~seen] = features[~seen] @ fit(features[seen], labels[seen], weights[seen])
    for group in sorted(set(groups)):
        these = groups == group
        print(f"{group}: AUROC {auroc(scores[these], labels[these]):.1f} of {these.sum()} cases")
    print([float(round(x, 3)) for x in fit(features, labels, weights)])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
