// Copies of boxes between strided tensors: changes of layout, and every operator that only moves elements, are made of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tandem {

// Where one side of a copy lies: element (i, j, ...) of the box is at offset + i * strides[0] + j * strides[1] + ... elements.
struct StridedSide {
  DType dtype = DType::kNone;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};

// Prepared once. Copying allocates nothing; different tasks may run at the same time. Equal types (only the width matters), or any pair
// of f32, bf16, f16 and f64. The source's strides may be 0 or negative, the destination's must not make elements meet.
class StridedCopy {
 public:
  StridedCopy(const Shape& box, const StridedSide& from, const StridedSide& to);

  int tasks() const { return tasks_; }  // follows from the shape alone; 0 for an empty box
  void run_task(const void* source, void* destination, int task) const;
  void run(const void* source, void* destination) const;

  struct Axis {
    std::int64_t count, from_step, to_step;
  };

 private:
  using CopyRows = void (*)(const StridedCopy&, const void*, void*, std::int64_t first, std::int64_t rows);
  template <class From, class To>
  static void copy_rows(const StridedCopy&, const void*, void*, std::int64_t first, std::int64_t rows);
  void sort_axes();
  void choose_types(DType from, DType to);

  std::vector<Axis> axes_;  // outermost first; a row is the last one
  bool tiled_ = false;      // the axis before the last is dense in the source, the last one is not
  std::int64_t from_offset_, to_offset_, rows_ = 0, rows_per_task_ = 1;
  int tasks_ = 0;
  CopyRows copy_ = nullptr;
};

}  // namespace tandem
