// Truncated, hostile and absurd files through the real program: refused with the documented exit code, in little time and memory.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "importer/wire.h"
#include "tests/support/files.h"
#include "tests/support/hostile.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasured = false;  // the figures are those of a release build
#else
constexpr bool kMeasured = true;
#endif
constexpr double kMostSeconds = 5;
constexpr long kMostKilobytes = 512L * 1024;

std::string data(const std::string& name) { return std::string(TANDEM_SOURCE_DIR "/tests/data/") + name; }

Finished refused(const std::string& what, const std::vector<std::string>& words, int code) {
  const Finished r = run_tandem(words, {.timeout_seconds = 60});
  EXPECT_EQ(r.code, code) << what << (r.timed_out ? ": no end" : "") << ", signal " << r.signal << ": " << r.err.substr(0, 400);
  EXPECT_TRUE(r.err.starts_with("tandem: error: ") || code == 0) << what << ": " << r.err.substr(0, 400);
  EXPECT_LE(std::count(r.err.begin(), r.err.end(), '\n'), 5) << what << ": " << r.err.substr(0, 400);
  if (kMeasured) {
    EXPECT_LT(r.seconds, kMostSeconds) << what;
    EXPECT_LT(r.peak_kilobytes, kMostKilobytes) << what;
  }
  return r;
}

class Hostile : public testing::Test {
 protected:
  void model(const std::string& what, const std::string& bytes) { refused(what, {"inspect", folder_.write("m.onnx", bytes)}, 3); }
  void model(const std::string& what, const OnnxModel& m) { model(what, model_bytes(m)); }
  // Predicted with --strict, so that one damaged file of one is exit 4.
  void image(const std::string& what, const std::string& bytes) {
    const std::string file = folder_.write("i.img", bytes);
    fs::remove(folder_ / "rows.csv.state");
    const Finished r =
        run_tandem({"predict", trained_network(), file, "--out", folder_ / "rows.csv", "--strict", "--preprocess", "tf", "--threads", "2"});
    EXPECT_EQ(r.code, 4) << what << ": " << r.err;
    EXPECT_NE(r.err.find("0 images, 1 failed"), std::string::npos) << what << ": " << r.err;
    if (kMeasured) {
      EXPECT_LT(r.seconds, kMostSeconds) << what;
      EXPECT_LT(r.peak_kilobytes, kMostKilobytes) << what;
    }
  }
  void set(const std::string& what, const std::string& name, const std::string& bytes) {
    refused(what, {"evaluate", trained_network(), folder_.write(name, bytes), "--preprocess", "tf", "-q"}, 4);
  }
  void weights(const std::string& what, const std::string& bytes) { refused(what, {"weights", "show", folder_.write("w.h5", bytes)}, 3); }

  TemporaryFolder folder_;
};

OnnxModel node(const std::string& op, const std::vector<Ints>& shapes, const std::vector<std::string>& attributes, std::int64_t opset = 20) {
  return one_node(op, opset, shapes, attributes);
}

// One node on "x0" and the given constants behind it.
OnnxModel steered(const std::string& op, const Ints& shape, const std::vector<std::pair<Ints, Ints>>& constants,
                  const std::vector<std::string>& attributes = {}) {
  OnnxModel m = node(op, shape.empty() ? std::vector<Ints>{} : std::vector<Ints>{shape}, attributes);
  if (shape.empty()) m.graph.inputs = {value_bytes("unused", 1, {1})};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    m.graph.nodes[0].inputs.push_back("c" + std::to_string(i));
    m.graph.initializers.push_back(int64_tensor("c" + std::to_string(i), constants[i].first, constants[i].second));
  }
  return m;
}

std::string npy(const std::string& shape, const std::string& bytes) {
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(dict.size()) + '\0' + dict + bytes;
}

TEST_F(Hostile, TruncatedModels) {
  const std::string whole = read_text(trained_network());
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{100}, whole.size() / 100, whole.size() / 10,
                                 whole.size() / 4, whole.size() / 2, whole.size() * 3 / 4, whole.size() * 99 / 100, whole.size() - 1})
    model(std::to_string(kept) + " bytes of a model", whole.substr(0, kept));
}

