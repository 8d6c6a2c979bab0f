#include "runtime/base/sha256.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

std::string digest(std::string_view text) {
  Sha256 s;
  s.update(text);
  return s.hex();
}

// The examples of NIST's Cryptographic Standards pages.
TEST(Sha256, Vectors) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(digest(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  const std::string text(517, 'x');
  for (std::size_t piece : {1u, 7u, 63u, 64u, 65u, 200u}) {
    Sha256 s;
    for (std::size_t i = 0; i < text.size(); i += piece) s.update(std::string_view(text).substr(i, piece));
    EXPECT_EQ(s.hex(), digest(text));
  }
}

}  // namespace
}  // namespace tandem
