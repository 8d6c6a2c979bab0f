"""What tests/peers/keras.sh checks; run by it.

1. The arrays that `tandem weights save` writes are those of the file that Keras wrote (SHA-256), layer by layer, in order.
2. Keras 3 loads tandem's file into a network built here, by position, and by name; its predictions are tandem's within 1e-5.
3. What Keras saves again (whole model, legacy .h5), `tandem weights load` puts back: every output of the ONNX file has the same bytes as before.
4. Weights that Keras changed arrive: predictions of tandem and Keras agree again.
"""
import argparse
import hashlib
import os
import subprocess
import sys

import h5py
import keras
import numpy as np

NETWORK = "models/xception_mini/trainable.onnx"
WIDTH, MIDDLE_BLOCKS, CLASSES, SIZE = 0.1875, 2, 5, 64


def xception_mini():
    """Xception (Chollet 2017, as keras.applications names its layers) with 0.1875 of the channels and 2 of 8 middle blocks."""
    layers = keras.layers
    width = lambda channels: int(round(channels * WIDTH))
    norm = lambda x, name: layers.BatchNormalization(name=name)(x)
    relu = lambda x, name: layers.Activation("relu", name=name)(x)

    def separable(x, channels, name):
        x = layers.SeparableConv2D(width(channels), 3, padding="same", use_bias=False, name=name)(x)
        return norm(x, name + "_bn")

    def shortcut(x, channels, index):
        x = layers.Conv2D(width(channels), 1, strides=2, padding="same", use_bias=False, name=NAMES[index][0])(x)
        return norm(x, NAMES[index][1])

    def down(x, block, channels, index, first_relu=True):
        """Two separable convolutions and a pool, beside a strided 1x1 convolution."""
        side = shortcut(x, channels[1], index)
        if first_relu:
            x = relu(x, f"block{block}_sepconv1_act")
        x = separable(x, channels[0], f"block{block}_sepconv1")
        x = relu(x, f"block{block}_sepconv2_act")
        x = separable(x, channels[1], f"block{block}_sepconv2")
        x = layers.MaxPooling2D(3, strides=2, padding="same", name=f"block{block}_pool")(x)
        return layers.Add()([x, side])

    image = layers.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(width(32), 3, strides=2, use_bias=False, name="block1_conv1")(image)
    x = relu(norm(x, "block1_conv1_bn"), "block1_conv1_act")
    x = layers.Conv2D(width(64), 3, use_bias=False, name="block1_conv2")(x)
    x = relu(norm(x, "block1_conv2_bn"), "block1_conv2_act")
    x = down(x, 2, (128, 128), 0, first_relu=False)
    x = down(x, 3, (256, 256), 1)
    x = down(x, 4, (728, 728), 2)
    for block in range(5, 5 + MIDDLE_BLOCKS):
        before = x
        for i in (1, 2, 3):
            x = separable(relu(x, f"block{block}_sepconv{i}_act"), 728, f"block{block}_sepconv{i}")
        x = layers.Add()([x, before])
    x = down(x, 13, (728, 1024), 3)  # the numbers of the whole Xception
    x = relu(separable(x, 1536, "block14_sepconv1"), "block14_sepconv1_act")
    x = relu(separable(x, 2048, "block14_sepconv2"), "block14_sepconv2_act")
    x = layers.GlobalAveragePooling2D(name="avg_pool")(x)
    return keras.Model(image, layers.Dense(CLASSES, activation="softmax", name="predictions")(x))


NAMES = []  # of the layers beside a block, convolution and normalisation, as the file has them


def arrays(path):
    """layer/weight -> array, in the file's order."""
    found = {}
    with h5py.File(path) as f:
        group = f["model_weights"] if "model_weights" in f else f
        text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
        for layer in map(text, group.attrs["layer_names"]):
            for weight in map(text, group[layer].attrs["weight_names"]):
                leaf = weight.split("/")[-1].split(":")[0]
                found[f"{layer}/{leaf}"] = group[layer][weight][()]
    return found


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def listing(fixtures):
    """layer/weight -> (shape, SHA-256) of Keras' own file, in its order."""
    path = os.path.join(fixtures, "xception_mini", "xception_mini.h5") if fixtures else ""
    if os.path.exists(path):
        print("compared with", path)
        return {k: (a.shape, digest(a)) for k, a in arrays(path).items()}
    print("compared with the listing in tests/data/keras_h5/xception_mini.txt")
    rows = [line.rstrip("\n").split("\t") for line in open("tests/data/keras_h5/xception_mini.txt")]
    return {row[1]: (tuple(int(d) for d in row[3].split(",")), row[4]) for row in rows if len(row) == 5}


