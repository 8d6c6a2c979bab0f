#include "runtime/base/tensor.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "runtime/base/error.h"

namespace tandem {

struct Tensor::Recipe {
  Recipe(std::function<Tensor()> f, std::size_t bytes) : make(std::move(f)), beside(bytes) {}
  const std::function<Tensor()> make;
  const std::size_t beside;
  std::once_flag once;
  Tensor kept;
  std::atomic<bool> is_kept{false};
};

namespace {

// From this size on a tensor has pages of its own: malloc would keep them in the arena of whichever thread freed them.
constexpr std::size_t kOwnPages = std::size_t{1} << 20;

std::shared_ptr<const void> allocate(std::size_t bytes) {
  if (bytes >= kOwnPages) {
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    return {p, [bytes](const void* q) { ::munmap(const_cast<void*>(q), bytes); }};
  }
  void* p = std::aligned_alloc(64, bytes);
  if (!p) return nullptr;
  std::memset(p, 0, bytes);
  return {p, [](const void* q) { std::free(const_cast<void*>(q)); }};
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  owner_ = allocate((bytes() + 63) / 64 * 64 + 64);  // vector loads may look past the end
  if (!owner_) throw OutOfMemory(fmt::format("cannot allocate {} bytes for a tensor of shape {}", bytes(), to_string(shape_)), bytes());
  data_ = owner_.get();
}

Tensor Tensor::view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::deferred(DType dtype, Shape shape, std::function<Tensor()> make, std::size_t beside) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.recipe_ = std::make_shared<Recipe>(std::move(make), beside);
  return t;
}

std::size_t Tensor::making_bytes() const { return recipe_ ? bytes() + recipe_->beside : 0; }

Tensor Tensor::made() const {
  if (!recipe_) return *this;
  return recipe_->is_kept.load(std::memory_order_acquire) ? recipe_->kept.reshaped(shape_) : recipe_->make().reshaped(shape_);
}

const void* Tensor::kept_data() const {
  std::call_once(recipe_->once, [&] {
    recipe_->kept = recipe_->make();
    recipe_->is_kept.store(true, std::memory_order_release);
  });
  return recipe_->kept.data();
}

Tensor Tensor::reshaped(Shape shape) const {
  if (elements(shape) != size()) throw InvalidModel(fmt::format("cannot reshape {} to {}", to_string(shape_), to_string(shape)));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

std::vector<std::int64_t> Tensor::to_ints() const {
  if (is_float(dtype_) || dtype_ == DType::kNone) throw InvalidModel(fmt::format("expected an integer tensor, found {}", name_of(dtype_)));
  return dispatch(dtype_, [&](auto tag) {
    std::vector<std::int64_t> out;
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      for (const T v : as<T>()) out.push_back(static_cast<std::int64_t>(v));
    }
    return out;
  });
}

std::vector<double> Tensor::to_doubles() const {
  return dispatch(dtype_, [&](auto tag) {
    using T = decltype(tag);
    std::vector<double> out;
    out.reserve(static_cast<std::size_t>(size()));
    for (const T v : as<T>()) {
      if constexpr (std::is_arithmetic_v<T>)
        out.push_back(static_cast<double>(v));
      else
        out.push_back(static_cast<double>(static_cast<float>(v)));
    }
    return out;
  });
}

void Tensor::check_type(DType t) const {
  if (t != dtype_) throw std::logic_error(fmt::format("tensor holds {}, not {}", name_of(dtype_), name_of(t)));
}

void Tensor::fill_from(const void* values, std::size_t n) {
  if (n != bytes()) throw std::logic_error(fmt::format("{} bytes given for a tensor of {}", n, bytes()));
  if (n) std::memcpy(mutable_data(), values, n);
}

}  // namespace tandem
