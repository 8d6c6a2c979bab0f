#include "io/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/cpu/task_pool.h"
#include "tests/io/message_of.h"

namespace tandem::io {
namespace {

using test::message_of;
using Indices = std::vector<std::int64_t>;
using Floats = std::vector<float>;

// Sample i is a picture of 2 x 3 with 2 channels (NHWC), value k of it is 100 i + k; its class is i % classes.
class Numbers : public Dataset {
 public:
  Numbers(std::int64_t count, std::int64_t classes, std::set<std::int64_t> damaged = {})
      : count_(count), classes_(classes), damaged_(std::move(damaged)) {}
  std::int64_t size() const override { return count_; }
  void load(std::int64_t i, std::span<float> out) const override {
    ++loads;
    std::this_thread::sleep_for(delay);
    if (damaged_.count(i)) throw InvalidData("\"" + name(i) + "\" is cut");
    if (i == out_of_memory) throw std::bad_alloc();
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<float>(100 * i + static_cast<std::int64_t>(k));
  }
  std::int64_t label(std::int64_t i) const override { return classes_ == 0 ? -1 : i % classes_; }
  std::string name(std::int64_t i) const override { return "n" + std::to_string(i) + ".png"; }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::int64_t sample_size() const override { return 12; }
  double weight(std::int64_t i) const override { return 1 + static_cast<double>(i) / 4; }
  std::int64_t value_count() const override { return with_values ? 2 : 0; }
  void values(std::int64_t i, std::span<float> out) const override {
    out[0] = static_cast<float>(i);
    out[1] = 1;
  }

  mutable std::atomic<int> loads{0};
  std::int64_t out_of_memory = -1;
  bool with_values = false;
  std::chrono::milliseconds delay{0};

 private:
  std::int64_t count_, classes_;
  std::set<std::int64_t> damaged_;
  std::vector<std::string> none_;
};

BatchOptions options(std::int64_t batch, std::int64_t outputs) {
  BatchOptions o;
  o.batch_size = batch;
  o.seed = 1;
  o.passes = 1;
  o.sample_shape = {2, 3, 2};
  o.outputs = outputs;
  return o;
}

DecodeQueue::Submit at_once() {
  return [](const std::function<void()>& task) { task(); };
}

Floats values_of(const Tensor& t) {
  const auto v = t.as<float>();
  return {v.begin(), v.end()};
}

std::vector<Batch> all(BatchSource& source) {
  std::vector<Batch> batches;
  while (auto b = source.next()) batches.push_back(std::move(*b));
  return batches;
}

// From an implementation of Philox in Python, checked with the published vectors.
TEST(ShuffledOrder, IsTheSpecifiedPermutation) {
  using Order = std::vector<std::uint32_t>;
  EXPECT_EQ(shuffled_order(1, 0, 10), (Order{3, 2, 5, 0, 8, 7, 9, 1, 4, 6}));
  EXPECT_EQ(shuffled_order(1, 1, 10), (Order{1, 6, 0, 9, 2, 7, 3, 8, 5, 4}));
  EXPECT_EQ(shuffled_order(0x1'0000'0005, 3, 17), (Order{9, 6, 8, 7, 12, 16, 10, 5, 11, 14, 0, 2, 3, 15, 4, 13, 1}));
}

TEST(ShuffledOrder, EveryOrderIsAsLikely) {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::int64_t pass = 0; pass < 12000; ++pass) ++seen[shuffled_order(3, pass, 4)];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 500, 6 * std::sqrt(500));
}

TEST(BatchSource, EveryPassHasEverySampleOnceAndARaggedEnd) {
  auto o = options(4, 3);
  o.passes = 2;
  BatchSource source(std::make_shared<Numbers>(10, 3), o, at_once());
  EXPECT_EQ(source.samples(), 10);
  EXPECT_EQ(source.batches(), 3);
  const auto batches = all(source);
  ASSERT_EQ(batches.size(), 6u);
  const std::vector<Indices> expected = {{3, 2, 5, 0}, {8, 7, 9, 1}, {4, 6}, {1, 6, 0, 9}, {2, 7, 3, 8}, {5, 4}};
  for (std::size_t k = 0; k < 6; ++k) {
    const Batch& b = batches[k];
    EXPECT_EQ(b.index, expected[k]);
    EXPECT_EQ(b.at, (BatchPosition{static_cast<std::int64_t>(k / 3), static_cast<std::int64_t>(k % 3)}));
    EXPECT_EQ(b.first, static_cast<std::int64_t>(k % 3 * 4));
    EXPECT_EQ(b.ends_pass, k % 3 == 2);
    const std::int64_t n = std::ssize(expected[k]);
    EXPECT_EQ(b.x.shape(), (Shape{n, 2, 3, 2}));
    EXPECT_EQ(b.target.shape(), (Shape{n, 3}));
    EXPECT_EQ(b.weight.shape(), Shape{n});
    for (std::size_t i = 0; i < b.index.size(); ++i) {
      EXPECT_EQ(b.label[i], b.index[i] % 3);
      EXPECT_EQ(values_of(b.x)[12 * i + 5], static_cast<float>(100 * b.index[i] + 5));
      for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(values_of(b.target)[3 * i + static_cast<std::size_t>(c)], c == b.label[i] ? 1.0f : 0.0f);
      EXPECT_EQ(values_of(b.weight)[i], 1 + static_cast<float>(b.index[i]) / 4);
    }
  }
}

