#include "tools/preprocess_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/own_rescaling.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::cli {
namespace {

constexpr const char* kRecord = "tandem.preprocess";
constexpr const char* kLabels = "tandem.labels";

// One number for every channel, or one for each.
std::vector<float> channel_values(const std::string& text, int channels) {
  std::vector<float> values;
  for (const std::string& part : split(text)) values.push_back(static_cast<float>(to_number(part, -1e9, 1e9)));
  if (values.size() == 1) values.assign(static_cast<std::size_t>(channels), values[0]);
  return values;
}

struct InputView {
  Shape shape;  // -1: open
  std::optional<io::InputLayout> layout;
  int channels() const { return static_cast<int>(layout == io::InputLayout::kNhwc ? shape[3] : shape[1]); }
  std::int64_t height() const { return layout == io::InputLayout::kNhwc ? shape[1] : shape[2]; }
  std::int64_t width() const { return layout == io::InputLayout::kNhwc ? shape[2] : shape[3]; }
};

bool is_channel_count(std::int64_t n) { return n == 1 || n == 3 || n == 4; }

// NHWC if the first consumer turns it to NCHW or only the last dimension can be channels; NCHW if only dimension 1 can.
InputView view_input(const Graph& graph) {
  if (graph.inputs.empty()) throw InvalidModel("the network has no input");
  const ValueId id = graph.inputs[0];
  const Value& v = graph.value(id);
  if (!v.shape_known || v.shape.size() != 4) {
    throw InvalidModel(
        fmt::format("the input \"{}\" is no batch of images: its shape is {}", v.name, v.shape_known ? to_string(v.shape) : "not known"));
  }
  InputView view{v.shape, std::nullopt};
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty() || node.inputs[0] != id) continue;
    if (node.op == "Transpose" && node.attributes.integers("perm", {}) == std::vector<std::int64_t>{0, 3, 1, 2}) view.layout = io::InputLayout::kNhwc;
    break;
  }
  const bool first = is_channel_count(v.shape[1]), last = is_channel_count(v.shape[3]);
  if (!view.layout && first != last) view.layout = first ? io::InputLayout::kNchw : io::InputLayout::kNhwc;
  return view;
}

void set_size(io::Preprocess& p, const std::string& text) {
  const std::size_t x = text.find('x');
  p.height = static_cast<int>(to_integer(text.substr(0, x), 1, 16384));
  p.width = x == std::string::npos ? p.height : static_cast<int>(to_integer(text.substr(x + 1), 1, 16384));
}

void set_pad(io::Preprocess& p, const std::string& text) {
  const auto parts = split(text);
  if (parts.size() != 1 && parts.size() != 4) throw UsageError(fmt::format("expected N or TOP,LEFT,BOTTOM,RIGHT, found \"{}\"", text));
  for (std::size_t i = 0; i < 4; ++i) p.pad[i] = static_cast<int>(to_integer(parts[parts.size() == 1 ? 0 : i], 0, 16384));
}

// Sets what the option says; errors name it.
template <class Set>
void take(const char* option, const std::string& text, Set&& set) {
  if (text.empty()) return;
  try {
    set(text);
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("option {}: {}", option, e.message()));
  }
}

void set_channels(io::Preprocess& p, const std::string& text) {
  p.channels = io::channels_of(text);
  const auto n = static_cast<std::size_t>(p.channel_count());
  if (p.mean.size() != n) p.mean.resize(n, p.mean.empty() ? 0.0f : p.mean[0]);
  if (p.std.size() != n) p.std.resize(n, p.std.empty() ? 1.0f : p.std[0]);
}

void lay_over(io::Preprocess& p, const PreprocessFlags& f) {
  take("--image-size", f.image_size, [&](auto& text) { set_size(p, text); });
  take("--resize", f.resize, [&](auto& text) { p.resize = io::resize_kind(text); });
  take("--fit", f.fit, [&](auto& text) { p.fit = io::fit_of(text); });
  if (f.crop_pct > 0) {
    if (!f.fit.empty() && p.fit != io::Fit::kCrop) throw UsageError(fmt::format("--crop-pct goes with --fit crop, not with --fit {}", f.fit));
    p.crop_pct = f.crop_pct;
    p.fit = io::Fit::kCrop;
  }
  take("--pad", f.pad, [&](auto& text) { set_pad(p, text); });
  take("--preprocess", f.family, [&](auto& text) { io::set_family(p, text); });
  take("--channels", f.channels, [&](auto& text) { set_channels(p, text); });
  take("--mean", f.mean, [&](auto& text) { p.mean = channel_values(text, p.channel_count()); });
  take("--std", f.std, [&](auto& text) { p.std = channel_values(text, p.channel_count()); });
  take("--input-layout", f.input_layout, [&](auto& text) { p.layout = io::input_layout_of(text); });
}

// Size, layout and channels that the graph itself shows.
void take_from_graph(io::Preprocess& p, const InputView& view, const PreprocessFlags& f) {
  if (view.layout)
    p.layout = *view.layout;
  else if (f.input_layout.empty()) {
    throw UsageError(
        fmt::format("the input's shape {} does not tell where the channels are: give --input-layout nchw or nhwc", to_string(view.shape)));
  } else
    p.layout = io::input_layout_of(f.input_layout);
  InputView known = view;
  known.layout = p.layout;
  if (known.height() > 0) p.height = static_cast<int>(known.height());
  if (known.width() > 0) p.width = static_cast<int>(known.width());
  if (known.channels() == 1 && f.channels.empty()) {
    p.channels = io::Channels::kGray;
    p.mean = {0};
    p.std = {1};
  }
  if ((p.height == 0 || p.width == 0) && f.image_size.empty()) throw UsageError("the model leaves the image size open: give --image-size HxW");
}

}  // namespace

