// Classes of prepared images, each asked for by its own thread on one shared Predictor.
//   predict MODEL.onnx IMAGE...      an image is one sample of the network's input: raw float32 in the network's layout
#include <algorithm>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <vector>

#include "tools/tandem.h"

std::ptrdiff_t classify(const tandem::Predictor& predictor, const std::string& file) {
  const tandem::Graph& graph = predictor.model().graph();
  tandem::Shape shape = graph.value(graph.inputs.at(0)).shape;
  shape.at(0) = 1;  // the batch, which the file leaves open
  tandem::Tensor image(tandem::DType::kF32, shape);
  std::ifstream in(file, std::ios::binary);
  if (!in.read(static_cast<char*>(image.mutable_data()), static_cast<std::streamsize>(image.bytes())))
    throw tandem::InvalidData(file + ": expected " + std::to_string(image.bytes()) + " bytes");
  const tandem::Tensor result = predictor.run({image}).at(0);
  const auto scores = result.as<float>();
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

int main(int argc, char** argv) try {
  if (argc < 3) throw tandem::UsageError("usage: predict MODEL.onnx IMAGE...");
  const tandem::Predictor predictor(tandem::Model::from_file(argv[1]), {.devices = tandem::cpu_devices(2)});
  std::vector<std::future<std::ptrdiff_t>> classes;
  for (int i = 2; i < argc; ++i) classes.push_back(std::async(std::launch::async, classify, std::cref(predictor), argv[i]));
  for (int i = 2; i < argc; ++i) std::cout << argv[i] << ": class " << classes[static_cast<std::size_t>(i - 2)].get() << "\n";
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