TEST_F(Hostile, HugeDimensions) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 33;
  OnnxModel m = node("Relu", {{2}}, {});
  m.graph.initializers = {raw_tensor("w", 1, {kHuge, kHuge}, "1234")};
  model("an initialiser of 2^66 elements", m);
  m.graph.initializers = {raw_tensor("w", 1, {std::int64_t{1} << 40}, "1234")};
  model("an initialiser of 2^40 elements", m);
  m.graph.initializers = {raw_tensor("w", 1, {-1}, "1234")};
  model("an initialiser of -1 elements", m);
  model("an input of 2^66 elements", node("Relu", {{kHuge, kHuge}}, {}));
  // These are well formed, and no network.
  folder_.write("x.npy", npy("(1,)", "1234"));
  for (const OnnxModel& large :
       {steered("ConstantOfShape", {}, {{{2}, {1 << 20, 1 << 20}}}), steered("Range", {}, {{{}, {0}}, {{}, {std::int64_t{1} << 50}}, {{}, {1}}}),
        steered("Expand", {1}, {{{2}, {1 << 20, 1 << 20}}})}) {
    const std::string input = large.graph.nodes[0].op == "Expand" ? "x0=" : "unused=";
    refused("a huge " + large.graph.nodes[0].op,
            {"run", folder_.write("m.onnx", model_bytes(large)), "--input", input + (folder_ / "x.npy"), "--output", folder_ / "out", "-q"}, 3);
  }
  model("a range of step 0", steered("Range", {}, {{{}, {0}}, {{}, {5}}, {{}, {0}}}));
  model("tiles", steered("Tile", {2}, {{{1}, {std::int64_t{1} << 62}}}));
  model("an expanded one", steered("Expand", {1}, {{{2}, {kHuge, kHuge}}}));
  model("wide pads", steered("Pad", {2}, {{{2}, {INT64_MAX, INT64_MAX}}}));
  model("a reshape", steered("Reshape", {4}, {{{2}, {INT64_MAX, -1}}}));
  model("a split", node("Split", {{4}}, {int_attribute("num_outputs", INT64_MAX)}));
}

TEST_F(Hostile, AbsurdAttributes) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  for (const auto& [what, attribute] :
       std::vector<std::pair<const char*, std::string>>{{"kernel 0", ints_attribute("kernel_shape", {0, 0})},
                                                        {"kernel 2^40", ints_attribute("kernel_shape", {kHuge, kHuge})},
                                                        {"stride 0", ints_attribute("strides", {0, 1})},
                                                        {"stride -1", ints_attribute("strides", {1, -1})},
                                                        {"dilation -1", ints_attribute("dilations", {-1, 1})},
                                                        {"dilation 2^62", ints_attribute("dilations", {std::int64_t{1} << 62, 1})},
                                                        {"three pads", ints_attribute("pads", {1, 1, 1})},
                                                        {"pads 2^62", ints_attribute("pads", {1, 1, std::int64_t{1} << 62, std::int64_t{1} << 62})},
                                                        {"a million strides", ints_attribute("strides", Ints(1'000'000, 1))},
                                                        {"group 0", int_attribute("group", 0)},
                                                        {"group -1", int_attribute("group", -1)},
                                                        {"group 3 of 4", int_attribute("group", 3)},
                                                        {"group 2^40", int_attribute("group", kHuge)}}) {
    for (const char* op : {"Conv", "ConvTranspose"}) model(std::string(op) + ", " + what, node(op, {{1, 4, 8, 8}, {4, 4, 3, 3}}, {attribute}));
    if (std::string(what).starts_with("group")) continue;
    std::vector<std::string> all{attribute};
    if (!std::string(what).starts_with("kernel")) all.push_back(ints_attribute("kernel_shape", {3, 3}));
    for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) model(std::string(op) + ", " + what, node(op, {{1, 4, 8, 8}}, all));
  }
  model("weights of another rank", node("Conv", {{1, 4, 8, 8}, {4, 4, 3, 3, 3}}, {}));
  model("axis 2^40", node("Softmax", {{2, 3}}, {int_attribute("axis", kHuge)}));
  model("a permutation of one thing", node("Transpose", {{2, 3}}, {ints_attribute("perm", {0, 0})}));
  model("block size 0", node("DepthToSpace", {{1, 4, 2, 2}}, {int_attribute("blocksize", 0)}));
  model("block size 2^40", node("DepthToSpace", {{1, 4, 2, 2}}, {int_attribute("blocksize", kHuge)}));
}