// Everything that a batch holds, as bytes.
std::string bytes_of(const std::vector<Batch>& batches) {
  std::string all;
  for (const Batch& b : batches) {
    for (const Tensor* t : {&b.x, &b.target, &b.weight}) all.append(static_cast<const char*>(t->data()), t->bytes());
    all.append(reinterpret_cast<const char*>(b.index.data()), b.index.size() * sizeof(std::int64_t));
  }
  return all;
}

TEST(BatchSource, BitsDependOnPositionAlone) {
  auto o = options(5, 3);
  o.passes = 3;
  o.augment = parse_augmentation("flip,vflip,crop=1,rotate,erase=0.5,mixup,cutmix");
  const auto data = std::make_shared<Numbers>(23, 3);
  BatchSource plain(data, o, at_once());
  const auto expected = all(plain);
  ASSERT_EQ(expected.size(), 15u);
  for (const int threads : {1, 4}) {
    for (const int ahead : {1, 3, 64}) {
      TaskPool pool(threads);
      o.ahead = ahead;
      BatchSource source(data, o, [&](std::function<void()> task) { pool.submit(std::move(task)); });
      EXPECT_EQ(bytes_of(all(source)), bytes_of(expected));
      for (const std::size_t from : {14u, 0u, 7u}) {  // back and forth
        source.start(expected[from].at);
        EXPECT_EQ(source.position(), expected[from].at);
        EXPECT_EQ(bytes_of(all(source)), bytes_of({expected.begin() + static_cast<std::ptrdiff_t>(from), expected.end()}));
      }
    }
  }
}

TEST(BatchSource, LooksAheadNoFurtherThanAsked) {
  auto o = options(4, 3);
  o.ahead = 6;
  const auto data = std::make_shared<Numbers>(100, 3);
  BatchSource source(data, o, at_once());
  for (int k = 1; k <= 5; ++k) {
    source.next();
    EXPECT_EQ(data->loads, 4 * k - 1 + 6);
  }
}

TEST(BatchSource, WithoutPassesItNeverEnds) {
  auto o = options(4, 1);
  o.passes = 0;
  o.shuffle = false;
  BatchSource source(std::make_shared<Numbers>(6, 2), o, at_once());
  for (std::int64_t k = 0; k < 20; ++k) {
    const auto b = source.next();
    ASSERT_TRUE(b);
    EXPECT_EQ(b->index, (k % 2 == 0 ? Indices{0, 1, 2, 3} : Indices{4, 5}));
    EXPECT_EQ(b->at.pass, k / 2);
    EXPECT_EQ(b->target.shape(), (Shape{std::ssize(b->index), 1}));
    EXPECT_EQ(values_of(b->target)[1], 1.0f);  // class 1 of two
  }
}

TEST(BatchSource, TargetsAndWeights) {
  auto o = options(8, 4);
  o.shuffle = false;
  o.class_map = {3, 0};
  o.label_smoothing = 0.1f;
  o.class_weights = {2, 1, 1, 8};
  BatchSource smooth(std::make_shared<Numbers>(2, 2), o, at_once());
  const auto b = smooth.next();
  const Floats expected = {0.025f, 0.025f, 0.025f, 0.925f, 0.925f, 0.025f, 0.025f, 0.025f};  // t 0.9 + 0.1 / 4
  for (std::size_t k = 0; k < 8; ++k) EXPECT_FLOAT_EQ(values_of(b->target)[k], expected[k]);
  EXPECT_EQ(values_of(b->weight), (Floats{8, 2.5f}));  // 1 * 8, 1.25 * 2
  EXPECT_EQ(b->label, (Indices{3, 0}));

  o.apart = true;
  BatchSource apart(std::make_shared<Numbers>(2, 2), o, at_once());
  const Floats halves = {0.05f, 0.05f, 0.05f, 0.95f, 0.95f, 0.05f, 0.05f, 0.05f};  // t 0.9 + 0.1 / 2
  const Floats found = values_of(apart.next()->target);
  for (std::size_t k = 0; k < 8; ++k) EXPECT_FLOAT_EQ(found[k], halves[k]);

  o = options(8, 1);
  o.shuffle = false;
  o.label_smoothing = 0.2f;
  BatchSource sigmoid(std::make_shared<Numbers>(2, 2), o, at_once());
  const Floats two = values_of(sigmoid.next()->target);
  EXPECT_FLOAT_EQ(two[0], 0.1f);
  EXPECT_FLOAT_EQ(two[1], 0.9f);

  o = options(8, 2);
  o.shuffle = false;
  const auto data = std::make_shared<Numbers>(3, 0);
  data->with_values = true;
  BatchSource regression(data, o, at_once());
  const auto r = regression.next();
  EXPECT_EQ(values_of(r->target), (Floats{0, 1, 1, 1, 2, 1}));
  EXPECT_EQ(r->label, (Indices{-1, -1, -1}));
}

