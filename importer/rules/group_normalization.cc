// GroupNormalization: at opsets 18 to 20 scale and bias hold one value for each group; from 21 one for each channel.
#include "importer/rules.h"

namespace tandem {
namespace {

// [G] -> [C]: every value C / G times.
ValueId repeat_for_channels(NodeRewrite& c, ValueId per_group, ValueId per_channel_count) {
  Attributes axis;
  axis.set("axis", std::int64_t{0});
  const ValueId groups = c.emit("Shape", {per_group});
  const ValueId column = c.emit("Unsqueeze", {per_group, c.ints({1}, "axes")});
  const ValueId repeated = c.emit("Expand", {column, c.emit("Concat", {groups, per_channel_count}, axis)});
  return c.emit("Reshape", {repeated, c.ints({-1}, "flat")});
}

}  // namespace

void rewrite_group_normalization(NodeRewrite& c) {
  if (c.opset >= 21) return;
  Attributes channel;
  channel.set("start", std::int64_t{1});
  channel.set("end", std::int64_t{2});
  const ValueId channels = c.emit("Shape", {c.input(0)}, channel);
  const ValueId count = c.emit("Div", {channels, c.ints({c.attributes().integer("num_groups")}, "groups")});
  c.set_input(1, repeat_for_channels(c, c.input(1), count));
  c.set_input(2, repeat_for_channels(c, c.input(2), count));
}

}  // namespace tandem
