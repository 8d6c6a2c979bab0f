"""One network trained by PyTorch (eager, channels-last, autocast for bf16) in a fresh process. Prints one JSON object. Run by side_by_side.py.

usage: torch_peer.py MODEL.onnx N THREADS f32|bf16 SECONDS
"""
import json
import sys
import time

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional as F

from peer import status


class Network(torch.nn.Module):
    """The ONNX graph of models.py, node by node, with its weights as parameters and batch norms in training mode."""

    def __init__(self, graph):
        super().__init__()
        self.values = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
        self.nodes, self.layers = graph.node, torch.nn.ModuleDict()
        self.input, self.output = graph.input[0].name, graph.output[0].name
        for i, n in enumerate(graph.node):
            a = {x.name: onnx.helper.get_attribute_value(x) for x in n.attribute}
            if n.op_type == "Conv":
                w = self.values[n.input[1]]
                group = a.get("group", 1)
                pads = a.get("pads", [0, 0, 0, 0])
                even = pads[:2] == pads[2:]
                layer = torch.nn.Conv2d(w.shape[1] * group, w.shape[0], tuple(w.shape[2:]), tuple(a.get("strides", [1, 1])), tuple(pads[:2]) if even else 0,
                                        groups=group, bias=len(n.input) > 2)
                layer.weight.data = w
                if len(n.input) > 2:
                    layer.bias.data = self.values[n.input[2]]
                self.layers[str(i)] = layer
            elif n.op_type == "BatchNormalization":
                scale, bias, mean, variance = (self.values[x] for x in n.input[1:5])
                layer = torch.nn.BatchNorm2d(len(scale), a.get("epsilon", 1e-5), 1 - a.get("momentum", 0.9))
                layer.weight.data, layer.bias.data = scale, bias
                layer.running_mean, layer.running_var = mean, variance
                self.layers[str(i)] = layer
            elif n.op_type == "Gemm":
                w = self.values[n.input[1]]
                w = w if a.get("transB", 0) else w.t().contiguous()
                layer = torch.nn.Linear(w.shape[1], w.shape[0])
                layer.weight.data, layer.bias.data = w, self.values[n.input[2]]
                self.layers[str(i)] = layer

    def forward(self, x):
        values = {self.input: x}
        for i, n in enumerate(self.nodes):
            a = {t.name: onnx.helper.get_attribute_value(t) for t in n.attribute}
            x = values[n.input[0]]
            pads = a.get("pads", [0, 0, 0, 0])
            if n.op_type == "Conv":
                if pads[:2] != pads[2:]:
                    x = F.pad(x, (pads[1], pads[3], pads[0], pads[2]))
                y = self.layers[str(i)](x)
            elif n.op_type in ("BatchNormalization", "Gemm"):
                y = self.layers[str(i)](x)
            elif n.op_type == "Relu":
                y = F.relu(x)
            elif n.op_type == "Clip":
                y = F.relu6(x)
            elif n.op_type == "Add":
                y = x + values[n.input[1]]
            elif n.op_type == "MaxPool":
                if pads[:2] == pads[2:]:
                    y = F.max_pool2d(x, a["kernel_shape"], a["strides"], pads[:2])
                else:
                    y = F.max_pool2d(F.pad(x, (pads[1], pads[3], pads[0], pads[2]), value=float("-inf")), a["kernel_shape"], a["strides"])
            elif n.op_type == "GlobalAveragePool":
                y = x.mean((2, 3), keepdim=True)
            elif n.op_type == "Flatten":
                y = x.flatten(1)
            elif n.op_type == "Softmax":
                y = x  # in the loss
            else:
                raise SystemExit(f"{n.op_type} is not written here")
            values[n.output[0]] = y
        return values[self.output]


def main():
    model, batch, threads, precision, seconds = sys.argv[1:]
    torch.set_num_threads(int(threads))
    size = 299 if "xception" in model else 224
    x = torch.from_numpy(numpy.random.default_rng(7).standard_normal((int(batch), 3, size, size)).astype(numpy.float32))
    before = status("VmRSS")
    start = time.perf_counter()
    network = Network(onnx.load(model).graph).train().to(memory_format=torch.channels_last)
    x = x.to(memory_format=torch.channels_last)
    labels = torch.arange(int(batch)) % 1000
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(network(x).float(), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    if not numpy.isfinite(step()):
        raise SystemExit("torch's loss is not finite")
    first = time.perf_counter() - start
    steps, end = [], time.perf_counter() + float(seconds)
    while len(steps) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        steps.append(time.perf_counter() - start)
    steps.sort()
    print(json.dumps({"name": f"torch {torch.__version__}", "precision": precision, "img_s_best": int(batch) / steps[0],
                      "img_s_median": int(batch) / steps[len(steps) // 2], "memory_mb": status("VmHWM") - before, "load_to_first_s": first,
                      "iterations": len(steps)}))


if __name__ == "__main__":
    main()
