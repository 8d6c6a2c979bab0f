"""One peer, one model, one fresh process. Prints one JSON object. Run by side_by_side.py in its own venv.

usage: peer.py onnxruntime|openvino|openvino-streams MODEL.onnx N THREADS f32|bf16 SECONDS
"""
import json
import sys
import time


def status(key):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/self/status has no {key}")


def onnxruntime_runner(model, threads, precision):
    import onnxruntime

    def load():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        return (lambda x: session.run(None, {name: x})[0]), "f32"

    if precision != "f32":
        raise SystemExit("ONNX Runtime's CPU provider computes in f32 only")
    return f"onnxruntime {onnxruntime.__version__}", load


def openvino_runner(model, threads, precision, streams):
    import openvino

    def load():
        core = openvino.Core()
        config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": streams, "INFERENCE_PRECISION_HINT": precision, "CACHE_DIR": ""}
        compiled = core.compile_model(core.read_model(model), "CPU", config)
        used = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        if streams == 1:
            request = compiled.create_infer_request()
            return (lambda x: request.infer({0: x})[0]), used
        requests = [compiled.create_infer_request() for _ in range(streams)]

        def run(x):
            import numpy
            parts = numpy.array_split(x, min(streams, len(x)))
            for r, p in zip(requests, parts):
                r.start_async({0: p})
            for r, _ in zip(requests, parts):
                r.wait()
            return numpy.concatenate([r.get_output_tensor(0).data for r, _ in zip(requests, parts)])

        return run, used

    return f"openvino {openvino.__version__}", load


def main():
    peer, model, batch, threads, precision, seconds = sys.argv[1:]
    import numpy
    if peer == "onnxruntime":
        name, load = onnxruntime_runner(model, int(threads), precision)
    elif peer == "openvino":
        name, load = openvino_runner(model, int(threads), precision, 1)
    elif peer == "openvino-streams":
        name, load = openvino_runner(model, int(threads), precision, int(threads))
    else:
        raise SystemExit(__doc__)
    size = 299 if "xception" in model else 224
    x = numpy.random.default_rng(7).standard_normal((int(batch), 3, size, size)).astype(numpy.float32)
    before = status("VmRSS")
    start = time.perf_counter()
    run, used = load()
    y = run(x)
    first = time.perf_counter() - start
    if not numpy.isfinite(y).all():
        raise SystemExit("the peer's output is not finite")
    steps, end = [], time.perf_counter() + float(seconds)
    while len(steps) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run(x)
        steps.append(time.perf_counter() - start)
    steps.sort()
    print(json.dumps({"name": name, "precision": used, "img_s_best": int(batch) / steps[0], "img_s_median": int(batch) / steps[len(steps) // 2],
                      "memory_mb": status("VmHWM") - before, "load_to_first_s": first, "iterations": len(steps)}))


if __name__ == "__main__":
    main()
