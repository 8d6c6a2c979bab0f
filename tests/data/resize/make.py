#!/usr/bin/env python3
"""Writes what Pillow 13.0.0, OpenCV 5.0.0 (4.10 agrees) and TensorFlow 2.21 make of one 23 x 37 RGB picture: KIND.bin holds, one after the other,
the results for SIZES (tests/io/resize_test.cc has the same list). The tall source is the same bytes read as 37 x 23.
usage: make.py pillow-opencv | tensorflow"""
import sys

import numpy as np

SIZES = [("wide", 11, 16), ("wide", 40, 50), ("wide", 7, 60), ("wide", 23, 10), ("wide", 10, 37), ("wide", 1, 1), ("tall", 12, 20), ("even", 11, 18),
         ("even", 22, 12), ("even", 2, 9)]
data = np.fromfile("../images/rgb.png.rgb", np.uint8)
wide = data.reshape(23, 37, 3)
SOURCES = {"wide": wide, "tall": data.reshape(37, 23, 3), "even": np.ascontiguousarray(wide[:22, :36])}


def write(kind, f):
    open(kind + ".bin", "wb").write(b"".join(np.ascontiguousarray(f(SOURCES[s], h, w)).tobytes() for s, h, w in SIZES))


if sys.argv[1] == "tensorflow":
    import tensorflow as tf
    write("tf-bilinear", lambda a, h, w: tf.image.resize(a, (h, w), "bilinear").numpy())
else:
    import cv2
    from PIL import Image
    for kind, method in (("pil-bicubic", Image.BICUBIC), ("pil-bilinear", Image.BILINEAR), ("nearest", Image.NEAREST)):
        write(kind, lambda a, h, w: np.asarray(Image.fromarray(a).resize((w, h), method)))
    for kind, method in (("cv-linear", cv2.INTER_LINEAR), ("cv-area", cv2.INTER_AREA)):
        write(kind, lambda a, h, w: cv2.resize(a, (w, h), interpolation=method))
