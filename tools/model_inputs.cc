#include "tools/model_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "runtime/base/error.h"

namespace tandem::cli {
namespace {

constexpr std::int64_t kMaxDimension = 1 << 30;

// The graph's own value says what the importer found possible; the file's declaration is kept for messages.
const Value& input_value(const Graph& graph, std::size_t i) { return graph.value(graph.inputs[i]); }

Shape parse_shape(const std::string& text) {
  Shape shape;
  for (const std::string& part : split(text, "x,")) shape.push_back(to_integer(part, 0, kMaxDimension));
  return shape;
}

// The shape given for an input by name, or nothing.
bool given_shape(const std::string& name, const ShapeFlags& flags, Shape& shape) {
  for (const std::string& text : flags.shapes) {
    if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != '=') continue;
    try {
      shape = parse_shape(text.substr(name.size() + 1));
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("option --shape {}: {}", text, e.message()));
    }
    return true;
  }
  return false;
}

bool is_channels_last(const Shape& shape) { return shape.size() == 4 && (shape[3] == 1 || shape[3] == 3 || shape[3] == 4) && shape[1] != 3; }

// Dimensions of an image tensor that --size fills.
bool is_spatial(const Shape& shape, std::size_t d) { return shape.size() == 4 && (is_channels_last(shape) ? d == 1 || d == 2 : d >= 2); }

// Still -1: open. Nothing is known of an input without a shape.
std::optional<Shape> filled(const Value& input, const ShapeFlags& flags) {
  if (!input.shape_known) return std::nullopt;
  Shape shape = input.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d == 0 && flags.batch > 0 && shape[0] >= 0 && shape[0] != flags.batch && shape.size() > 1) {
      throw UsageError(fmt::format("the model fixes dimension 0 of input \"{}\" at {}: --batch {} does not fit", input.name, shape[0], flags.batch));
    }
    if (shape[d] >= 0) continue;
    if (d == 0)
      shape[d] = flags.batch > 0 ? flags.batch : 1;
    else if (is_spatial(shape, d) && flags.size > 0)
      shape[d] = flags.size;
  }
  return shape;
}

// Throws UsageError naming the dimension that is open.
Shape closed(const Value& input, const std::optional<Shape>& shape) {
  if (!shape) throw UsageError(fmt::format("the model leaves the shape of input \"{0}\" open: give --shape \"{0}=1x3x224x224\"", input.name));
  const auto open = std::find_if(shape->begin(), shape->end(), [](std::int64_t d) { return d < 0; });
  if (open == shape->end()) return *shape;
  const auto d = static_cast<std::size_t>(open - shape->begin());
  throw UsageError(fmt::format("the model leaves dimension {} of input \"{}\" {} open: give {}--shape \"{}=...\"", d, input.name,
                               to_string(input.shape), is_spatial(*shape, d) ? "--size or " : "", input.name));
}

void check_names(const Graph& graph, const ShapeFlags& flags) {
  for (const std::string& text : flags.shapes) {
    bool found = false;
    std::string names;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const std::string& name = input_value(graph, i).name;
      found = found || text.starts_with(name + "=");
      names += (i ? ", " : "") + name;
    }
    if (!found) throw UsageError(fmt::format("option --shape: expected NAME=DIMENSIONS with a name of {}, found \"{}\"", names, text));
  }
}

}  // namespace

void declare_shapes(OptionSet& o, ShapeFlags& flags) {
  o.integer("--batch-size,--batch", "N", flags.batch, 1, 1 << 20,
            "images at a time, over all devices together (default: what the model fixes, else 1)")
      .default_text = "";
  o.integer("--size", "S", flags.size, 1, 1 << 16, "height and width, where the model leaves them open").default_text = "";
  o.texts("--shape", "NAME=DIMS", flags.shapes, "shape of one input, as 1x3x224x224; may be repeated");
}

std::vector<Shape> concrete_shapes(const Graph& graph, const ShapeFlags& flags) {
  check_names(graph, flags);
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = input_value(graph, i);
    Shape shape;
    shapes.push_back(given_shape(input.name, flags, shape) ? shape : closed(input, filled(input, flags)));
    elements(shapes.back());  // a product that fits
  }
  return shapes;
}

std::optional<std::vector<Shape>> known_shapes(const Graph& graph, const ShapeFlags& flags) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = input_value(graph, i);
    Shape shape;
    if (given_shape(input.name, flags, shape)) continue;
    const auto all = filled(input, flags);
    if (!all || std::any_of(all->begin(), all->end(), [](std::int64_t d) { return d < 0; })) return std::nullopt;
  }
  return concrete_shapes(graph, flags);
}

bool has_dynamic_batch(const Graph& graph) {
  if (graph.inputs.empty()) return false;
  const Value& input = input_value(graph, 0);
  return !input.shape_known || (!input.shape.empty() && input.shape[0] < 0);
}

std::vector<Tensor> random_inputs(const Graph& graph, const std::vector<Shape>& shapes, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  std::mt19937_64 engine(seed);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Tensor tensor(input_value(graph, i).dtype, shapes[i]);
    if (tensor.dtype() == DType::kF32) {
      for (float& v : tensor.as_mutable<float>()) v = static_cast<float>(engine() >> 40) * 0x1p-24f;
    } else if (tensor.dtype() == DType::kF64) {
      for (double& v : tensor.as_mutable<double>()) v = static_cast<double>(engine() >> 11) * 0x1p-53;
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace tandem::cli
