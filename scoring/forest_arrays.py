"""A random forest as plain arrays: what a saved probe holds, without the code that grew it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scoring.probe_estimators import ForestSettings, grow_forest
from scoring.scored_units import FloatArray

_KINDS = {"roots": np.int64, "left": np.int32, "right": np.int32, "feature": np.int32,
          "threshold": np.float64, "share": np.float64}  # fmt: skip


class ForestError(ValueError):
    """Arrays that are no forest; the message says what is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class ForestArrays:
    """Trees one after the other; a node's children have larger places than it.

    Attributes:
        roots: place of each tree's root, ascending, shape ``(trees,)``.
        left, right: places of the children, −1 for a leaf, shape ``(nodes,)``.
        feature: number of the feature that is compared, 0 for a leaf.
        threshold: go left where the feature, as a 32-bit float, is at most this.
        share: share of right units in a leaf, in [0, 1].
    """

    roots: NDArray[np.int64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    share: NDArray[np.float64]

    @classmethod
    def grown(cls, features: FloatArray, correct: NDArray[np.bool_], settings: ForestSettings) -> Self:
        """Grow a forest, as `scoring.probe_estimators.fit_forest` does.

        Raises:
            ForestError: all units are right, or none is.
        """
        if correct.all() or not correct.any():
            raise ForestError("a probe needs right and wrong units to learn from")
        trees = [tree.tree_ for tree in grow_forest(features, correct, settings).estimators_]
        sizes = np.array([tree.node_count for tree in trees])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

        def joined(name: str, moved: bool) -> NDArray[np.int32]:
            parts = [np.asarray(getattr(tree, name), dtype=np.int64) for tree in trees]
            if moved:
                parts = [np.where(part < 0, -1, part + root) for part, root in zip(parts, roots, strict=True)]
            return np.concatenate(parts).astype(np.int32)

        counts = np.concatenate([tree.value[:, 0, :] for tree in trees])
        return cls(
            roots=roots,
            left=joined("children_left", True),
            right=joined("children_right", True),
            feature=np.maximum(joined("feature", False), 0),
            threshold=np.concatenate([tree.threshold for tree in trees]).astype(np.float64),
            share=(counts[:, 1] / counts.sum(axis=1)).astype(np.float64),
        )

    @classmethod
    def checked(cls, arrays: Mapping[str, Any], width: int) -> Self:
        """Return the forest of arrays from a file.

        Raises:
            ForestError: something is missing, of another type or length, or leads nowhere.
        """
        found = {}
        for entry in fields(cls):
            array = arrays.get(entry.name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != _KINDS[entry.name]:
                raise ForestError(f"no array {entry.name} of {np.dtype(_KINDS[entry.name])}")
            found[entry.name] = array
        forest = cls(**found)
        nodes = forest.left.size
        places = np.arange(nodes)
        inner = forest.left >= 0
        if not nodes or not forest.roots.size or any(found[name].size != nodes for name in list(_KINDS)[1:]):
            raise ForestError("arrays of different lengths")
        children = np.stack([forest.left[inner], forest.right[inner]])
        if (
            (children <= places[inner]).any()
            or (children >= nodes).any()
            or (forest.roots < 0).any()
            or (forest.roots >= nodes).any()
        ):
            raise ForestError("trees that lead nowhere")
        if (forest.feature < 0).any() or (forest.feature >= width).any():
            raise ForestError(f"features beyond a width of {width}")
        if not (np.isfinite(forest.threshold).all() and (forest.share >= 0.0).all() and (forest.share <= 1.0).all()):
            raise ForestError("thresholds or shares that are no numbers")
        return forest

    def predict(self, features: FloatArray) -> FloatArray:
        """Return the mean share of the leaves that units fall into, in [0, 1], shape ``(n,)``."""
        # Thresholds were chosen between 32-bit numbers: wider ones could fall on the other side.
        narrow = np.asarray(features, dtype=np.float32)
        units = np.arange(len(narrow))
        total = np.zeros(len(narrow))
        for root in self.roots:
            place = np.full(len(narrow), root)
            going = self.left[place] >= 0
            while going.any():
                rows, node = units[going], place[going]
                left = narrow[rows, self.feature[node]] <= self.threshold[node]
                place[going] = np.where(left, self.left[node], self.right[node])
                going = self.left[place] >= 0
            total += self.share[place]
        return total / self.roots.size
