// Takes the tensors out of a serialized model before protobuf sees it, so that weights stay where they are and a small file cannot make
// protobuf take much memory. Counts and depths are checked on the way.
#pragma once

#include <string>
#include <vector>

#include "importer/wire.h"

namespace tandem {

struct StrippedModel {
  // The model without documentation, training information, value_info and unknown fields. Each TensorProto holds nothing but raw_data with its
  // number in `tensors` (tensor_number).
  std::string message;
  std::vector<wire::Bytes> tensors;  // the TensorProto messages, inside the file
  bool metadata_left_out = false;    // there was more than limits::kMetadataBytes
};

// Throws InvalidModel when the bytes are no protobuf message or break a limit (limits.h).
// `metadata`: metadata_props of graphs and nodes stay too.
StrippedModel strip_model(wire::Bytes file, bool metadata = false);

// The number that strip_model wrote into a TensorProto's raw_data.
std::size_t tensor_number(std::string_view raw_data);

}  // namespace tandem
