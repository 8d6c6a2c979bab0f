#include "io/batch_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>

#include "io/batch_content.h"
#include "io/read_file.h"
#include "runtime/base/error.h"
#include "runtime/base/philox.h"

namespace tandem::io {
namespace {

void shuffle(std::span<std::uint32_t> order, PhiloxStream s) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[s.below(static_cast<std::uint32_t>(i))]);
}

std::vector<std::uint32_t> first_numbers(std::int64_t count) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

std::vector<std::int64_t> members_of(const Dataset& data, std::vector<std::int64_t> subset) {
  if (subset.empty()) {
    subset.resize(static_cast<std::size_t>(data.size()));
    std::iota(subset.begin(), subset.end(), std::int64_t{0});
  }
  if (subset.empty()) throw InvalidData("the data set has no sample");
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  if (data.size() > kMost) throw InvalidData(fmt::format("the data set has {} samples, more than the limit of {}", data.size(), kMost));
  for (const std::int64_t i : subset) {
    if (i < 0 || i >= data.size()) throw UsageError(fmt::format("sample {} is none of the data set's {}", i, data.size()));
  }
  return subset;
}

}  // namespace

std::vector<std::uint32_t> shuffled_order(std::uint64_t seed, std::int64_t pass, std::int64_t count) {
  auto order = first_numbers(count);
  shuffle(order, PhiloxStream(seed, Purpose::kShuffle, static_cast<std::uint32_t>(pass), 0));
  return order;
}

struct BatchSource::State {
  std::shared_ptr<const Dataset> data;
  BatchOptions o;
  DecodeQueue::Submit submit;
  std::vector<std::int64_t> members;
  BatchContent content;
  BatchPosition position;
  std::int64_t unread = 0;  // samples in a row that could not be read, whole batches
  std::map<std::int64_t, std::string> damaged;
  double waited = 0;
  double decoded = 0;  // seconds, in queues that are gone
  std::mutex mutex;
  std::map<std::int64_t, std::shared_ptr<const std::vector<std::uint32_t>>> orders;  // of passes that are under way
  std::exception_ptr fatal;                                                          // what is wrong is not the sample
  std::unique_ptr<DecodeQueue> queue;                                                // last, so that its tasks end first

  State(std::shared_ptr<const Dataset> set, BatchOptions options, DecodeQueue::Submit s)
      : data(std::move(set)), o(std::move(options)), submit(std::move(s)), members(members_of(*data, o.subset)), content(*data, o, members) {
    if (o.batch_size < 1) throw UsageError(fmt::format("the batch size must be at least 1, is {}", o.batch_size));
  }

  std::int64_t count() const { return std::ssize(members); }
  std::int64_t batches() const { return (count() + o.batch_size - 1) / o.batch_size; }

  std::shared_ptr<const std::vector<std::uint32_t>> order(std::int64_t pass) {
    const std::lock_guard lock(mutex);
    auto& known = orders[pass];
    if (!known)
      known = std::make_shared<const std::vector<std::uint32_t>>(o.shuffle ? shuffled_order(o.seed, pass, count()) : first_numbers(count()));
    return known;
  }

