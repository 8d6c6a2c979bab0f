#!/usr/bin/env bash
# Installs what is missing, builds, and does the main job on real images: an exported network gets its preprocessing record, predicts a
# folder and is evaluated, is fine-tuned to new classes on two devices, and its weights go to Keras' .h5. Results lie in the folder given
# (default: build/demo).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/demo}

tools/setup.sh
cmake --preset release >/dev/null || cmake --fresh --preset release
echo "building (a few minutes the first time)"
cmake --build --preset release --target tandem_program demo_images -- --quiet
tandem=build/release/bin/tandem
started=$SECONDS
mkdir -p "$out"

say() { printf '\n== %s\n' "$*"; }
run() {
  echo "\$ tandem $*"
  "$tandem" "$@"
}

say "Fashion-MNIST as 64x64 PNG folders"
rm -rf "$out/images" "$out/new" "$out/run"
build/release/bin/demo_images /usr/share/datasets/fashion-mnist "$out"
printf '%s\n' T-shirt Trouser Pullover Dress Coat >"$out/labels.txt"

say "The exported network (a narrow Xception) gets the record of its preprocessing and labels"
run convert models/xception_mini/trainable.onnx -o "$out/model.onnx" --preprocess tf --image-size 64 --resize nearest --fit squash --labels "$out/labels.txt"

say "What is in it"
# Not into a pipe that head closes early: the program would die of it.
run inspect "$out/model.onnx" >"$out/inspect.txt"
head -n 25 "$out/inspect.txt"

say "A folder predicted on two devices"
run predict "$out/model.onnx" "$out/images/Dress" --out "$out/dress.csv" --topk 3 --devices cpu:2
head -n 4 "$out/dress.csv"

say "Accuracy on all images"
run evaluate "$out/model.onnx" "$out/images" --devices cpu:2

say "Fine-tuned to five new classes on two devices: sandals, shirts, sneakers, bags, boots"
run train "$out/model.onnx" "$out/new" --epochs 2 --optimizer momentum --lr 0.01 --devices cpu:2 --output "$out/run"

say "What it has learnt"
run evaluate "$out/run/model.onnx" "$out/new/val" --devices cpu:2
run predict "$out/run/model.onnx" "$out/new/val/Bag" --out "$out/bags.csv" --topk 3
head -n 3 "$out/bags.csv"

say "The weights for Keras"
run weights show "$out/run/weights.h5" | tail -n 3

say "Next, with a network of your own: build/release/bin/tandem inspect NET.onnx, then train and predict as above (README.md)"

say "Done in $((SECONDS - started)) s after the build. In $out:"
echo "  images/        class folders of PNG files          model.onnx        the network with its record"
echo "  dress.csv      path, the three best classes        run/model.onnx    the network of the new classes"
echo "  new/           what it learnt from                 run/weights.h5    for Keras: model.load_weights(...)"
echo "  inspect.txt    the whole table of layers           run/summary.csv   loss and accuracy of each epoch"
[ ! -e "$out/run/report.html" ] || echo "  run/report.html: curves, confusion matrix, worst mistakes; open it in a browser"
