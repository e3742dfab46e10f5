#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {

SetNaming::SetNaming(std::string_view state) : kind_(state.empty() ? 'p' : 's') {
  hasher_.add_number(state.size());
  hasher_.add(state);
}

void SetNaming::add(const staging::Entry& entry) {
  if (!staging::is_content(entry)) return;
  ++files_;
  hasher_.add_number(entry.path.view().size());
  hasher_.add(entry.path.view());
  hasher_.add_number(entry.size);
  hasher_.add_number(static_cast<std::uint64_t>(entry.mtime_ns));
}

std::string SetNaming::id() {
  hasher_.add_number(files_);
  return kind_ + staging::to_hex(hasher_.digest());
}

bool is_set_id(std::string_view text) {
  return text.size() == 33 && (text[0] == 's' || text[0] == 'p') &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

}  // namespace spark::fleet
