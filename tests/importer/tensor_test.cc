// TensorProto in every storage form, and back.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "importer/sha1.h"
#include "importer/tensor_proto.h"
#include "importer/wire.h"
#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tests/support/import.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

std::string typed(int type, const Ints& dims, std::uint32_t field, const std::vector<std::uint64_t>& varints, bool packed) {
  std::string out, content;
  for (const std::int64_t d : dims) wire::append_integer(out, 1, static_cast<std::uint64_t>(d));
  wire::append_integer(out, 2, static_cast<std::uint64_t>(type));
  for (const std::uint64_t v : varints) {
    if (packed)
      wire::append_varint(content, v);
    else
      wire::append_integer(out, field, v);
  }
  if (packed) wire::append_bytes(out, field, content);
  return out;
}

Tensor parse(const std::string& text) { return parse_tensor(bytes_of(text)).tensor; }

TEST(TensorProto, IntegersInTypedFieldsPackedAndNot) {
  const std::uint64_t minus_two = static_cast<std::uint64_t>(-2);
  struct Case {
    int type;
    std::uint32_t field;
    std::vector<std::uint64_t> values;
    Ints want;
  };
  for (const Case& c : std::vector<Case>{{3, 5, {127, minus_two}, {127, -2}},
                                         {2, 5, {255, 0}, {255, 0}},
                                         {5, 5, {minus_two, 7}, {-2, 7}},
                                         {4, 5, {65535, 1}, {65535, 1}},
                                         {6, 5, {minus_two, 2147483647}, {-2, 2147483647}},
                                         {7, 7, {minus_two, 1ull << 62}, {-2, 1ll << 62}},
                                         {12, 11, {4294967295u, 3}, {4294967295, 3}},
                                         {13, 11, {5, 6}, {5, 6}},
                                         {9, 5, {1, 0}, {1, 0}}}) {
    for (const bool packed : {false, true}) EXPECT_EQ(parse(typed(c.type, {2}, c.field, c.values, packed)).to_ints(), c.want) << c.type;
  }
}

TEST(TensorProto, HalvesInInt32Data) {
  const Tensor f16 = parse(typed(10, {2}, 5, {15360, 49152}, true));
  EXPECT_EQ(f16.dtype(), DType::kF16);
  EXPECT_EQ(f16.to_doubles(), (std::vector<double>{1, -2}));
  EXPECT_EQ(parse(typed(16, {2}, 5, {0x3f80, 0xc000}, false)).to_doubles(), (std::vector<double>{1, -2}));
}

TEST(TensorProto, RawEqualsTyped) {
  EXPECT_EQ(parse(float_tensor("w", {2, 1}, {1.5f, -2})).to_doubles(), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(parse(raw_tensor("w", 9, {3}, std::string("\x00\x01\x07", 3))).to_ints(), (Ints{0, 1, 1}));
  EXPECT_EQ(parse(raw_tensor("w", 1, {}, std::string("\x00\x00\x80\x3f", 4))).rank(), 0);
  EXPECT_EQ(parse(raw_tensor("w", 1, {0, 5}, "")).shape(), (Shape{0, 5}));
}

TEST(TensorProto, RefusesWhatDoesNotFit) {
  for (const std::string& text :
       {raw_tensor("w", 1, {2}, std::string(7, 'x')), raw_tensor("w", 1, {2}, std::string(9, 'x')), raw_tensor("w", 1, {-2}, ""),
        raw_tensor("w", 1, {1ll << 33, 1ll << 33}, ""), raw_tensor("w", 11, {1ll << 61}, ""), raw_tensor("w", 8, {1}, "x"),
        raw_tensor("w", 17, {1}, "x"), raw_tensor("w", 22, {2}, "x"), raw_tensor("w", 0, {1}, "x"), raw_tensor("w", 99, {1}, "x"),
        raw_tensor("w", 1, Ints(40, 1), "xxxx"), typed(7, {3}, 7, {1, 2}, true), typed(7, {3}, 7, {1, 2, 3, 4}, true), typed(2, {1}, 5, {256}, true),
        typed(10, {1}, 5, {65536}, true), typed(7, {1ll << 40}, 7, {1}, true)}) {
    EXPECT_THROW(parse(text), InvalidData);
  }
}

TEST(TensorProto, FilesKeepTypeShapeAndBytes) {
  const TemporaryFolder folder;
  const std::string file = folder / "t.pb";
  const Tensor tensor = parse(raw_tensor("w", 16, {2, 1}, std::string("\x80\x3f\x00\xc0", 4)));
  write_tensor_file(file, "name", tensor);
  write_tensor_file(file, "name", tensor);  // replaces
  const NamedTensor back = read_tensor_file(file);
  EXPECT_EQ(back.name, "name");
  EXPECT_EQ(back.tensor.dtype(), DType::kBF16);
  EXPECT_EQ(back.tensor.shape(), (Shape{2, 1}));
  EXPECT_EQ(back.tensor.to_doubles(), (std::vector<double>{1, -2}));
  EXPECT_THROW(read_tensor_file(folder / "nothing.pb"), InvalidData);
  EXPECT_THROW(read_tensor_file(folder.path()), Error);
}

// FIPS 180-4's examples.
TEST(Sha1, KnownDigests) {
  EXPECT_EQ(sha1_hex(bytes_of("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_hex({}), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

}  // namespace
}  // namespace tandem::test