TEST(BatchSource, ASubsetHasItsOwnOrder) {
  auto o = options(3, 3);
  o.subset = {9, 4, 6, 2};
  o.shuffle = false;
  BatchSource plain(std::make_shared<Numbers>(10, 3), o, at_once());
  EXPECT_EQ(plain.next()->index, (Indices{9, 4, 6}));
  EXPECT_EQ(plain.next()->index, Indices{2});
  EXPECT_FALSE(plain.next());
  o.shuffle = true;
  BatchSource shuffled(std::make_shared<Numbers>(10, 3), o, at_once());
  Indices seen;
  for (const Batch& b : all(shuffled)) seen.insert(seen.end(), b.index.begin(), b.index.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (Indices{2, 4, 6, 9}));
}

TEST(BatchSource, DamagedSamplesStopOrAreLeftOut) {
  auto o = options(4, 3);
  o.shuffle = false;
  o.passes = 2;
  const auto data = std::make_shared<Numbers>(10, 3, std::set<std::int64_t>{1, 4, 5, 6, 7});
  BatchSource stops(data, o, at_once());
  for (int again = 0; again < 2; ++again) {
    const std::string message = message_of<InvalidData>([&] { stops.next(); });
    EXPECT_NE(message.find("n1.png"), std::string::npos) << message;
  }
  o.skip_damaged = true;
  BatchSource skips(data, o, at_once());
  const auto batches = all(skips);
  ASSERT_EQ(batches.size(), 4u);  // the second batch of each pass is empty
  EXPECT_EQ(batches[0].index, (Indices{0, 2, 3}));
  EXPECT_EQ(batches[1].index, (Indices{8, 9}));
  EXPECT_EQ(batches[1].at, (BatchPosition{0, 2}));
  EXPECT_EQ(batches[1].first, 8);
  EXPECT_EQ(batches[2].at, (BatchPosition{1, 0}));
  EXPECT_EQ(skips.damaged().size(), 5u);
  EXPECT_NE(skips.damaged().at(6).find("n6.png"), std::string::npos);
  BatchSource none(std::make_shared<Numbers>(3, 3, std::set<std::int64_t>{0, 1, 2}), o, at_once());
  EXPECT_NE(message_of<InvalidData>([&] { none.next(); }).find("none of the 3 samples"), std::string::npos);
}

TEST(BatchSource, LackOfMemoryIsNoDamage) {
  auto o = options(4, 3);
  o.skip_damaged = true;
  const auto data = std::make_shared<Numbers>(10, 3);
  data->out_of_memory = 5;
  BatchSource source(data, o, at_once());
  EXPECT_THROW(all(source), std::bad_alloc);
}

// 4 samples of 20 ms on one thread; then 50 ms without a question, in which nobody waits.
TEST(BatchSource, WaitingIsMeasured) {
  auto slow = std::make_shared<Numbers>(4, 2);
  slow->delay = std::chrono::milliseconds(20);
  TaskPool pool(1);
  BatchSource source(slow, options(2, 2), [&pool](std::function<void()> task) { pool.submit(std::move(task)); });
  EXPECT_EQ(source.waited_seconds(), 0);
  source.next();
  const double first = source.waited_seconds();
  EXPECT_GE(first, 0.04);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(source.waited_seconds(), first);
  source.start({0, 0});
  EXPECT_EQ(source.waited_seconds(), first);
  source.next();
  EXPECT_GE(source.waited_seconds(), 0.08);
  EXPECT_LT(source.waited_seconds(), 10);
}