TEST_F(Hostile, GraphsThatRunInCircles) {
  OnnxModel m = node("Add", {{2}, {2}}, {});
  m.graph.nodes = {{.op = "Add", .inputs = {"x0", "b"}, .outputs = {"a"}},
                   {.op = "Relu", .inputs = {"a"}, .outputs = {"b"}},
                   {.op = "Relu", .inputs = {"a"}, .outputs = {"y0"}}};
  model("a cycle", m);
  OnnxModel calls = node("F0", {{2}}, {});
  calls.graph.nodes[0].domain = "local";
  calls.functions = {calling_twice("F0", "F0")};
  model("a function that calls itself", calls);
  calls.functions = {calling_twice("F0", "F1"), calling_twice("F1", "F0")};
  model("two functions that call each other", calls);
  calls.functions.clear();
  for (int i = 0; i < 30; ++i) calls.functions.push_back(calling_twice("F" + std::to_string(i), "F" + std::to_string(i + 1)));
  calls.functions.push_back(calling_twice("F30", "Relu", ""));
  const Finished r = refused("30 functions that call the next twice", {"inspect", folder_.write("m.onnx", model_bytes(calls))}, 3);
  if (kMeasured) {
    EXPECT_LT(r.seconds, 1);
    EXPECT_LT(r.peak_kilobytes, 100L * 1024);
  }
}

