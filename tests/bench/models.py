"""Writes the benchmark's networks as ONNX files: xception (299), resnet50 (224), mobilenetv2 (224).

usage: models.py FOLDER [NAME...]

Weights are He-scaled from a fixed seed. Batch norm's statistics are those that the network itself has on one batch of the fixed input
distribution, so activations stay of order one from the first layer to the last and no value is denormal (both are checked here).
Beside NAME.onnx lie NAME.input.npy (2 images) and NAME.expected.npy (ONNX Runtime's output for it).
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION, CLASSES = 17, 8, 1000
CALIBRATION_BATCH = 4


class Net:
    """A graph under construction, kept twice: as it is written, and with batch norm that measures its own statistics."""

    def __init__(self, name, size, epsilon, seed):
        self.name, self.size, self.epsilon = name, size, epsilon
        self.rng = np.random.default_rng(seed)
        self.nodes, self.measuring, self.parameters, self.norms = [], [], {}, []
        self.height = size
        self.counts = {}

    def fresh(self, kind):
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return f"{kind}_{self.counts[kind]}" if self.counts[kind] else kind

    def parameter(self, name, values):
        self.parameters[name] = np.ascontiguousarray(values, dtype=np.float32)
        return name

    def add(self, op, inputs, **attributes):
        name = self.fresh(op.lower())
        node = helper.make_node(op, inputs, [name + ":out"], name=name, **attributes)
        self.nodes.append(node)
        self.measuring.append(node)
        return name + ":out"

    def pads(self, height, kernel, stride, same):
        """(top, bottom, output height) of TensorFlow's SAME, of a symmetric pad (an int), or of VALID."""
        if same is True:
            out = -(-height // stride)
            total = max(0, (out - 1) * stride + kernel - height)
            return total // 2, total - total // 2, out
        pad = int(same)
        return pad, pad, (height + 2 * pad - kernel) // stride + 1

    def conv(self, x, height, channels, filters, kernel, stride=1, same=True, groups=1):
        name = self.fresh("depthwise_conv2d" if groups > 1 else "conv2d")
        top, bottom, out = self.pads(height, kernel, stride, same)
        fan_in = channels // groups * kernel * kernel
        w = self.rng.standard_normal((filters, channels // groups, kernel, kernel)) * np.sqrt(2 / fan_in)
        node = helper.make_node("Conv", [x, self.parameter(name + "/kernel", w)], [name + ":out"], name=name, group=groups,
                                kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[top, top, bottom, bottom])
        self.nodes.append(node)
        self.measuring.append(node)
        return name + ":out", out

    def batch_norm(self, x, channels):
        name = self.fresh("batch_normalization")
        gamma = self.parameter(name + "/gamma", self.rng.uniform(0.7, 1.3, channels))
        beta = self.parameter(name + "/beta", self.rng.standard_normal(channels) * 0.1)
        mean, variance, y = name + "/moving_mean", name + "/moving_variance", name + ":out"
        self.norms.append((mean, variance))
        self.nodes.append(helper.make_node("BatchNormalization", [x, gamma, beta, mean, variance], [y], name=name, epsilon=self.epsilon))
        t = name + "#"
        self.measuring += [
            helper.make_node("ReduceMean", [x], [t + "mean4"], axes=[0, 2, 3], keepdims=1),
            helper.make_node("Sub", [x, t + "mean4"], [t + "centred"]),
            helper.make_node("Mul", [t + "centred", t + "centred"], [t + "square"]),
            helper.make_node("ReduceMean", [t + "square"], [t + "variance4"], axes=[0, 2, 3], keepdims=1),
            helper.make_node("Squeeze", [t + "mean4", "#axes"], [mean]),
            helper.make_node("Squeeze", [t + "variance4", "#axes"], [variance]),
            helper.make_node("BatchNormalization", [x, gamma, beta, mean, variance], [y], epsilon=self.epsilon),
        ]
        return y

    def max_pool(self, x, height, kernel, stride, same):
        top, bottom, out = self.pads(height, kernel, stride, same)
        return self.add("MaxPool", [x], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[top, top, bottom, bottom]), out

    def relu(self, x):
        return self.add("Relu", [x])

    def relu6(self, x):
        for name, value in (("relu6_min", 0), ("relu6_max", 6)):
            self.parameter(name, np.float32(value))
        return self.add("Clip", [x, "relu6_min", "relu6_max"])

    def head(self, x, channels):
        x = self.add("GlobalAveragePool", [x])
        x = self.add("Flatten", [x], axis=1)
        w = self.parameter("predictions/kernel", self.rng.standard_normal((channels, CLASSES)) * np.sqrt(2 / channels))
        x = self.add("Gemm", [x, w, self.parameter("predictions/bias", self.rng.standard_normal(CLASSES) * 0.1)])
        return self.add("Softmax", [x], axis=1)

    def images(self, count, seed):
        return np.random.default_rng(seed).standard_normal((count, 3, self.size, self.size)).astype(np.float32)

    def model(self, nodes, outputs, parameters):
        inputs = [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, self.size, self.size])]
        initializers = [numpy_helper.from_array(v, n) for n, v in parameters.items()]
        graph = helper.make_graph(nodes, self.name, inputs, outputs, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="tandem-bench")
        model.ir_version = IR_VERSION
        return model

    def measure(self):
        """Batch norm's statistics on one batch, into the parameters."""
        names = [n for pair in self.norms for n in pair]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]
        model = self.model(self.measuring, outputs, {**self.parameters, "#axes": np.array([0, 2, 3], np.int64)})
        for n, v in zip(names, run(model, self.images(CALIBRATION_BATCH, 11), names)):
            self.parameter(n, v)

    def finish(self, folder, output):
        self.measure()
        # The last node's output gets a name that people can read.
        self.nodes[-1].output[0] = "probabilities"
        info = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", CLASSES])
        model = self.model(self.nodes, [info], self.parameters)
        onnx.checker.check_model(model)
        self.check(model)
        x = self.images(2, 7)
        path = os.path.join(folder, self.name)
        np.save(path + ".input.npy", x)
        np.save(path + ".expected.npy", run(model, x, ["probabilities"])[0])
        onnx.save(model, path + ".onnx.part")
        os.replace(path + ".onnx.part", path + ".onnx")
        count = sum(v.size for v in self.parameters.values())
        print(f"{path}.onnx: {len(self.nodes)} nodes, {count / 1e6:.1f} M parameters")

    def check(self, model):
        """No denormal value anywhere, activations of order one."""
        probe = onnx.ModelProto()
        probe.CopyFrom(model)
        names = [n.output[0] for n in self.nodes]
        del probe.graph.output[:]
        probe.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names)
        tiny = np.finfo(np.float32).tiny
        for n, v in list(zip(names, run(probe, self.images(1, 7), names))) + list(self.parameters.items()):
            a = np.abs(v)
            if np.any((a > 0) & (a < tiny)):
                raise SystemExit(f"{self.name}: {n} holds denormal numbers")
            if v.ndim == 4 and n in names and not 0.05 < v.std() < 20:
                raise SystemExit(f"{self.name}: the values of {n} have a deviation of {v.std():.3g}")


