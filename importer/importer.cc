#include "importer/importer.h"

#include <fmt/format.h>

#include "importer/build.h"
#include "importer/external_data.h"
#include "importer/mapped_file.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

Graph import(wire::Bytes bytes, std::shared_ptr<const MappedFile> owner, ExternalData external, const ImportOptions& options) {
  if (bytes.size() > options.max_file_bytes)
    throw InvalidModel(
        fmt::format("the model has {} bytes, more than {}; export the weights as external data", bytes.size(), options.max_file_bytes));
  const ModelFile file = parse_model(bytes, std::move(owner), options);
  refuse_unknown_operators(file);
  Graph graph = build_graph(file, external);
  if (options.record) options.record->data_files = external.paths();
  return graph;
}

}  // namespace

Graph import_file(const std::filesystem::path& file, const ImportOptions& options) {
  return with_context([&] { return fmt::format("file {}", quote(file.string())); },
                      [&] {
                        const auto mapping = MappedFile::open(file, options.max_file_bytes);
                        Graph graph = import(mapping->bytes(), mapping, ExternalData::beside(file, options.allow_hard_links), options);
                        graph.origin.file = file.string();
                        return graph;
                      });
}

Graph import_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder, const ImportOptions& options) {
  return import(bytes, nullptr, ExternalData(folder, {}, options.allow_hard_links), options);
}

}  // namespace tandem
