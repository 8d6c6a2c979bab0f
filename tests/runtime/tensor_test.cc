#include "runtime/base/tensor.h"

#include <gtest/gtest.h>

#include <thread>

namespace tandem {
namespace {

Tensor counting(int& made) {
  return Tensor::deferred(DType::kF32, {2, 2}, [&made] {
    ++made;
    const float values[] = {1, 2, 3, 4};
    return Tensor::of<float>({2, 2}, values);
  });
}

TEST(DeferredTensor, IsMadeForWhoeverAsksAndNotKept) {
  int made = 0;
  const Tensor t = counting(made);
  EXPECT_EQ(t.bytes(), 16u);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(t.made().as<float>()[3], 4);
  EXPECT_EQ(t.made().as<float>()[0], 1);
  EXPECT_EQ(made, 2);
}

TEST(DeferredTensor, ReadInPlaceIsMadeOnceForAllCopies) {
  int made = 0;
  const Tensor t = counting(made), flat = t.reshaped({4}), copy = t;
  const void* data = t.data();
  EXPECT_EQ(copy.data(), data);
  EXPECT_EQ(flat.as<float>()[2], 3);
  EXPECT_EQ(flat.made().shape(), (Shape{4}));
  EXPECT_EQ(t.made().data(), data);
  EXPECT_EQ(made, 1);
}

TEST(DeferredTensor, ManyThreadsSeeOneValue) {
  int made = 0;
  const Tensor t = counting(made);
  std::vector<std::thread> threads;
  std::vector<const void*> seen(8);
  for (std::size_t i = 0; i < seen.size(); ++i) threads.emplace_back([&, i] { seen[i] = t.as<float>().data(); });
  for (std::thread& thread : threads) thread.join();
  for (const void* data : seen) EXPECT_EQ(data, t.data());
  EXPECT_EQ(made, 1);
}

TEST(Tensor, SharesOnlyWithItsCopies) {
  int made = 0;
  const Tensor t = counting(made), other = counting(made), plain = Tensor::scalar(1.0f);
  EXPECT_TRUE(t.shares(Tensor(t)));
  EXPECT_FALSE(t.shares(other));
  EXPECT_FALSE(plain.shares(t));
  EXPECT_TRUE(plain.shares(plain.reshaped({1})));
}

TEST(Tensor, LargeOnesAreZeroed) {
  for (const std::int64_t n : {1000, 1000, 300000, 300000}) {  // the second of a size may get the memory of the first
    Tensor t(DType::kF32, {n});
    EXPECT_EQ(t.as<float>()[0], 0.0f);
    EXPECT_EQ(t.as<float>()[static_cast<std::size_t>(n - 1)], 0.0f);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data()) % 64, 0u);
    std::fill_n(t.as_mutable<float>().data(), n, 1.0f);
  }
}

}  // namespace
}  // namespace tandem
