// numpy's files: read against what numpy wrote (tests/data/sets/make.py), and against headers that lie.
#include "io/npy.h"

#include <gtest/gtest.h>

#include "io/npz.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "tests/io/image_files.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

const char kTypes[] = TANDEM_SOURCE_DIR "/tests/data/sets/types.npz";

Tensor parse(const std::string& text) { return parse_npy(std::as_bytes(std::span(text))); }

// A file of format version 1 to 3 with this dictionary and data.
std::string file(const std::string& dict, const std::string& data, char version = 1) {
  std::string text = std::string("\x93NUMPY") + version + '\0';
  const std::size_t length = dict.size() + 1;
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) text += static_cast<char>(length >> (8 * i) & 0xff);
  return text + dict + "\n" + data;
}
std::string dict(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

TEST(Npy, EveryTypeAndOrderOfNumpy) {
  const NpzFile npz(kTypes);
  const std::pair<const char*, DType> types[] = {{"b1", DType::kBool}, {"i1", DType::kI8},  {"u1", DType::kU8},  {"i2", DType::kI16},
                                                 {"u2", DType::kU16},  {"i4", DType::kI32}, {"u4", DType::kU32}, {"i8", DType::kI64},
                                                 {"u8", DType::kU64},  {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}};
  int read = 0;
  for (const auto& [name, type] : types) {
    for (const char* order : {"_le_c", "_le_f", "_be_c", "_be_f"}) {
      if (!npz.has(std::string(name) + order)) continue;
      const Tensor t = npz.read(std::string(name) + order);
      EXPECT_EQ(t.dtype(), type);
      EXPECT_EQ(t.shape(), (Shape{2, 3}));
      EXPECT_EQ(t.to_doubles(), type == DType::kBool ? (std::vector<double>{0, 1, 0, 1, 0, 1}) : (std::vector<double>{0, 1, 2, 3, 4, 5}))
          << name << order;
      ++read;
    }
  }
  EXPECT_EQ(read, 3 * 2 + 9 * 4);
  std::vector<std::int64_t> counting(24);
  for (std::size_t i = 0; i < 24; ++i) counting[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(npz.read("cube_f").to_ints(), counting);
  EXPECT_EQ(npz.read("scalar").shape(), Shape{});
  EXPECT_EQ(npz.read("scalar").to_ints(), std::vector<std::int64_t>{7});
  EXPECT_EQ(npz.read("empty").shape(), (Shape{0, 3}));
  EXPECT_THROW(npz.read("complex"), InvalidData);
  EXPECT_THROW(npz.read("text"), InvalidData);
  EXPECT_THROW(npz.read("none"), InvalidData);
}

TEST(Npy, Versions) {
  for (const char version : {1, 2, 3})
    EXPECT_EQ(parse(file(dict("<i2", "(2,)"), std::string("\1\0\2\0", 4), version)).to_ints(), (std::vector<std::int64_t>{1, 2}));
  for (const char version : {0, 4}) EXPECT_THROW(parse(file(dict("<i2", "(2,)"), std::string("\1\0\2\0", 4), version)), InvalidData);
}

TEST(Npy, EveryTruncationIsRefused) {
  const std::string whole = file(dict("<f4", "(2, 2)"), std::string(16, '\1'));
  EXPECT_EQ(parse(whole).size(), 4);
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(parse(whole.substr(0, n)), InvalidData) << n;
  EXPECT_THROW(parse(whole + "x"), InvalidData);
}

TEST(Npy, AbsurdHeadersAreRefusedBeforeMemoryIsTaken) {
  for (const char* shape : {"(4611686018427387904,)",
                            "(1099511627776, 1099511627776)",
                            "(99999999999999999999999999,)",
                            "(1000000000000,)",
                            "(4294967296, 4294967296, 0)",
                            "(-1,)",
                            "(,)",
                            "(2, , 2)",
                            "(a,)",
                            "2",
                            "(2",
                            "(2)",
                            "(1.5,)",
                            "(1 2)",
                            "(1 2,)",
                            "(1, 2 3)",
                            "(L,)",
                            "(1LL,)",
                            "(1L2,)",
                            "(0x1,)"}) {
    EXPECT_THROW(parse(file(dict("<f4", shape), std::string(16, '\1'))), InvalidData) << shape;
  }
  std::string many = "(";
  for (int i = 0; i < 33; ++i) many += "1, ";
  EXPECT_THROW(parse(file(dict("|u1", many + ")"), "x")), InvalidData);
  for (const char* type : {"<c8", "<U2", "|O", "<f16", "<i3", "?f4", "|V4", "<f"})
    EXPECT_THROW(parse(file(dict(type, "(1,)"), "xxxx")), InvalidData) << type;
  EXPECT_THROW(parse(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "xxxx")), InvalidData);
  EXPECT_THROW(parse(file("{'descr': '<f4', 'shape': (1,), }", "xxxx")), InvalidData);
  EXPECT_THROW(parse(file("{}", "xxxx")), InvalidData);
}

TEST(Npy, ShapesAreTuplesOfIntegers) {
  const std::string data(8, '\1');
  EXPECT_EQ(parse(file(dict("<f4", "(1, 2)"), data)).shape(), (Shape{1, 2}));
  EXPECT_EQ(parse(file(dict("<f4", "( 1L ,2L, )"), data)).shape(), (Shape{1, 2}));
  EXPECT_EQ(parse(file(dict("<f4", "(2L,)"), data)).shape(), (Shape{2}));
  EXPECT_EQ(parse(file(dict("<f4", "()"), data.substr(0, 4))).shape(), Shape{});
  // Twelve numbers that lie there must not be taken for one and two.
  EXPECT_THROW(parse(file(dict("<f4", "(1 2)"), std::string(48, '\1'))), InvalidData);
  EXPECT_THROW(parse(file(dict("<f4", "(2, 1)", "Frue"), data)), InvalidData);
}

TEST(Npy, WritesWhatNumpyReads) {
  // The header as numpy's format description has it: magic, version 1.0, length, dictionary, blanks to a multiple of 64, newline.
  const std::vector<float> values{1, 2};
  const std::string bytes = npy_bytes(Tensor::of<float>({2, 1}, values));
  const std::string start = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  EXPECT_EQ(bytes.substr(0, start.size()), start);
  EXPECT_EQ(bytes.size(), 128u + 8u);
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_NE(npy_bytes(Tensor::of<float>({2}, values)).find("'shape': (2,), }"), std::string::npos);
  EXPECT_NE(npy_bytes(Tensor::scalar<float>(1)).find("'shape': (), }"), std::string::npos);
  EXPECT_NE(npy_bytes(Tensor::scalar<std::uint8_t>(1)).find("'descr': '|u1'"), std::string::npos);
}

TEST(Npy, RoundTripThroughAFile) {
  const test::TemporaryFolder folder;
  const NpzFile npz(kTypes);
  for (const char* name : {"b1_le_c", "u8_be_f", "f2_le_c", "f8_be_c", "scalar", "empty"}) {
    const Tensor t = npz.read(name);
    write_npy(folder / "t.npy", t);
    const Tensor back = read_npy(folder / "t.npy");
    EXPECT_EQ(back.dtype(), t.dtype());
    EXPECT_EQ(back.shape(), t.shape());
    EXPECT_EQ(back.to_doubles(), t.to_doubles());
  }
  folder.write("bad.npy", "not numpy at all");
  EXPECT_NE(test::message_of<InvalidData>([&] { read_npy(folder / "bad.npy"); }).find("bad.npy"), std::string::npos);
}

TEST(Npz, DamagedArchivesAreRefused) {
  const test::TemporaryFolder folder;
  const auto raw = test::bytes_of(TANDEM_SOURCE_DIR "/tests/data/sets/digits.npz");
  const std::string whole(raw.begin(), raw.end());
  const auto read_all = [&](const std::string& text) {
    const NpzFile npz(folder.write("a.npz", text));
    for (const char* name : {"x_train", "y_train", "x_test", "y_test"}) npz.read(name);
  };
  EXPECT_NO_THROW(read_all(whole));
  for (std::size_t n = 0; n < whole.size(); n += 7) EXPECT_THROW(read_all(whole.substr(0, n)), InvalidData) << n;
  for (std::size_t n = 0; n < whole.size(); n += 3) {  // never anything but InvalidData, whichever bit falls over
    std::string damaged = whole;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x10);
    try {
      read_all(damaged);
    } catch (const InvalidData&) {
    }
  }
  EXPECT_THROW(NpzFile(folder.path()), InvalidData);
  EXPECT_THROW(NpzFile(folder / "none.npz"), InvalidData);
}

}  // namespace
}  // namespace tandem::io
