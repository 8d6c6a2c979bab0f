#include "runtime/cpu/map.h"

#include <cstring>
#include <memory>

#include "runtime/cpu/activation_rows.h"

namespace tandem {
namespace {

constexpr std::int64_t kWindow = 512;   // elements that are gathered at a time
constexpr std::int64_t kShortRun = 64;  // shorter runs are gathered several at a time
constexpr std::size_t kWindowBytes = kWindow * 8;

template <class Storage, class Compute>
void load(const void* from, std::int64_t step, std::int64_t n, void* to) {
  const auto* s = static_cast<const Storage*>(from);
  auto* d = static_cast<Compute*>(to);
  if (step == 1) {
    if constexpr (std::is_same_v<Storage, BFloat16>)
      widen_row(s, d, n, false);
    else
      for (std::int64_t i = 0; i < n; ++i) d[i] = static_cast<Compute>(s[i]);
  } else if (step == 0) {
    std::fill_n(d, n, static_cast<Compute>(*s));
  } else {
    for (std::int64_t i = 0; i < n; ++i) d[i] = static_cast<Compute>(s[i * step]);
  }
}

template <class Compute, class Storage>
void store(const void* from, std::int64_t step, std::int64_t n, void* to) {
  const auto* s = static_cast<const Compute*>(from);
  auto* d = static_cast<Storage*>(to);
  if (step == 1) {
    if constexpr (std::is_same_v<Storage, BFloat16>)
      narrow_row(s, d, n);
    else
      for (std::int64_t i = 0; i < n; ++i) d[i] = static_cast<Storage>(s[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) d[i * step] = static_cast<Storage>(s[i]);
  }
}

using Copy = void (*)(const void* from, std::int64_t step, std::int64_t n, void* to);

// f gets values of the storage's and the compute type's width class.
template <class F>
Copy choose(DType t, F&& f) {
  if (t == DType::kBF16) return f(BFloat16{}, float{});
  if (t == DType::kF16) return f(Float16{}, float{});
  return dispatch_width(size_of(t), [&](auto tag) { return f(tag, tag); });
}

Copy loader(DType t) {
  return choose(t, [](auto storage, auto compute) -> Copy { return load<decltype(storage), decltype(compute)>; });
}
Copy storer(DType t) {
  return choose(t, [](auto storage, auto compute) -> Copy { return store<decltype(compute), decltype(storage)>; });
}

// One present operand, or the output.
struct Side {
  std::size_t slot;    // operand number
  std::int64_t bytes;  // of one stored element
  std::int64_t unit;   // of one element in its compute type
  bool converts;       // stored and compute type differ
  bool dense;          // lies in memory as the output is walked
  Copy copy;           // to the compute type (operands), from it (output)
  StridedLoop walk;    // the output's steps, then this tensor's own
};

Side make_side(std::size_t slot, const TensorDesc& d, const TensorDesc& out, Copy copy, std::int64_t task_elements) {
  Side s{slot, static_cast<std::int64_t>(size_of(d.dtype)), static_cast<std::int64_t>(size_of(compute_type(d.dtype))), false, false,
         copy, broadcast_loop(out, {&d, 1}, task_elements)};
  s.converts = s.bytes != s.unit;
  s.dense = !s.converts && s.walk.run() == s.walk.size() && s.walk.step(1) == 1;
  return s;
}

struct Map {
  std::vector<Side> in, out;       // out: one
  std::vector<StridedLoop> joint;  // output and all operands; empty where runs are short or operands many
  TensorDesc out_desc;
  std::size_t operands = 0;  // absent ones included
  std::int64_t task_elements = 0;
  MapBody body;

  // Scratch: a window for each operand and the output, then the operands' pointers.
  std::size_t scratch_bytes() const { return (in.size() + 1) * kWindowBytes + operands * sizeof(void*); }
  void run(const KernelArgs&, int task) const;

 private:
  void run_joint(const KernelArgs&, int task) const;
  void run_windows(const KernelArgs&, std::int64_t begin, std::int64_t end) const;
  const void** pointers(const KernelArgs& k) const {
    auto** p = reinterpret_cast<const void**>(k.scratch + (in.size() + 1) * kWindowBytes);
    std::fill_n(p, operands, nullptr);
    return p;
  }
};

void Map::run_joint(const KernelArgs& k, int task) const {
  const StridedLoop& loop = joint[0];
  const auto direct = [&](const Side& s, std::size_t at) { return !s.converts && loop.step(at) == 1; };
  const bool writes_direct = direct(out[0], 0);
  bool all_direct = writes_direct;
  for (std::size_t i = 0; i < in.size(); ++i) all_direct = all_direct && direct(in[i], i + 1);
  const void** const from = pointers(k);
  std::byte* const result = k.scratch + in.size() * kWindowBytes;
  loop.for_each_run(task, [&](const std::int64_t* offset, std::int64_t count) {
    for (std::int64_t done = 0, n = 0; done < count; done += n) {
      n = all_direct ? count : std::min(kWindow, count - done);
      for (std::size_t i = 0; i < in.size(); ++i) {
        const Side& s = in[i];
        const std::int64_t step = loop.step(i + 1);
        const auto* source = k.input<std::byte>(s.slot) + (offset[i + 1] + done * step) * s.bytes;
        std::byte* const window = k.scratch + i * kWindowBytes;
        from[s.slot] = direct(s, i + 1) ? source : window;
        if (from[s.slot] == window && (step != 0 || done == 0)) s.copy(source, step, n, window);
      }
      std::byte* const to = k.output<std::byte>(0) + (offset[0] + done * loop.step(0)) * out[0].bytes;
      body(from, writes_direct ? to : result, n);
      if (!writes_direct) out[0].copy(result, loop.step(0), n, to);
    }
  });
}

void Map::run_windows(const KernelArgs& k, std::int64_t begin, std::int64_t end) const {
  const void** const from = pointers(k);
  std::byte* const result = k.scratch + in.size() * kWindowBytes;
  for (std::int64_t at = begin; at < end; at += kWindow) {
    const std::int64_t n = std::min(kWindow, end - at);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Side& s = in[i];
      const auto* source = k.input<std::byte>(s.slot);
      std::byte* to = k.scratch + i * kWindowBytes;
      from[s.slot] = s.dense ? source + at * s.bytes : to;
      if (s.dense) continue;
      s.walk.for_each_run_in(at, at + n, [&](const std::int64_t* offset, std::int64_t count) {
        s.copy(source + offset[1] * s.bytes, s.walk.step(1), count, to);
        to += count * s.unit;
      });
    }
    const Side& o = out[0];
    if (o.dense) {
      body(from, k.output<std::byte>(0) + at * o.bytes, n);
      continue;
    }
    body(from, result, n);
    const std::byte* source = result;
    o.walk.for_each_run_in(at, at + n, [&](const std::int64_t* offset, std::int64_t count) {
      o.copy(source, o.walk.step(1), count, k.output<std::byte>(0) + offset[1] * o.bytes);
      source += count * o.unit;
    });
  }
}

void Map::run(const KernelArgs& k, int task) const {
  const std::int64_t begin = task * task_elements, end = std::min(begin + task_elements, out[0].walk.size());
  if (begin >= end) return;
  if (joint.empty())
    run_windows(k, begin, end);
  else
    run_joint(k, task);
  zero_gaps(out_desc, k.out[0], begin, end);
}

}  // namespace

DType compute_type(DType t) {
  if (t == DType::kBF16 || t == DType::kF16) return DType::kF32;
  return t == DType::kBool ? DType::kU8 : t;
}

Kernel map_kernel(std::string implementation, const TensorDesc& out, const std::vector<TensorDesc>& in, MapBody body, std::int64_t task_elements) {
  auto map = std::make_shared<Map>();
  map->body = std::move(body);
  map->out_desc = out;
  map->operands = in.size();
  map->task_elements = task_elements;
  map->out.push_back(make_side(0, out, out, storer(out.dtype), task_elements));
  std::vector<TensorDesc> present;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    map->in.push_back(make_side(i, in[i], out, loader(in[i].dtype), task_elements));
    present.push_back(in[i]);
  }
  if (present.size() < StridedLoop::kMaxOperands) {
    auto loop = broadcast_loop(out, present, task_elements);
    if (loop.run() >= kShortRun || loop.run() == loop.size()) map->joint.push_back(std::move(loop));
  }
  const int tasks = map->out[0].walk.tasks();
  Kernel kernel = Kernel::single(std::move(implementation), tasks, [map](const KernelArgs& k, int task) { map->run(k, task); });
  kernel.scratch_bytes = map->scratch_bytes();
  kernel.in_place = ~0u;
  return kernel;
}

void zero_gaps(const TensorDesc& d, void* data, std::int64_t begin, std::int64_t end) {
  if (d.layout != Layout::kChannelsLast || d.channel_pitch == d.shape[1]) return;
  const std::int64_t channels = d.shape[1], unit = static_cast<std::int64_t>(size_of(d.dtype));
  for (std::int64_t p = begin / channels; (p + 1) * channels <= end; ++p) {
    std::memset(static_cast<std::byte*>(data) + (p * d.channel_pitch + channels) * unit, 0,
                static_cast<std::size_t>((d.channel_pitch - channels) * unit));
  }
}

}  // namespace tandem
