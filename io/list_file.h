// Lists of files: text with one path a line, or CSV. Internal to io; listing.h says what they look like.
#pragma once

#include <string>

#include "io/listing.h"

namespace tandem::io {

bool has_image_suffix(const std::string& name);  // of any format that results report on, any case
bool is_list(const std::string& file);           // .txt or .csv, by name
// Throws InvalidData naming the file: unreadable, a quote that is never closed, or no path in it.
Listing read_list(const std::string& file);

}  // namespace tandem::io
