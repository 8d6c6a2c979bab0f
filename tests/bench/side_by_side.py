#!/usr/bin/env python3
"""tandem beside ONNX Runtime and OpenVINO, or (--mode train) PyTorch and Keras on TensorFlow: A B A B in fresh processes, best against best.

Makes its own venv (pinned peers from PyPI) and its own networks (models.py) in a cache folder on the first run. Not part of CI: it needs
the network once, and minutes. Only ratios of interleaved runs mean anything; a busy neighbour makes single runs worthless, so each case is
run --rounds times for each program.

Memory: tandem's whole peak from process start; a peer's peak minus what its process held after its imports.
Start-up: tandem from process start to the first result; a peer from session creation to the first result (its imports not counted).
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import venv

PINNED = ["onnxruntime==1.32.0", "openvino==2026.4.1", "onnx==1.23.2", "numpy==2.4.6"]
PINNED_TORCH = ["torch==2.15.0", "onnx==1.23.2", "numpy==2.4.6"]
PINNED_KERAS = ["tensorflow-cpu==2.21.0", "keras==3.15.1", "numpy==2.4.6"]
MODELS = ["xception", "resnet50", "mobilenetv2"]
HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN_PEERS = {"f32": ["torch", "keras"], "bf16": ["torch", "keras"]}
PEERS = {"f32": ["onnxruntime", "openvino", "openvino-streams"], "bf16": ["openvino", "openvino-streams"]}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tandem", help="the program (default: build/release/bin/tandem); 'none' measures the peers alone",
                   default=os.path.join(HERE, "../../build/release/bin/tandem"))
    p.add_argument("--cache", default=os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "tandem-bench"),
                   help="folder of the venv and the networks (default: %(default)s)")
    p.add_argument("--mode", default="infer", choices=["infer", "train"], help="train: a step of momentum SGD beside PyTorch's and Keras' on TensorFlow")
    p.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    p.add_argument("--batches", nargs="+", type=int, default=[8, 1])
    p.add_argument("--precisions", nargs="+", default=["f32", "bf16x3", "bf16"], choices=["f32", "bf16x3", "bf16"], help="of tandem")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=8, help="pairs for each case (default: %(default)s)")
    p.add_argument("--seconds", type=float, default=4, help="of measuring in each process (default: %(default)s)")
    p.add_argument("--no-streams", action="store_true", help="leave out OpenVINO's variant with one stream a thread")
    p.add_argument("--no-keras", action="store_true", help="leave Keras out of --mode train (TensorFlow takes 2 GB of disk)")
    p.add_argument("--no-devices", action="store_true", help="leave out two one-thread devices against one")
    p.add_argument("--json", help="file for all figures")
    return p.parse_args()


def python_with(cache, name, packages):
    """A venv's python with these packages."""
    os.makedirs(cache, exist_ok=True)
    python = os.path.join(cache, name, "bin", "python")
    stamp = os.path.join(cache, name, "pinned.txt")
    if not (os.path.exists(stamp) and open(stamp).read() == "\n".join(packages)):
        print("installing", *packages, file=sys.stderr)
        venv.create(os.path.join(cache, name), with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        with open(stamp, "w") as f:
            f.write("\n".join(packages))
    return python


def prepare(args):
    """A python for each kind of peer; the models' files are there afterwards."""
    python = python_with(args.cache, "venv", PINNED)
    folder = os.path.join(args.cache, "models")
    missing = [m for m in args.models if not os.path.exists(os.path.join(folder, m + ".onnx"))]
    if missing:
        subprocess.run([python, os.path.join(HERE, "models.py"), folder, *missing], check=True)
    if args.mode == "infer":
        return {kind: python for kind in PEERS["f32"]}
    pythons = {"torch": python_with(args.cache, "venv-train", PINNED_TORCH)}
    if not args.no_keras:
        pythons["keras"] = python_with(args.cache, "venv-keras", PINNED_KERAS)
    return pythons


def last_object(command):
    """The JSON object that the command prints, or None with the reason on stderr."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"  {' '.join(command)}\n    exit {done.returncode}: {done.stderr.strip()[-400:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout[done.stdout.index("{"):])


class Peer:
    def __init__(self, args, python, kind, model, batch, precision):
        self.label = f"{kind} {precision}"
        script = ["peer.py", kind] if args.mode == "infer" else [f"{kind}_peer.py"]
        self.command = [python, os.path.join(HERE, script[0]), *script[1:], model, str(batch), str(args.threads), precision, str(args.seconds)]

    def run(self):
        return last_object(self.command)


class Tandem:
    """One process of `tandem bench`; the number of iterations comes from a first short run."""

    def __init__(self, args, model, batch, precision, devices="cpu", threads=None):
        threads = threads or args.threads
        self.label = f"tandem {precision}" + ("" if devices == "cpu" else f" on {devices}") + ("" if threads == args.threads else f", {threads} thread")
        self.seconds, self.iterations = args.seconds, None
        self.command = [args.tandem, "bench", model, "--batch", str(batch), "--threads", str(threads), "--devices", devices, "--precision", precision,
                        "--mode", args.mode, "--json", "-"] + (["--optimizer", "momentum"] if args.mode == "train" else [])

    def run(self):
        if self.iterations is None:
            probe = last_object(self.command + ["--iters", "3"])
            if probe is None:
                self.iterations = 0
                return None
            self.iterations = max(3, int(self.seconds * 1000 / probe["step_ms_best"]))
        if self.iterations == 0:
            return None
        r = last_object(self.command + ["--iters", str(self.iterations)])
        if r is not None:
            r["memory_mb"] = r["peak_rss_mb"]
        return r


def measure(runners, rounds):
    """label -> list of results; one process of each in turn."""
    results = {r.label: [] for r in runners}
    for i in range(rounds):
        for r in runners:
            one = r.run()
            if one is not None:
                results[r.label].append(one)
            print(f"\r  round {i + 1} of {rounds}: {r.label:<40}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {label: runs for label, runs in results.items() if runs}


def summary(runs):
    return {"best": max(r["img_s_best"] for r in runs), "mid": statistics.median(r["img_s_best"] for r in runs),
            "median": statistics.median(r["img_s_median"] for r in runs), "memory_mb": min(r["memory_mb"] for r in runs),
            "first_s": min(r["load_to_first_s"] for r in runs), "precision": runs[0].get("precision", ""), "runs": len(runs)}


def report(title, results, pairs):
    """pairs: (ours, [theirs...]) labels whose ratios are printed."""
    sums = {label: summary(runs) for label, runs in results.items()}
    print(f"\n{title}\n  {'':40s} {'best':>8s} {'mid':>8s} {'median':>8s} {'MB':>7s} {'first s':>8s}   (images/s: best run, median of the runs' bests, of their medians)")
    for label, s in sums.items():
        used = f"  computes in {s['precision']}" if s["precision"] and not label.endswith(s["precision"]) else ""
        print(f"  {label:40s} {s['best']:8.2f} {s['mid']:8.2f} {s['median']:8.2f} {s['memory_mb']:7.0f} {s['first_s']:8.3f}{used}")
    for ours, theirs in pairs:
        theirs = [t for t in theirs if t in sums]
        if ours not in sums or not theirs:
            continue
        o = sums[ours]
        best, mid = max(sums[t]["best"] for t in theirs), max(sums[t]["mid"] for t in theirs)
        memory, first = min(sums[t]["memory_mb"] for t in theirs), min(sums[t]["first_s"] for t in theirs)
        print(f"  {ours} to the best of ({'; '.join(theirs)}): speed {o['best'] / best:.2f}x best, {o['mid'] / mid:.2f}x mid; "
              f"memory {o['memory_mb'] / memory:.2f}x; start {o['first_s'] / first:.2f}x")
    for label, runs in results.items():
        if label.startswith("tandem"):
            names = implementations(runs[0].get("implementations"))
            print(f"  {label}: {', '.join(names)}")
            slow = [n for n in names if n.startswith(("ref:", "gemm:")) or ":ref" in n or ":gemm:" in n]
            if slow:
                print(f"  {label}: SLOW IMPLEMENTATIONS: {', '.join(slow)}")
    return sums


def implementations(value):
    """Names with counts, from a list of names or an object name -> count (or node -> name)."""
    if isinstance(value, dict):
        if all(isinstance(v, str) for v in value.values()):
            return implementations(list(value.values()))
        return [f"{n} x{c}" for n, c in sorted(value.items())]
    names = [v if isinstance(v, str) else str(v.get("implementation", v)) for v in value or []]
    return [f"{n} x{names.count(n)}" for n in sorted(set(names))]


def cpu():
    with open("/proc/cpuinfo") as f:
        text = f.read()
    model = next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")), platform.machine())
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    has = [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags]
    return f"{model}, {os.cpu_count()} cores, {' '.join(has) or 'no vector extensions known here'}"


def main():
    args = arguments()
    pythons = prepare(args)
    pinned = PINNED if args.mode == "infer" else PINNED_TORCH + ([] if args.no_keras else PINNED_KERAS)
    alone = args.tandem == "none"
    print(f"{cpu()}; {args.threads} threads, {args.rounds} rounds of {args.seconds:g} s; load before: {os.getloadavg()[0]:.1f}")
    print("peers:", ", ".join(pinned))
    everything = {}
    for model in args.models:
        path = os.path.join(args.cache, "models", model + ".onnx")
        for batch in args.batches:
            runners, pairs = [], []
            for kind, names in (PEERS if args.mode == "infer" else TRAIN_PEERS).items():
                wanted = args.precisions if not alone else ["f32", "bf16"]
                ours = [p for p in wanted if (p == "bf16") == (kind == "bf16")]
                if not ours:
                    continue
                names = [n for n in names if n in pythons and not (n.endswith("streams") and (args.no_streams or batch == 1))]
                peers = [Peer(args, pythons[n], n, path, batch, kind) for n in names]
                runners += peers
                if not alone:
                    mine = [Tandem(args, path, batch, p) for p in ours]
                    runners += mine
                    pairs += [(m.label, [p.label for p in peers]) for m in mine]
            key = f"{model} N={batch}"
            results = measure(runners, args.rounds)
            report(key, results, pairs)
            everything[key] = results
        if not alone and not args.no_devices:
            for precision in args.precisions:
                one, two = Tandem(args, path, 8, precision, "cpu", 1), Tandem(args, path, 8, precision, "cpu:2", 2)
                results = measure([one, two], args.rounds)
                report(f"{model} N=8, two one-thread devices against one", results, [(two.label, [one.label])])
                everything[f"{model} devices {precision}"] = results
    print(f"load after: {os.getloadavg()[0]:.1f}")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"cpu": cpu(), "peers": pinned, "threads": args.threads, "results": everything}, f, indent=1)


if __name__ == "__main__":
    main()
