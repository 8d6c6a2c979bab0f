#include "runtime/ops/window.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace tandem {
namespace {

using Ints = std::vector<std::int64_t>;

Attributes attributes(Ints kernel, Ints strides, Ints pads, std::string auto_pad = "NOTSET", bool ceil = false, Ints dilations = {}) {
  Attributes a;
  a.set("kernel_shape", kernel);
  a.set("strides", strides);
  if (!pads.empty()) a.set("pads", pads);
  if (!dilations.empty()) a.set("dilations", dilations);
  a.set("auto_pad", auto_pad);
  a.set("ceil_mode", std::int64_t{ceil});
  return a;
}

Window resolve(const Attributes& a, Ints input) { return resolve_window(read_window(a, input.size()), input); }

TEST(Window, SamePadsTheOddCellAtTheEndOrTheStartAndNeverCrops) {
  Window w = resolve(attributes({3}, {2}, {}, "SAME_UPPER"), {4});
  EXPECT_EQ(w.output, Ints{2});
  EXPECT_EQ(w.begin, Ints{0});
  EXPECT_EQ(w.end, Ints{1});
  w = resolve(attributes({3}, {2}, {}, "SAME_LOWER"), {4});
  EXPECT_EQ(w.begin, Ints{1});
  EXPECT_EQ(w.end, Ints{0});
  w = resolve(attributes({1}, {5}, {}, "SAME_LOWER"), {9});  // kernel below stride
  EXPECT_EQ(w.output, Ints{2});
  EXPECT_EQ(w.begin, Ints{0});
  EXPECT_EQ(w.end, Ints{0});
  w = resolve(attributes({2, 3}, {1, 1}, {}, "SAME_UPPER", false, {3, 2}), {5, 6});
  EXPECT_EQ(w.output, (Ints{5, 6}));
  EXPECT_EQ(w.begin, (Ints{1, 2}));
  EXPECT_EQ(w.end, (Ints{2, 2}));
}

TEST(Window, CeilDropsAWindowThatWouldStartBehindTheInput) {
  EXPECT_EQ(resolve(attributes({2}, {2}, {0, 1}, "NOTSET", true), {3}).output, Ints{2});
  EXPECT_EQ(resolve(attributes({1}, {4}, {0, 2}, "NOTSET", true), {4}).output, Ints{2});  // 3 by the formula: starts at 0, 4, 8
  EXPECT_EQ(resolve(attributes({3}, {2}, {}, "NOTSET", true), {4}).output, Ints{2});
  EXPECT_EQ(resolve(attributes({3}, {2}, {}, "NOTSET", false), {4}).output, Ints{1});
}

TEST(Window, ReachListsTheCellsInsideTheInput) {
  const Window w = resolve(attributes({3}, {2}, {2, 2}, "NOTSET", true, {2}), {6});
  ASSERT_EQ(w.output, Ints{4});
  const std::int64_t starts[] = {-2, 0, 2, 4}, firsts[] = {1, 0, 0, 0}, lasts[] = {3, 3, 2, 1}, counts[] = {3, 3, 3, 2};
  for (std::int64_t i = 0; i < 4; ++i) {
    const Window::Reach r = w.reach(0, i);
    EXPECT_EQ(r.start, starts[i]) << i;
    EXPECT_EQ(r.first, firsts[i]) << i;
    EXPECT_EQ(r.last, lasts[i]) << i;
    EXPECT_EQ(w.padded_count(0, i), counts[i]) << i;
  }
  const Window outside = resolve(attributes({2}, {1}, {3, 3}), {1});
  EXPECT_EQ(outside.reach(0, 0).first, outside.reach(0, 0).last);
  EXPECT_EQ(outside.reach(0, 5).first, outside.reach(0, 5).last);
}

TEST(Window, RefusesWhatMakesNoSense) {
  EXPECT_THROW(resolve(attributes({3}, {0}, {}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({0}, {1}, {}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({3}, {1}, {1}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({3}, {1}, {-1, 0}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({3}, {1}, {}, "NOTSET", false, {-1}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({3}, {1}, {}, "SAME"), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({5}, {1}, {}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({3, 3}, {1}, {}), {4}), InvalidModel);
  EXPECT_THROW(resolve(attributes({std::int64_t{1} << 31}, {1}, {}), {4}), InvalidModel);
  EXPECT_THROW(read_window({}, 2), InvalidModel);
}

TEST(Window, TheKernelOfTheWeightsMustAgree) {
  const Ints kernel{3, 3}, other{3, 5};
  EXPECT_EQ(read_window({}, 2, kernel).kernel, kernel);
  EXPECT_THROW(read_window(attributes({3, 3}, {1, 1}, {}), 2, other), InvalidModel);
  EXPECT_THROW(read_window({}, 3, kernel), InvalidModel);
}

}  // namespace
}  // namespace tandem
