"""One network of keras.applications trained by Keras on TensorFlow in a fresh process. Prints one JSON object. Run by side_by_side.py.

Xception's layers are those of models.py; ResNet-50's convolutions have biases besides. The weights are Keras' own start.
usage: keras_peer.py MODEL.onnx N THREADS f32|bf16 SECONDS
"""
import json
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import numpy
import tensorflow

from peer import status

NETWORKS = {"xception": keras.applications.Xception, "resnet50": keras.applications.ResNet50, "mobilenetv2": keras.applications.MobileNetV2}


def main():
    model, batch, threads, precision, seconds = sys.argv[1:]
    tensorflow.config.threading.set_intra_op_parallelism_threads(int(threads))
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    if precision == "bf16":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    name = os.path.splitext(os.path.basename(model))[0]
    size = 299 if name == "xception" else 224
    x = numpy.random.default_rng(7).standard_normal((int(batch), size, size, 3)).astype(numpy.float32)
    labels = numpy.arange(int(batch)) % 1000
    before = status("VmRSS")
    start = time.perf_counter()
    network = NETWORKS[name](weights=None)
    network.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9), loss="sparse_categorical_crossentropy")
    if not numpy.isfinite(network.train_on_batch(x, labels)):
        raise SystemExit("Keras' loss is not finite")
    first = time.perf_counter() - start
    steps, end = [], time.perf_counter() + float(seconds)
    while len(steps) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        network.train_on_batch(x, labels)
        steps.append(time.perf_counter() - start)
    steps.sort()
    print(json.dumps({"name": f"keras {keras.__version__} on tensorflow {tensorflow.__version__}", "precision": precision,
                      "img_s_best": int(batch) / steps[0], "img_s_median": int(batch) / steps[len(steps) // 2],
                      "memory_mb": status("VmHWM") - before, "load_to_first_s": first, "iterations": len(steps)}))


if __name__ == "__main__":
    main()