bool PreprocessFlags::any() const {
  for (const std::string* s : {&image_size, &resize, &fit, &family, &pad, &mean, &std, &channels, &input_layout}) {
    if (!s->empty()) return true;
  }
  return crop_pct > 0;
}

void declare_preprocess_flags(OptionSet& o, PreprocessFlags& f) {
  o.group("Preprocessing (over the model's own record)");
  o.text("--image-size", "H[xW]", f.image_size, "size of the network's input");
  o.text("--resize", "KIND", f.resize, "pil-bicubic, pil-bilinear, tf-bilinear, cv-linear, cv-area or nearest");
  o.text("--fit", "HOW", f.fit, "squash, crop (short side, then the middle) or pad (long side, then a border)");
  o.number("--crop-pct", "F", f.crop_pct, 0.01, 1, "with --fit crop: part of the short side that stays").default_text = "";
  o.text("--pad", "N|T,L,B,R", f.pad, "border around the resized image, in pixels");
  o.text("--preprocess", "FAMILY", f.family, "tf (x / 127.5 - 1), torch (ImageNet mean and deviation), caffe (BGR, means taken out) or none");
  o.text("--mean", "LIST", f.mean, "taken out of the pixels (0 to 255), one number or one for each channel");
  o.text("--std", "LIST", f.std, "the pixels are then divided by it");
  o.text("--channels", "ORDER", f.channels, "rgb, bgr or gray");
  o.text("--input-layout", "LAYOUT", f.input_layout, "nchw or nhwc, where the model does not show it");
  o.text("--labels", "FILE", f.labels, "class names in output order: a line each, a JSON list or ImageNet's class index");
  o.choice("--class-order", {"plain", "natural"}, f.class_order, "order of class folders: by bytes, or class2 before class10");
}

io::Preprocess resolve_preprocess(const Graph& graph, const PreprocessFlags& flags, const Console& console) {
  const InputView view = view_input(graph);
  const auto record = graph.metadata.find(kRecord);
  io::Preprocess p;
  std::string source;
  if (record != graph.metadata.end()) {
    p = with_context([] { return std::string("the model's metadata tandem.preprocess"); }, [&] { return io::parse_preprocess(record->second); });
    source = flags.any() ? "the model's record and the options given" : "the model's record";
  } else {
    const bool given = !flags.family.empty() || (!flags.mean.empty() && !flags.std.empty());
    const std::string scales = given ? "" : models::own_rescaling(graph);
    if (!given && scales.empty()) {
      throw UsageError(
          "the model does not say how pixels become numbers: give --preprocess tf (Keras Xception, Inception, MobileNet), torch (torchvision, timm), "
          "caffe (Keras VGG, ResNet50) or none (the network scales by itself), or --mean and --std");
    }
    take_from_graph(p, view, flags);
    source = "the options and the graph";
    if (!scales.empty()) source = fmt::format("the graph, which scales pixels by itself ({})", quote(scales));
  }
  lay_over(p, flags);
  io::check(p);
  batch_shape(graph, p, 1);
  console.info(fmt::format("preprocessing by {}: {}", source, io::to_json(p)));
  return p;
}

PreprocessFlags flags_of(const io::Preprocess& p, const PreprocessFlags& given) {
  const auto record = nlohmann::json::parse(io::to_json(p));  // it has the words
  PreprocessFlags f = given;
  f.image_size = fmt::format("{}x{}", p.height, p.width);
  f.resize = record.at("resize");
  f.fit = record.at("fit");
  f.crop_pct = p.fit == io::Fit::kCrop ? p.crop_pct : 0;
  f.pad = fmt::format("{}", fmt::join(p.pad, ","));
  f.channels = record.at("channels");
  f.mean = fmt::format("{}", fmt::join(p.mean, ","));
  f.std = fmt::format("{}", fmt::join(p.std, ","));
  f.input_layout = record.at("layout");
  f.family.clear();
  for (const char* family : {"tf", "torch", "caffe", "none"}) {
    io::Preprocess same = p;
    io::set_family(same, family);
    if (same == p) f.family = family;
  }
  return f;
}

std::vector<std::string> resolve_labels(const Graph& graph, const PreprocessFlags& flags, std::int64_t classes) {
  std::vector<std::string> labels;
  const auto record = graph.metadata.find(kLabels);
  if (!flags.labels.empty())
    labels = io::read_labels(flags.labels);
  else if (record != graph.metadata.end())
    labels = io::parse_labels(record->second);
  if (!labels.empty() && classes > 0 && static_cast<std::int64_t>(labels.size()) != classes) {
    throw InvalidData(fmt::format("there are {} labels{}, the network has {} outputs", labels.size(),
                                  flags.labels.empty() ? "" : " in \"" + flags.labels + "\"", classes));
  }
  return labels;
}

Shape batch_shape(const Graph& graph, const io::Preprocess& p, std::int64_t batch) {
  const Value& v = graph.value(graph.inputs[0]);
  const std::int64_t c = p.channel_count();
  Shape shape = p.layout == io::InputLayout::kNhwc ? Shape{batch, p.height, p.width, c} : Shape{batch, c, p.height, p.width};
  for (std::size_t d = 1; d < 4; ++d) {
    if (v.shape.size() == 4 && v.shape[d] >= 0 && v.shape[d] != shape[d]) {
      throw UsageError(fmt::format("preprocessing makes images of shape {}, the network's input \"{}\" has shape {} (-1: any)",
                                   to_string(std::span(shape).subspan(1)), v.name, to_string(std::span(v.shape).subspan(1))));
    }
  }
  return shape;
}

}  // namespace tandem::cli
