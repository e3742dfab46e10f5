// A line of words as a shell or systemd would take it: quotes and backslashes, nothing else.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spark::host {

// `nvme connect -n "a b"` → nvme, connect, -n, a b. An open quote ends with the text.
std::vector<std::string> words_of(std::string_view text);

// A line of fstab as its columns, with \040 and the like decoded.
std::vector<std::string> fstab_columns(std::string_view line);

// A name for the configuration, not yet in `taken`: "nqn.2024-01.com.example:tank/Image Net" → "image-net".
std::string name_for(const std::string& text, std::set<std::string>& taken);

}  // namespace spark::host
