#include <gtest/gtest.h>

#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

TEST(Identity, KeepsRankZeroAndRankOne) {
  expect_close(run_node({.op = "Identity", .attributes = {}, .operands = {f32({}, {2})}})[0], f32({}, {2}));
  expect_close(run_node({.op = "Identity", .attributes = {}, .operands = {f32({1}, {2})}})[0], f32({1}, {2}));
}

}  // namespace
}  // namespace tandem::test