class Tandem:
    def __init__(self, program, work):
        self.program, self.work = program, work

    def __call__(self, *words):
        subprocess.run([self.program, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if words[0] == "run" else None)

    def outputs(self, model, x, name):
        """The first output for images in Keras' layout, which the network takes as NCHW."""
        np.save(os.path.join(self.work, "x.npy"), np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
        folder = os.path.join(self.work, name)
        self("run", model, "--input", "input_layer=" + os.path.join(self.work, "x.npy"), "--output", folder)
        first = open(os.path.join(folder, "outputs.txt")).readline().strip()
        return np.load(os.path.join(folder, first + ".npy"))


def check(what, good, figure):
    print(f"{'ok  ' if good else 'FAIL'} {what}: {figure}")
    return good


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tandem", required=True)
    p.add_argument("--fixtures", default="")
    p.add_argument("--work", required=True)
    a = p.parse_args()
    tandem, path = Tandem(a.tandem, a.work), lambda name: os.path.join(a.work, name)
    print("keras", keras.__version__, "on", keras.backend.backend())
    good = True

    tandem("weights", "save", NETWORK, "-o", path("tandem.h5"))
    mine, want = arrays(path("tandem.h5")), listing(a.fixtures)
    same = [k for k in want if k in mine and (mine[k].shape, digest(mine[k])) == want[k]]
    good &= check("arrays equal by SHA-256, in the same order", list(mine) == list(want) and len(same) == len(want), f"{len(same)} of {len(want)}")

    # The four layers beside the blocks have names that Keras numbers by itself.
    beside = [k.split("/")[0] for k in mine if k.endswith("/kernel") and not k.startswith(("block", "predictions"))]
    norms = [k.split("/")[0] for k in mine if k.endswith("/gamma") and not k.startswith("block")]
    NAMES[:] = zip(beside, norms)
    x = np.random.default_rng(3).uniform(-1, 1, (64, SIZE, SIZE, 3)).astype(np.float32)
    ours = tandem.outputs(NETWORK, x, "ours")
    for how in ({}, {"by_name": True}):
        keras.utils.set_random_seed(1)
        model = xception_mini()
        model.load_weights(path("tandem.h5"), **how)
        difference = float(np.abs(model.predict(x, verbose=0) - ours).max())
        good &= check(f"Keras' predictions, loaded {'by name' if how else 'by position'}", difference <= 1e-5, f"{difference:.2e} at most, limit 1e-5")

    model.save(path("keras.h5"))
    tandem("weights", "load", NETWORK, path("keras.h5"), "-o", path("back.onnx"))
    back = tandem.outputs(path("back.onnx"), x, "back")
    good &= check("outputs after Keras saved and tandem loaded", back.tobytes() == ours.tobytes(), "same bytes" if back.tobytes() == ours.tobytes() else "differ")

    rng = np.random.default_rng(4)
    model.set_weights([w * rng.uniform(0.95, 1.05, w.shape).astype(np.float32) for w in model.get_weights()])
    model.save(path("changed.h5"))
    tandem("weights", "load", NETWORK, path("changed.h5"), "-o", path("changed.onnx"))
    changed, theirs = tandem.outputs(path("changed.onnx"), x, "changed"), model.predict(x, verbose=0)
    difference, moved = float(np.abs(changed - theirs).max()), float(np.abs(changed - ours).max())
    good &= check("predictions with weights that Keras changed", difference <= 1e-5 < moved, f"{difference:.2e} at most; the change moved them by {moved:.2e}")
    return 0 if good else 1


sys.exit(main())
