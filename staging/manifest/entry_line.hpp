// An Entry as one line of JSON: in the manifest and in the journal.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

std::string to_line(const Entry& entry);  // no newline at the end

// Invalid for a line that to_line could not have written: the reader accepts only paths that it has checked.
Result<Entry> parse_entry(std::string_view line);

}  // namespace spark::staging