  // Sample number `at` of all passes, one behind the other.
  void load(std::int64_t at, std::span<float> out) {
    try {
      const std::int64_t pass = at / count();
      const std::uint32_t place = (*order(pass))[static_cast<std::size_t>(at % count())];
      content.load(members[place], pass, out);
    } catch (const InvalidData&) {
      throw;
    } catch (const Unsupported&) {
      throw;
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!fatal) fatal = std::current_exception();
      throw;
    }
  }

  void close_queue() {
    if (queue) decoded += queue->load_seconds();
    queue.reset();
    const std::lock_guard lock(mutex);
    orders.clear();
    fatal = nullptr;
  }

  void open_queue() {
    const std::int64_t first = position.pass * count() + position.batch * o.batch_size;
    const std::int64_t last = o.passes > 0 ? o.passes * count() : std::numeric_limits<std::int64_t>::max();
    const int ahead = o.ahead > 0 ? o.ahead : static_cast<int>(std::min<std::int64_t>(2 * o.batch_size, 1 << 20));
    queue = std::make_unique<DecodeQueue>(first, last, data->sample_size(), ahead, submit,
                                          [this](std::int64_t at, std::span<float> out) { load(at, out); });
  }

  void advance() {
    if (++position.batch < batches()) return;
    position = {position.pass + 1, 0};
    const std::lock_guard lock(mutex);
    orders.erase(orders.begin(), orders.lower_bound(position.pass));
  }

  // What of the batch at `position` could be read.
  std::vector<BatchContent::Sample> take() {
    const auto places = order(position.pass);
    const std::int64_t first = position.batch * o.batch_size, last = std::min(count(), first + o.batch_size);
    std::vector<BatchContent::Sample> samples;
    for (std::int64_t k = first; k < last; ++k) {
      auto item = queue->next();
      const std::int64_t index = members[(*places)[static_cast<std::size_t>(k)]];
      if (item->error.empty()) {
        samples.push_back({index, std::move(item->sample)});
        continue;
      }
      {
        const std::lock_guard lock(mutex);
        if (fatal) std::rethrow_exception(fatal);
      }
      if (!o.skip_damaged) throw InvalidData(item->error);
      damaged.emplace(index, std::move(item->error));
    }
    unread = samples.empty() ? unread + last - first : 0;
    if (unread >= count()) throw InvalidData(fmt::format("none of the {} samples can be read; the first: {}", count(), damaged.begin()->second));
    return samples;
  }

  std::optional<Batch> next() {
    while (o.passes == 0 || position.pass < o.passes) {
      if (!queue) open_queue();
      std::vector<BatchContent::Sample> samples;
      try {
        samples = take();
      } catch (...) {
        close_queue();  // a further call begins with this batch again
        throw;
      }
      const BatchPosition at = position;
      advance();
      if (samples.empty()) continue;
      Batch batch = content.assembled(std::move(samples), at.pass);
      batch.at = at;
      batch.first = at.batch * o.batch_size;
      batch.ends_pass = position.pass != at.pass;
      return batch;
    }
    return std::nullopt;
  }
};

BatchSource::BatchSource(std::shared_ptr<const Dataset> data, BatchOptions options, DecodeQueue::Submit submit)
    : state_(std::make_unique<State>(std::move(data), std::move(options), std::move(submit))) {}

BatchSource::~BatchSource() = default;

std::int64_t BatchSource::samples() const { return state_->count(); }
std::int64_t BatchSource::batches() const { return state_->batches(); }
BatchPosition BatchSource::position() const { return state_->position; }
double BatchSource::waited_seconds() const { return state_->waited; }
double BatchSource::decode_seconds() const { return state_->decoded + (state_->queue ? state_->queue->load_seconds() : 0); }
const std::map<std::int64_t, std::string>& BatchSource::damaged() const { return state_->damaged; }

void BatchSource::start(BatchPosition position) {
  State& s = *state_;
  if (position.pass < 0 || position.batch < 0 || position.batch >= s.batches())
    throw UsageError(fmt::format("there is no batch {} of pass {}: a pass has {} batches", position.batch, position.pass, s.batches()));
  s.close_queue();
  s.position = position;
  s.unread = 0;
}

std::optional<Batch> BatchSource::next() {
  const auto started = std::chrono::steady_clock::now();
  auto batch = state_->next();
  state_->waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return batch;
}

Split split_by_class(const Dataset& data, double fraction, std::uint64_t seed) {
  if (!(fraction > 0 && fraction < 1)) throw UsageError(fmt::format("the part for validation must lie between 0 and 1, is {}", fraction));
  std::map<std::int64_t, std::vector<std::uint32_t>> classes;
  for (const std::int64_t i : members_of(data, {})) classes[data.label(i)].push_back(static_cast<std::uint32_t>(i));
  Split split;
  for (auto& [label, indices] : classes) {
    shuffle(indices, PhiloxStream(seed, Purpose::kSplit, static_cast<std::uint32_t>(label), 0));
    constexpr double kRounding = 1e-9;  // 0.29 of 100 are 29
    const auto last = static_cast<std::ptrdiff_t>(std::floor(fraction * static_cast<double>(indices.size()) + kRounding));
    split.training.insert(split.training.end(), indices.begin(), indices.end() - last);
    split.validation.insert(split.validation.end(), indices.end() - last, indices.end());
  }
  std::sort(split.training.begin(), split.training.end());
  std::sort(split.validation.begin(), split.validation.end());
  if (split.training.empty() || split.validation.empty())
    throw UsageError(fmt::format("a part of {} for validation leaves {} samples for training and {} for validation", fraction, split.training.size(),
                                 split.validation.size()));
  return split;
}

}  // namespace tandem::io