def run(model, x, names):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(names, {"input": x})


def xception(folder):
    """Keras' Xception, in NCHW."""
    net = Net("xception", 299, 1e-3, 1)

    def separable(x, h, channels, filters):
        x, _ = net.conv(x, h, channels, channels, 3, groups=channels)
        x, _ = net.conv(x, h, channels, filters, 1)
        return net.batch_norm(x, filters)

    x, h = net.conv("input", 299, 3, 32, 3, 2, same=0)
    x = net.relu(net.batch_norm(x, 32))
    x, h = net.conv(x, h, 32, 64, 3, 1, same=0)
    x = net.relu(net.batch_norm(x, 64))
    channels = 64
    for i, filters in enumerate((128, 256, 728)):
        shortcut, _ = net.conv(x, h, channels, filters, 1, 2)
        shortcut = net.batch_norm(shortcut, filters)
        y = separable(net.relu(x) if i else x, h, channels, filters)
        y = separable(net.relu(y), h, filters, filters)
        y, h = net.max_pool(y, h, 3, 2, True)
        x = net.add("Add", [y, shortcut])
        channels = filters
    for _ in range(8):
        y = x
        for _ in range(3):
            y = separable(net.relu(y), h, 728, 728)
        x = net.add("Add", [y, x])
    shortcut, _ = net.conv(x, h, 728, 1024, 1, 2)
    shortcut = net.batch_norm(shortcut, 1024)
    y = separable(net.relu(x), h, 728, 728)
    y = separable(net.relu(y), h, 728, 1024)
    y, h = net.max_pool(y, h, 3, 2, True)
    x = net.add("Add", [y, shortcut])
    x = net.relu(separable(x, h, 1024, 1536))
    x = net.relu(separable(x, h, 1536, 2048))
    net.finish(folder, net.head(x, 2048))


def resnet50(folder):
    """ResNet-50 v1.5 (stride in the 3x3 convolution), pads as in torchvision."""
    net = Net("resnet50", 224, 1e-5, 2)
    x, h = net.conv("input", 224, 3, 64, 7, 2, same=3)
    x = net.relu(net.batch_norm(x, 64))
    x, h = net.max_pool(x, h, 3, 2, 1)
    channels = 64
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y, _ = net.conv(x, h, channels, width, 1)
            y = net.relu(net.batch_norm(y, width))
            y, out = net.conv(y, h, width, width, 3, stride, same=1)
            y = net.relu(net.batch_norm(y, width))
            y, _ = net.conv(y, out, width, 4 * width, 1)
            y = net.batch_norm(y, 4 * width)
            shortcut = x
            if block == 0:
                shortcut, _ = net.conv(x, h, channels, 4 * width, 1, stride, same=0)
                shortcut = net.batch_norm(shortcut, 4 * width)
            x = net.relu(net.add("Add", [y, shortcut]))
            channels, h = 4 * width, out
    net.finish(folder, net.head(x, channels))


def mobilenetv2(folder):
    """MobileNetV2, width 1."""
    net = Net("mobilenetv2", 224, 1e-3, 3)
    x, h = net.conv("input", 224, 3, 32, 3, 2)
    x = net.relu6(net.batch_norm(x, 32))
    channels = 32
    for expansion, filters, blocks, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                                     (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y, hidden = x, channels * expansion
            if expansion > 1:
                y, _ = net.conv(y, h, channels, hidden, 1)
                y = net.relu6(net.batch_norm(y, hidden))
            y, out = net.conv(y, h, hidden, hidden, 3, stride, groups=hidden)
            y = net.relu6(net.batch_norm(y, hidden))
            y, _ = net.conv(y, out, hidden, filters, 1)
            y = net.batch_norm(y, filters)
            x = net.add("Add", [y, x]) if stride == 1 and channels == filters else y
            channels, h = filters, out
    x, h = net.conv(x, h, channels, 1280, 1)
    x = net.relu6(net.batch_norm(x, 1280))
    net.finish(folder, net.head(x, 1280))


NETWORKS = {"xception": xception, "resnet50": resnet50, "mobilenetv2": mobilenetv2}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for network in sys.argv[2:] or NETWORKS:
        NETWORKS[network](sys.argv[1])