TEST(BatchSource, OptionsThatDoNotFitAreNamed) {
  const auto data = std::make_shared<Numbers>(4, 3);
  const auto usage = [&](auto&& change) {
    auto o = options(2, 3);
    change(o);
    return message_of<UsageError>([&] { BatchSource(data, o, at_once()); });
  };
  const auto invalid = [&](auto&& change) {
    auto o = options(2, 3);
    change(o);
    return message_of<InvalidData>([&] { BatchSource(data, o, at_once()); });
  };
  const auto says = [](const std::string& text, const char* part) { EXPECT_NE(text.find(part), std::string::npos) << text; };
  says(usage([](auto& o) { o.batch_size = 0; }), "batch size");
  says(usage([](auto& o) { o.label_smoothing = 1; }), "smoothing");
  says(usage([](auto& o) { o.class_weights = {1, 2}; }), "2 class weights for 3");
  says(usage([](auto& o) { o.class_weights = {1, 2, -1}; }), "class weight is -1");
  says(usage([](auto& o) { o.subset = {4}; }), "sample 4");
  says(usage([](auto& o) { o.augment = parse_augmentation("color"); }), "images");
  says(usage([](auto& o) {
         o.sample_shape = {12};
         o.augment = parse_augmentation("flip");
       }),
       "[12]");
  says(invalid([](auto& o) { o.outputs = 2; }), "n2.png\" has label 2");
  says(invalid([](auto& o) { o.sample_shape = {13}; }), "12 values");
  says(invalid([](auto& o) { o.class_map = {0, 1}; }), "label 2");
  EXPECT_THROW(BatchSource(std::make_shared<Numbers>(0, 3), options(2, 3), at_once()), InvalidData);
  EXPECT_THROW(BatchSource(std::make_shared<Numbers>(2, 0), options(2, 3), at_once()), InvalidData);
  BatchSource source(data, options(2, 3), at_once());
  EXPECT_THROW(source.start({0, 2}), UsageError);
  EXPECT_THROW(source.start({-1, 0}), UsageError);
}

// Each sample of a mixed batch is what its draw says, in the layout of the network.
TEST(BatchSource, MixesWithinTheBatch) {
  for (const InputLayout layout : {InputLayout::kNhwc, InputLayout::kNchw}) {
    auto o = options(6, 6);
    o.layout = layout;
    o.sample_shape = layout == InputLayout::kNhwc ? Shape{2, 3, 2} : Shape{2, 2, 3};
    o.shuffle = false;
    o.augment = parse_augmentation("mixup=1,cutmix=1");
    BatchSource source(std::make_shared<Numbers>(6, 6), o, at_once());
    const auto b = source.next();
    const Floats x = values_of(b->x), target = values_of(b->target), weight = values_of(b->weight);
    int boxes = 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      const Mix mix = draw_mix(o.augment, {1, 0, i}, i, 6, 2, 3);
      ASSERT_NE(mix.partner, i);
      boxes += mix.box.has_value();
      for (int y = 0; y < 2; ++y) {
        for (int column = 0; column < 3; ++column) {
          const bool inside =
              mix.box && y >= mix.box->y && y < mix.box->y + mix.box->height && column >= mix.box->x && column < mix.box->x + mix.box->width;
          for (int c = 0; c < 2; ++c) {
            const int k = layout == InputLayout::kNhwc ? (y * 3 + column) * 2 + c : (c * 2 + y) * 3 + column;
            const auto own = static_cast<float>(100 * i + k), other = static_cast<float>(100 * mix.partner + k);
            const float expected = mix.box ? (inside ? other : own) : mix.own * own + (1 - mix.own) * other;
            EXPECT_FLOAT_EQ(x[static_cast<std::size_t>(12 * i + k)], expected);
          }
        }
      }
      for (std::int64_t c = 0; c < 6; ++c)
        EXPECT_FLOAT_EQ(target[static_cast<std::size_t>(6 * i + c)], (c == i ? mix.own : 0) + (c == mix.partner ? 1 - mix.own : 0));
      EXPECT_FLOAT_EQ(weight[static_cast<std::size_t>(i)],
                      mix.own * (1 + static_cast<float>(i) / 4) + (1 - mix.own) * (1 + static_cast<float>(mix.partner) / 4));
      EXPECT_EQ(b->label[static_cast<std::size_t>(i)], i);
    }
    EXPECT_GT(boxes, 0);
    EXPECT_LT(boxes, 6);
  }
}

TEST(SplitByClass, TakesTheLastOfEachClassAsShuffled) {
  // Class 0 shuffled: 6 2 4 8 0; class 1: 3 7 9 5 1 (the Python implementation).
  const Numbers data(10, 2);
  const Split split = split_by_class(data, 0.4, 7);
  EXPECT_EQ(split.training, (Indices{2, 3, 4, 6, 7, 9}));
  EXPECT_EQ(split.validation, (Indices{0, 1, 5, 8}));
  EXPECT_EQ(split_by_class(Numbers(100, 1), 0.29, 1).validation.size(), 29u);
  EXPECT_EQ(split_by_class(Numbers(10, 0), 0.3, 1).validation.size(), 3u);
  EXPECT_THROW(split_by_class(data, 0, 1), UsageError);
  EXPECT_THROW(split_by_class(data, 1, 1), UsageError);
  EXPECT_THROW(split_by_class(data, 0.1, 1), UsageError);  // none of five
}

}  // namespace
}  // namespace tandem::io