TEST_F(Hostile, DeepAndWideMessages) {
  for (const int depth : {33, 200, 20000}) {
    // Built from the inside out; lengths need no more than five bytes.
    std::string graph = graph_bytes({.nodes = {}, .inputs = {}, .outputs = {value_bytes("c", 9, {})}});
    for (int i = 0; i < std::min(depth, 1000); ++i) {
      graph = graph_bytes({.nodes = {{.op = "If", .inputs = {"c"}, .outputs = {"y"}, .attributes = {graph_attribute("then_branch", graph)}}},
                           .inputs = {},
                           .outputs = {value_bytes("y", 1, {})}});
    }
    std::string text;
    if (depth <= 1000) {
      wire::append_bytes(text, 7, graph);
    } else {  // attribute in node in graph, and nothing else: the lengths are counted from the inside, then written from the outside
      std::vector<std::size_t> sizes{0};
      const int fields[] = {6, 5, 1};
      for (int i = 0; i < 3 * depth; ++i) sizes.push_back(sizes.back() + 1 + wire::varint_size(sizes.back()));
      wire::append_tag(text, 7, wire::Type::kBytes);
      wire::append_varint(text, sizes.back());
      for (int i = 3 * depth; i-- > 0;) {
        wire::append_tag(text, static_cast<std::uint32_t>(fields[i % 3]), wire::Type::kBytes);
        wire::append_varint(text, sizes[static_cast<std::size_t>(i)]);
      }
    }
    model(std::to_string(depth) + " Ifs in each other", text);
  }
  std::string graph, text;
  for (int i = 0; i < 1'000'000; ++i) wire::append_bytes(graph, 1, "");
  wire::append_bytes(text, 7, graph);
  const Finished r = refused("a million empty nodes", {"inspect", folder_.write("m.onnx", text)}, 3);
  text = model_bytes(node("Relu", {{2}}, {}));
  for (int i = 0; i < 1'000'000; ++i) wire::append_integer(text, 1000, 1);
  refused("a million unknown fields", {"inspect", folder_.write("u.onnx", text)}, 0);
  std::string open;  // group after group, none ended
  for (int i = 0; i < 1'000'000; ++i) open += '\x0b';
  model("a million groups", open);
  OnnxModel named = node("Relu", {{2}}, {});
  named.graph.nodes[0].op = std::string(65536, 'R');
  model("an operator of 65,536 letters", named);
  OnnxModel many = node("Relu", {{2}}, {});
  many.graph.nodes[0].outputs = {"v0"};
  for (int i = 0; i < 100'000; ++i)
    many.graph.nodes.push_back({.op = "Relu", .inputs = {"v" + std::to_string(i)}, .outputs = {"v" + std::to_string(i + 1)}});
  many.graph.outputs = {value_bytes("nothing", 1, {2})};
  model("a chain of 100,000 nodes that leads nowhere", many);
}

TEST_F(Hostile, ExternalData) {
  folder_.write("w.bin", "12345678");
  folder_.write("outside", "12345678");
  fs::create_directory(folder_ / "m");
  ASSERT_EQ(::mkfifo((folder_ / "m/pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder_ / "m/zero");
  fs::create_symlink("../outside", folder_ / "m/link");
  std::ofstream(folder_ / "m/sparse").close();
  fs::resize_file(folder_ / "m/sparse", std::uintmax_t{1} << 40);
  std::ofstream(folder_ / "m/here") << "12345678";
  const auto external = [&](const Ints& dims, const std::vector<std::pair<std::string, std::string>>& entries) {
    OnnxModel m = one_node("Add", 17, {{2}}, {});
    m.graph.nodes[0].inputs.push_back("w");
    m.graph.initializers = {external_tensor("w", 1, dims, entries)};
    refused(entries[0].second, {"inspect", folder_.write("m/model.onnx", model_bytes(m))}, 3);
  };
  for (const char* where : {"../outside", "pipe", "zero", "link", "none", ".", "/dev/zero", "/etc/passwd"}) external({2}, {{"location", where}});
  external({2}, {{"location", "here"}, {"offset", "4"}});
  external({2}, {{"location", "here"}, {"offset", "18446744073709551615"}});
  external({2}, {{"location", "here"}, {"length", "9223372036854775807"}});
  external({std::int64_t{1} << 50}, {{"location", "sparse"}});
  external({std::int64_t{1} << 37}, {{"location", "sparse"}});  // it is all there, but no two elements
}

// Names of written files are ours, whatever the model calls its data.
TEST_F(Hostile, ConvertWritesNowhereElse) {
  folder_.write("in/deep/sub/w.bin", "12345678");
  folder_.write("x", "untouched");
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) all.push_back(entry.path().string());
    std::sort(all.begin(), all.end());
    return all;
  };
  for (const char* location : {"../../x", "sub/w.bin"}) {
    OnnxModel m = one_node("Add", 17, {{2}}, {});
    m.graph.nodes[0].inputs.push_back("w");
    m.graph.initializers = {external_tensor("w", 1, {2}, {{"location", location}})};
    const std::string model = folder_.write("in/deep/m.onnx", model_bytes(m)), out = folder_ / "in/out.onnx";
    std::vector<std::string> before = names();
    const bool good = location[0] == 's';
    refused(location, {"convert", model, "-o", out, "-q"}, good ? 0 : 3);
    if (good) before.push_back(out);
    std::sort(before.begin(), before.end());
    EXPECT_EQ(names(), before);
    EXPECT_EQ(read_text(folder_ / "x"), "untouched");
    EXPECT_EQ(read_text(folder_ / "in/deep/sub/w.bin"), "12345678");
  }
}

// A damaged image stops a measurement with its name, or is left out and counted.
TEST_F(Hostile, DamagedImagesOfASet) {
  const std::string whole = read_text(data("images/rgb420.jpg"));
  for (const char* name : {"a", "b", "c", "d", "e"}) folder_.write(std::string("set/") + name + "/fine.jpg", whole);
  folder_.write("set/c/cut.jpg", whole.substr(0, whole.size() / 2));
  EXPECT_NE(refused("stop", {"evaluate", trained_network(), folder_ / "set", "--preprocess", "tf", "-q"}, 4).err.find("cut.jpg"), std::string::npos);
  const Finished r = run_tandem({"evaluate", trained_network(), folder_ / "set", "--preprocess", "tf", "--bad-files", "skip", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("cut.jpg"), std::string::npos) << r.err;
  EXPECT_NE(r.out.find("\"samples\": 5"), std::string::npos) << r.out;
}

TEST_F(Hostile, AModelThatIsNoFile) {
  fs::create_directory(folder_ / "m.onnx");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.onnx").c_str(), 0600), 0);
  std::ofstream(folder_ / "big.onnx").close();
  fs::resize_file(folder_ / "big.onnx", (std::uintmax_t{1} << 31) + 1);
  std::ofstream(folder_ / "zeros.onnx").close();
  fs::resize_file(folder_ / "zeros.onnx", (std::uintmax_t{1} << 31) - 1);
  for (const char* name : {"m.onnx", "pipe.onnx", "big.onnx", "zeros.onnx"}) refused(name, {"inspect", folder_ / name}, 3);
  refused("no file", {"inspect", folder_ / "none.onnx"}, 4);
  refused("/dev/zero", {"inspect", "/dev/zero"}, 3);
}

TEST_F(Hostile, Images) {
  for (const char* name : {"rgb420.jpg", "progressive.jpg", "rgb.png", "rgb_interlaced.png", "rgb24.bmp", "lossy.webp", "lossless.webp"}) {
    const std::string whole = read_text(data(std::string("images/") + name));
    for (const std::size_t kept : {whole.size() / 100, whole.size() / 2, whole.size() * 99 / 100})
      image(std::string(name) + " cut to " + std::to_string(kept), whole.substr(0, kept));
  }
  image("a PNG of 50,000 x 50,000", read_text(data("images/bomb.png")));
  image("a PNG of 2^31-1 x 2^31-1", png_start(0x7fffffff, 0x7fffffff) + png_chunk("IDAT", zlib_zeros(1 << 20)) + png_chunk("IEND", ""));
  image("a PNG whose rows are missing", png_start(9000, 9000) + png_chunk("IDAT", zlib_zeros(1 << 20)) + png_chunk("IEND", ""));
  image("a PNG with too many rows", png_start(8, 8) + png_chunk("IDAT", zlib_zeros(1 << 30)));
  const std::string text = png_chunk("zTXt", std::string("k\0\0", 3) + zlib_zeros(1 << 30));
  image("a PNG whose text unpacks to 1 GiB", png_start(64, 64) + text + text + png_chunk("IDAT", "damaged") + png_chunk("IEND", ""));
  image("a PNG whose profile unpacks to 1 GiB", png_start(64, 64) + png_chunk("iCCP", std::string("k\0\0", 3) + zlib_zeros(1 << 30)));
  std::string jpeg = read_text(data("images/rgb420.jpg")), bmp = read_text(data("images/rgb24.bmp")), webp = read_text(data("images/lossy.webp"));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xff\xff\xff");
  image("a JPEG of 65,535 x 65,535", jpeg);
  jpeg.replace(frame + 5, 4, std::string("\x23\x28\x23\x28", 4));
  image("a JPEG of 9000 x 9000 without its rows", jpeg);
  bmp.replace(18, 8, std::string("\xff\xff\xff\x7f\xff\xff\xff\x7f", 8));
  image("a BMP of 2^31-1 x 2^31-1", bmp);
  webp.replace(26, 4, "\xff\x3f\xff\x3f");
  image("a WebP of 16,383 x 16,383", webp);
}

std::string idx(std::uint32_t n, std::uint32_t h, std::uint32_t w) {
  std::string out("\0\0\x08\x03", 4);
  for (const std::uint32_t v : {n, h, w})
    for (int i = 3; i >= 0; --i) out += static_cast<char>(v >> (8 * i) & 0xff);
  return out;
}

TEST_F(Hostile, DataSets) {
  set("a .npy of 2^40 samples", "a.npy", npy("(1099511627776, 3)", "1234"));
  set("a .npy of 2^80 values", "a.npy", npy("(1099511627776, 1099511627776)", "1234"));
  set("a .npy cut in its header", "a.npy", npy("(1, 3)", "").substr(0, 30));
  set("a .npy with a header of 4 GiB", "a.npy", std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{", 13));
  const std::string sparse = folder_.write("sparse.npy", npy("(1, 3)", "1234"));
  fs::resize_file(sparse, std::uintmax_t{3} << 30);
  refused("a .npy of 3 GiB for three values", {"evaluate", trained_network(), sparse, "--preprocess", "tf", "-q"}, 4);
  set("an idx of 2^96 bytes", "a-idx3-ubyte", idx(~0u, ~0u, ~0u) + "1234");
  set("an idx without its data", "a-idx3-ubyte", idx(1000, 1000, 1000) + "1234");
  set("a gzip bomb of 4 GiB", "a-idx3-ubyte.gz", gzip_bomb(idx(4096, 1024, 1024), std::uint64_t{4} << 30));
  set("a gzip bomb of 600 MiB", "a-idx3-ubyte.gz", gzip_bomb(idx(600, 1024, 1024), std::uint64_t{600} << 20));
  set("a gzip bomb behind a small header", "a-idx3-ubyte.gz", gzip_bomb(idx(1, 64, 64), std::uint64_t{1} << 30));
  set("a cut .gz", "a-idx3-ubyte.gz", gzip_bomb(idx(1, 1024, 1024), 1 << 20).substr(0, 300));
  const std::string head = npy("(153600, 1024)", "");
  set("an .npz bomb of 600 MiB", "a.npz", zip_bomb("x.npy", head, std::uint64_t{600} << 20, static_cast<std::uint32_t>(head.size() + (600u << 20))));
  set("an .npz that claims 4 GiB", "a.npz", zip_bomb("x.npy", head, 1 << 20, ~0u - 1));
  set("an .npz that claims less than it has", "a.npz", zip_bomb("x.npy", head, 1 << 30, 1000));
  const std::string digits = read_text(data("sets/digits.npz"));
  for (const std::size_t kept : {digits.size() / 2, digits.size() - 1}) set("a cut .npz", "a.npz", digits.substr(0, kept));
  const std::string h5 = read_text(data("keras_h5/good/net_a.h5"));
  set("a cut .h5", "a.h5", h5.substr(0, h5.size() / 2));
  set("an .h5 without samples", "a.h5", h5);
}

TEST_F(Hostile, Weights) {
  const std::string whole = read_text(data("keras_h5/good/net_a.h5"));
  for (const std::size_t kept : {std::size_t{0}, std::size_t{8}, whole.size() / 10, whole.size() / 2, whole.size() * 99 / 100})
    weights(std::to_string(kept) + " bytes of weights", whole.substr(0, kept));
  for (const char* name : {"huge_declared", "external_link", "dangling_soft_link", "lzf", "flipped_bytes", "no_layer_names"})
    weights(name, read_text(data(std::string("keras_h5/bad/") + name + ".h5")));
  const std::string sparse = folder_.write("sparse.h5", "");
  fs::resize_file(sparse, std::uintmax_t{1} << 40);
  refused("1 TiB of zeros", {"weights", "show", sparse}, 3);
}

// What Keras 3 writes is named, and what to write instead.
TEST_F(Hostile, LayoutsOfKeras3) {
  fs::copy_file(data("keras_h5/bad/keras3.weights.h5"), folder_ / "k.weights.h5");
  folder_.write("k.keras", std::string("PK\x03\x04", 4) + std::string(100, '\0'));
  for (const char* name : {"k.weights.h5", "k.keras"}) {
    const std::string file = folder_ / name;
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"inspect", file}, {"weights", "show", file}, {"weights", "load", trained_network(), file, "-o", folder_ / "o.onnx"}}) {
      EXPECT_NE(refused(words[0] + " of " + name, words, 3).err.find("save(\"x.h5\")"), std::string::npos);
    }
  }
  const Finished r = refused("weights for a network", {"predict", data("keras_h5/good/net_a.h5"), data("images"), "--out", folder_ / "o.csv"}, 3);
  EXPECT_NE(r.err.find("HDF5"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace tandem::test
