"""What tests/peers/tensorboard.sh checks; run by it.

A run of two epochs goes on for three more, so that there are two event files. TensorBoard's own reader (which checks the CRC of every record) finds in
them the columns of summary.csv, each value once, at its epoch, as float32; and it finds nothing else. A file whose last record is cut still gives
what stands before.
"""
import argparse
import csv
import pathlib
import subprocess

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NETWORK = "tests/data/training/net_a_softmax.onnx"  # 16x16x3, 5 classes


def train(tandem, work, *more):
    subprocess.run([tandem, "train", NETWORK, str(work / "x.npy"), "--preprocess", "none", "--batch-size", "8", "--val-split", "0.25",
                    "--optimizer", "adam", "--schedule", "cosine", *more], check=True)


def scalars_of(path):
    events = EventAccumulator(str(path), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()
    assert all(not found for kind, found in tags.items() if kind != "scalars"), tags
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in tags["scalars"]}, events.Scalars("epoch_loss")


def compare(rows, scalars, where):
    names = [name for name in rows[0] if name != "epoch"]
    assert sorted(scalars) == sorted("epoch_" + name for name in names), (where, sorted(scalars), names)
    for name in names:
        found = scalars["epoch_" + name]
        assert [step for step, _ in found] == [int(row["epoch"]) for row in rows], (where, name, found)
        for (_, value), row in zip(found, rows):
            assert value == float(np.float32(float(row[name]))), (where, name, value, row[name])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    args = parser.parse_args()
    random = np.random.default_rng(1)
    np.save(args.work / "x.npy", random.normal(size=(60, 16, 16, 3)).astype(np.float32))
    np.save(args.work / "x_y.npy", (np.arange(60) % 5).astype(np.int64))

    run = args.work / "run"
    train(args.tandem, args.work, "--epochs", "2", "--output", str(run))
    train(args.tandem, args.work, "--epochs", "5", "--resume", str(run))
    files = sorted(run.glob("events.out.tfevents.*"))
    assert len(files) == 2, files
    rows = list(csv.DictReader((run / "summary.csv").open()))
    assert len(rows) == 5 and len(rows[0]) == 6, rows
    scalars, losses = scalars_of(run)
    compare(rows, scalars, "folder")
    times = [e.wall_time for e in losses]
    assert times == sorted(times) and times[0] > 1.6e9, times

    counts = []
    for file in files:
        own, losses = scalars_of(file)
        counts.append(len(losses))
        compare([row for row in rows if int(row["epoch"]) in [e.step for e in losses]], own, file.name)
    assert sorted(counts) == [2, 3], counts

    cut = args.work / "cut"
    cut.mkdir()
    (cut / files[0].name).write_bytes(files[0].read_bytes()[:-5])
    own, losses = scalars_of(cut)
    assert len(losses) == counts[0] - 1, losses
    print(f"tensorboard.sh: {sum(len(v) for v in scalars.values())} scalars of {len(rows)} epochs in {len(files)} files, all as in summary.csv")


if __name__ == "__main__":
    main()
