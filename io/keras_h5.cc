#include "io/keras_h5.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/file_handle.h"
#include "io/guarded.h"
#include "io/hdf5.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"
#include "runtime/base/sha256.h"

namespace tandem::io {
namespace {

constexpr std::size_t kMostNames = 64512;  // Keras' HDF5_OBJECT_HEADER_LIMIT, bytes
constexpr std::size_t kMostWeights = 1 << 20;
constexpr const char* kTopLevel = "top_level_model_weights";
constexpr const char* kExtras = "tandem";
constexpr const char* kTexts[] = {"tandem.preprocess", "tandem.labels"};

// A weights file belongs to the model: what is wrong with it is InvalidModel.
template <class F>
auto about_model(F&& f) {
  try {
    return f();
  } catch (const InvalidData& e) {
    throw InvalidModel(e.message());
  }
}

// ---- reading

bool has_names(const H5Node& group, const std::string& name) { return group.has_attribute(name) || group.has_attribute(name + "0"); }

// A list that may be split over name0, name1, ...
std::vector<std::string> names_of(const H5Node& group, const std::string& name) {
  if (group.has_attribute(name)) return group.strings(name);
  std::vector<std::string> all;
  for (int i = 0; group.has_attribute(name + std::to_string(i)); ++i) {
    for (std::string& s : group.strings(name + std::to_string(i))) all.push_back(std::move(s));
    if (all.size() > kMostWeights) break;
  }
  return all;
}

[[noreturn]] void refuse_layout(const std::string& file, const H5Node& root) {
  if (root.find("layers") || root.find("_layer_checkpoint_dependencies") || root.find("vars")) {
    throw Unsupported(fmt::format(
        "{} is in the layout of Keras 3 (.weights.h5), which is not read yet; in Keras, load it into its model and write model.save(\"x.h5\")",
        file));
  }
  if (root.has_attribute("nb_layers")) throw Unsupported(fmt::format("{} was written by Keras 0.x; load and save it with Keras 1 or newer", file));
  throw InvalidData(fmt::format("{} holds no Keras weights: the root has neither the attribute layer_names nor a group model_weights", file));
}

[[noreturn]] void refuse_content(const std::string& path) {
  const FileHandle file(path);
  constexpr std::string_view kZip("PK\x03\x04", 4);
  std::string head(kZip.size(), '\0');
  if (file.size() >= static_cast<std::int64_t>(head.size())) file.read_at(0, head.data(), head.size());
  if (head == kZip) {
    throw Unsupported(
        fmt::format("{} is a Keras 3 archive (.keras), which is not read yet; in Keras, write load_model(...).save(\"x.h5\")", quote_whole(path)));
  }
  throw InvalidData(fmt::format("{} is no HDF5 file ({} bytes without its signature)", quote_whole(path), file.size()));
}

Layer read_layer(const std::string& file, const H5Node& root, const std::string& name) {
  const auto group = root.find(name);
  if (!group || !group->is_group()) throw InvalidData(fmt::format("{}: layer \"{}\" is listed and has no group", file, name));
  Layer layer{name, {}};
  if (!has_names(*group, "weight_names")) throw InvalidData(fmt::format("{}: layer \"{}\" has no attribute weight_names", file, name));
  for (const std::string& weight : names_of(*group, "weight_names")) {
    const auto node = group->find(weight);
    if (!node || !node->is_dataset()) throw InvalidData(fmt::format("{}: weight \"{}\" of layer \"{}\" is listed and missing", file, weight, name));
    layer.weights.push_back({weight, node->dtype(), node->shape(), [n = *node] { return about_model([&] { return n.read(); }); }});
  }
  return layer;
}

// ---- writing

void write_names(const H5Node& group, const std::string& name, const std::vector<std::string>& names) {
  const auto parts = split_names(names);
  if (parts.size() <= 1) return group.write_list(name, names);
  for (std::size_t i = 0; i < parts.size(); ++i) group.write_list(name + std::to_string(i), parts[i]);
}

void hash(Sha256& sum, const LayerWeight& w, const Tensor& t) {
  sum.update(w.name);
  sum.update(std::string_view("\0", 1));
  sum.update(name_of(t.dtype()));
  sum.update(std::string_view("\0", 1));
  std::string dims;
  for (const std::int64_t d : t.shape()) dims += fmt::format("{}{}", dims.empty() ? "" : ",", d);
  sum.update(dims);
  sum.update(std::string_view("\0", 1));
  sum.update(t.data(), t.bytes());
}

KerasWeights read_all(const std::string& path) {
  const std::string name = quote_whole(path);
  if (!is_hdf5(path)) refuse_content(path);
  const H5File file(path);
  H5Node root = file.root();
  KerasWeights out;
  out.sha256 = root.text("tandem_sha256");
  for (const char* key : kTexts) {
    if (auto text = root.text(key)) out.texts.emplace(key, std::move(*text));
  }
  if (!has_names(root, "layer_names")) {
    const auto inner = root.find("model_weights");
    if (!inner || !inner->is_group() || !has_names(*inner, "layer_names")) refuse_layout(name, root);
    root = *inner;
  }
  out.keras_version = root.text("keras_version").value_or("");
  out.backend = root.text("backend").value_or("");
  std::vector<std::string> names = names_of(root, "layer_names");
  std::size_t weights = 0;
  for (const std::string& layer : names) {
    out.layers.push_back(read_layer(name, root, layer));
    weights += out.layers.back().weights.size();
    if (weights > kMostWeights) throw InvalidData(fmt::format("{} lists more than {} weights", name, kMostWeights));
  }
  if (const auto top = root.find(kTopLevel); top && top->is_group() && has_names(*top, "weight_names")) {
    Layer layer = read_layer(name, root, kTopLevel);
    if (!layer.weights.empty()) out.layers.push_back(std::move(layer));
  }
  if (const auto extras = root.find(kExtras); extras && extras->is_group() && has_names(*extras, "weight_names"))
    out.extras = read_layer(name, root, kExtras).weights;
  return out;
}

// libhdf5 1.10 can be crashed and kept busy by damaged files: everything is read once in a child process first.
void try_all(const std::string& path) {
  constexpr std::size_t kMemory = std::size_t{256} << 20, kBytesPerSecond = std::size_t{50} << 20;
  const auto bytes = static_cast<std::size_t>(FileHandle(path).size());
  run_guarded(quote_whole(path), 4 + static_cast<int>(std::min<std::size_t>(bytes / kBytesPerSecond, 3600)), kMemory + 2 * bytes, [&] {
    const KerasWeights weights = read_all(path);
    for (const Layer& layer : weights.layers) {
      for (const LayerWeight& w : layer.weights) w.read();
    }
    for (const LayerWeight& w : weights.extras) w.read();
  });
}

}  // namespace

KerasWeights read_keras_h5(const std::string& path) {
  return about_model([&] {
    try_all(path);
    return read_all(path);
  });
}

void verify_digest(const KerasWeights& weights, const std::string& path) {
  if (!weights.sha256) return;
  const std::string found = weights_digest(weights.layers, weights.extras);
  if (found != *weights.sha256) {
    throw InvalidModel(fmt::format("{} is damaged: its weights have SHA-256 {}, recorded is {}", quote_whole(path), found, *weights.sha256));
  }
}

std::string weights_digest(const std::vector<Layer>& layers, const std::vector<LayerWeight>& extras) {
  Sha256 sum;
  for (const Layer& layer : layers) {
    for (const LayerWeight& w : layer.weights) hash(sum, w, w.read());
  }
  for (const LayerWeight& w : extras) hash(sum, w, w.read());
  return sum.hex();
}

std::vector<std::vector<std::string>> split_names(const std::vector<std::string>& names) {
  std::size_t width = 1;
  for (const std::string& s : names) width = std::max(width, s.size());
  if (width > kMostNames) throw InvalidData(fmt::format("a name of {} bytes is longer than the {} that HDF5 attributes hold", width, kMostNames));
  const std::size_t n = names.size(), each = kMostNames / width, parts = n == 0 ? 1 : (n + each - 1) / each;
  std::vector<std::vector<std::string>> out;
  for (std::size_t i = 0, at = 0; i < parts; ++i) {
    const std::size_t count = n / parts + (i < n % parts ? 1 : 0);
    out.emplace_back(names.begin() + static_cast<std::ptrdiff_t>(at), names.begin() + static_cast<std::ptrdiff_t>(at + count));
    at += count;
  }
  return out;
}

std::vector<std::byte> keras_h5_bytes(const std::vector<Layer>& layers, const std::map<std::string, std::string>& texts,
                                      const std::vector<LayerWeight>& extras) {
  const H5Image image;
  const H5Node& root = image.root();
  std::vector<std::string> names;
  std::map<std::string, const Layer*> sorted;  // groups are made in this order, so that a layer "a" exists before "a/b"
  for (const Layer& layer : layers) {
    names.push_back(layer.name);
    if (layer.name.empty() || !sorted.emplace(layer.name, &layer).second) {
      throw InvalidData(fmt::format("layer names must differ and not be empty; \"{}\" is there twice or empty", layer.name));
    }
  }
  write_names(root, "layer_names", names);
  root.write_text("backend", "tensorflow");
  root.write_text("keras_version", "2.15.0");
  for (const auto& [name, layer] : sorted) {
    const H5Node group = root.make_group(name);
    std::vector<std::string> weights;
    for (const LayerWeight& w : layer->weights) weights.push_back(w.name);
    write_names(group, "weight_names", weights);
    for (const LayerWeight& w : layer->weights) group.write(w.name, w.read());
  }
  root.make_group(kTopLevel).write_list("weight_names", {});
  if (!extras.empty()) {
    const H5Node group = root.make_group(kExtras);
    std::vector<std::string> list;
    for (const LayerWeight& w : extras) list.push_back(w.name);
    write_names(group, "weight_names", list);
    for (const LayerWeight& w : extras) group.write(w.name, w.read());
  }
  root.write_text("tandem_sha256", weights_digest(layers, extras));
  for (const auto& [key, text] : texts) root.write_long_text(key, text);
  return image.bytes();
}

void write_keras_h5(const std::string& path, const std::vector<Layer>& layers, const std::map<std::string, std::string>& texts) {
  save_file(path, keras_h5_bytes(layers, texts));
}

}  // namespace tandem::io
